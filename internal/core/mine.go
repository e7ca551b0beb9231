package core

import (
	"context"

	"github.com/belfry-go/belfry/idempotency"
)

// listMine looks for strays: runs that the store holds for ours, of which the
// answer that gave them to us was lost for good. A run that we hold, or
// let go of a moment ago, is none: the listing is older than what became of it.
func (c *Core) listMine(s *session) bool {
	if c.session != s {
		return false
	}
	c.emit(newCall("Mine",
		func(ctx context.Context, st idempotency.Store) ([]idempotency.Run, error) {
			return st.Mine(ctx, s.Session)
		},
		func(runs []idempotency.Run, err error) {
			if err != nil || c.session != s {
				return
			}
			for _, r := range runs {
				c.adopt(r)
			}
			c.forget()
		}))
	return true
}

// adopt begins a stray, or gives it back where its job was removed. If the answer that
// gave it to us still comes, begin knows the fence.
func (c *Core) adopt(r idempotency.Run) {
	w := &c.workers
	if _, had := w.known[r.Fence]; had || w.byFence[r.Fence] != nil {
		return
	}
	j := c.jobs[r.ID.Job]
	switch {
	case j == nil:
		w.known[r.Fence] = c.now.Mono
		c.finishes.add(idempotency.Finish{ID: r.ID, Fence: r.Fence, Outcome: idempotency.Wait, Attempt: r.Attempt,
			Reason: reasonReleased, Wake: c.storeNow()}, func(idempotency.FinishAnswer) {}, nil)
	case w.free(c) > 0:
		c.begin(j, r, false)
	}
}

// forget drops the fences that no late answer can be about any more.
func (c *Core) forget() {
	for fence, at := range c.workers.known {
		if at < c.now.Mono-c.cfg.Lease {
			delete(c.workers.known, fence)
		}
	}
}
