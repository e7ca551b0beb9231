package etcdelector

import clientv3 "go.etcd.io/etcd/client/v3"

// watch loses the candidacy when the own key is deleted. A watch that breaks, or whose revision was compacted, is begun again from what a
// read says.
func (c *candidacy) watch() {
	from := c.rev + 1
	for c.ctx.Err() == nil {
		gone, next := c.watchFrom(from)
		if !gone {
			sleep(c.ctx, c.options.Retry)
			gone, next = c.relist(next)
		}
		if gone {
			c.lose(errDeleted)
		}
		from = next
	}
}

// watchFrom watches from a revision on, until the key is deleted or the watch is broken, and returns from where to go on.
func (c *candidacy) watchFrom(from int64) (gone bool, next int64) {
	for r := range c.client.Watch(clientv3.WithRequireLeader(c.ctx), c.key, clientv3.WithRev(from), clientv3.WithFilterPut()) {
		if len(r.Events) > 0 {
			return true, from
		}
	}
	return false, from
}

// relist reads the key, and returns the revision after that. Where it cannot, the next watch goes on from where the last one did.
func (c *candidacy) relist(from int64) (gone bool, next int64) {
	call, done := c.call(c.ctx)
	defer done()
	r, err := c.client.Get(call, c.key)
	if err != nil {
		return false, from
	}
	return len(r.Kvs) == 0 || r.Kvs[0].CreateRevision != c.rev, r.Header.Revision + 1
}
