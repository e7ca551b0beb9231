//go:build unix

package etcdrig

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// everything is the folder of the keys that are observed.
const everything = namespace + "/"

// event is a change of one key, as etcd orders them.
type event struct {
	revision int64
	key      string
	created  int64 // the revision in which the key was made; 0: it was deleted
	value    string
	seen     int64 // nanoseconds of the monotonic clock: when the test learned of it, which is later
}

// history is all that ever happened to the keys of the rig.
type history struct {
	*testing.T
	client *clientv3.Client

	mu      sync.Mutex
	events  []event
	changed chan struct{} // closed and made anew at every event
}

// observe begins one. It ends with the test.
func observe(t *testing.T, client *clientv3.Client) *history {
	h := &history{T: t, client: client, changed: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	t.Cleanup(func() { cancel(); work.Wait() })
	watch := client.Watch(ctx, everything, clientv3.WithPrefix(), clientv3.WithRev(1))
	work.Go(func() {
		for r := range watch {
			if err := r.Err(); err != nil && ctx.Err() == nil {
				t.Errorf("watch: %v", err)
			}
			h.add(r.Events)
		}
	})
	return h
}

func (h *history) add(list []*clientv3.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range list {
		h.events = append(h.events, event{e.Kv.ModRevision, string(e.Kv.Key), e.Kv.CreateRevision, string(e.Kv.Value), mono()})
	}
	close(h.changed)
	h.changed = make(chan struct{})
}

// all returns what happened up to now: it makes an event of its own and waits for that.
func (h *history) all() []event {
	h.Helper()
	ctx, cancel := context.WithTimeout(h.Context(), within)
	defer cancel()
	r, err := h.client.Put(ctx, everything+"end", "")
	if err != nil {
		h.Fatal(err)
	}
	for {
		h.mu.Lock()
		list, changed := h.events, h.changed
		h.mu.Unlock()
		if n := len(list); n > 0 && list[n-1].revision >= r.Header.Revision {
			return list
		}
		select {
		case <-changed:
		case <-ctx.Done():
			h.Fatal("waiting for etcd's events")
		}
	}
}

// lease finds that of a term's key; 0: there is no such key.
func (h *history) lease(term int64) clientv3.LeaseID {
	h.Helper()
	ctx, cancel := context.WithTimeout(h.Context(), within)
	defer cancel()
	r, err := h.client.Get(ctx, election, clientv3.WithPrefix(), clientv3.WithMinCreateRev(term), clientv3.WithMaxCreateRev(term))
	if err != nil {
		h.Fatal(err)
	}
	if len(r.Kvs) == 0 {
		return 0
	}
	return clientv3.LeaseID(r.Kvs[0].Lease)
}

// reign is a term by etcd's order: its key was the oldest of the election from one revision until another.
type reign struct {
	from, until int64 // revisions; until 0: it was to the end
	gone        int64 // when the test learned of that, by the monotonic clock
	signed      int   // how often the term was written on condition that it is etcd's
}

// reigns reads them out of the events, and holds against each other who reigned and who wrote, at the same revision. So a process that
// took its waiting for a victory, or whose write came after its end, is found out whatever its clock said.
func reigns(events []event) (all map[int64]*reign, bad []string) {
	all = map[int64]*reign{}
	alive := map[string]int64{}
	var reigning, last int64
	for _, e := range events {
		switch {
		case e.key == signature && e.created != 0:
			term, err := strconv.ParseInt(strings.Fields(e.value)[0], 10, 64)
			if err != nil || term != reigning {
				bad = append(bad, fmt.Sprintf("etcd's order: at revision %d %q was written, and the term is %d", e.revision, e.value, reigning))
			}
			if term < last {
				bad = append(bad, fmt.Sprintf("etcd's order: at revision %d %q was written after term %d", e.revision, e.value, last))
			}
			last = max(last, term)
			if r := all[term]; r != nil {
				r.signed++
			}
			continue
		case !strings.HasPrefix(e.key, election):
			continue
		case e.created == 0:
			delete(alive, e.key)
		default:
			alive[e.key] = e.created
		}
		oldest := int64(0)
		for _, created := range alive {
			if oldest == 0 || created < oldest {
				oldest = created
			}
		}
		if oldest == reigning {
			continue
		}
		if r := all[reigning]; r != nil {
			r.until, r.gone = e.revision, e.seen
		}
		if all[oldest] != nil {
			bad = append(bad, fmt.Sprintf("etcd's order: term %d reigns again at revision %d", oldest, e.revision))
		} else if oldest != 0 {
			all[oldest] = &reign{from: e.revision}
		}
		reigning = oldest
	}
	return all, bad
}
