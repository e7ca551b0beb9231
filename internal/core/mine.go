package core

import (
	"context"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// asked is a take-up that was sent.
type asked struct {
	past
	at time.Duration
}

// pastAsked is the past of a run that was won otherwise than by the answer to its take-up: a stray; or one that the same
// batch asked for as new too, which when repeated says of both that they are won.
func (c *Core) pastAsked(id idempotency.ID, before past) past {
	if a, was := c.workers.asked[id]; was {
		return a.past
	}
	return before
}

// listMine looks for strays: runs that the store holds for ours, of which the
// answer that gave them to us was lost for good. A run that we hold, or
// let go of a moment ago, is none: the listing is older than what became of it.
func (c *Core) listMine(s *session) bool {
	if c.session != s {
		return false
	}
	c.mine(s, func(error) {})
	return true
}

// mine lists the runs of our session, ends those that are told to, and adopts the strays.
func (c *Core) mine(s *session, then func(error)) {
	sent := c.now.Mono
	c.emit(newCall("Mine",
		func(ctx context.Context, st idempotency.Store) ([]idempotency.Run, error) {
			return st.Mine(ctx, s.Session)
		},
		func(runs []idempotency.Run, err error) {
			if err == nil && c.session == s {
				for _, r := range runs {
					c.adopt(r, sent)
				}
				c.forget()
			}
			then(err)
		}))
}

// adopt begins a stray of a listing, or gives it back where its job was removed. If the answer that
// gave it to us still comes, begin knows the fence.
func (c *Core) adopt(r idempotency.Run, sent time.Duration) {
	w, mark := &c.workers, causeOf(r)
	if h := w.byFence[r.Fence]; h != nil {
		if mark != nil {
			c.tellEnd(h, mark)
		}
		return
	}
	if e, had := w.known[r.Fence]; had {
		c.remind(r, e, sent)
		return
	}
	before := c.pastAsked(r.ID, fresh)
	j := c.jobs[r.ID.Job]
	switch {
	case mark != nil:
		c.writeStray(markedStray(r))
	case j == nil:
		c.writeStray(idempotency.Finish{ID: r.ID, Fence: r.Fence, Outcome: idempotency.Wait, Attempt: r.Attempt,
			Reason: before.unstarted(), Wake: c.storeNow()})
	case w.free(c) > 0:
		c.begin(j, r, before, false)
	}
}

// remind repeats a record that the store has taken, and forgot again: else a run that ended here would start once more, and under the same fence.
// What a handler recorded itself is not repeated: its effect was forgotten with it.
func (c *Core) remind(r idempotency.Run, e ended, sent time.Duration) {
	if f := e.accepted; f != nil && e.at < sent && f.ID == r.ID {
		c.writeStray(*f)
		e.at = c.now.Mono
		c.workers.known[f.Fence] = e
	}
}

// writeStray records a run that has no worker.
func (c *Core) writeStray(f idempotency.Finish) {
	c.workers.known[f.Fence] = ended{at: c.now.Mono}
	c.finishes.add(f, func(idempotency.Finish, idempotency.FinishAnswer) {}, nil)
}

// forget drops what no late answer can be about any more.
func (c *Core) forget() {
	w := &c.workers
	for fence, e := range w.known {
		if e.at < c.now.Mono-c.cfg.Lease {
			delete(w.known, fence)
		}
	}
	for id, a := range w.asked {
		if !c.sweeper.taking[id] && a.at < c.now.Mono-askedFor*c.cfg.Lease {
			delete(w.asked, id)
		}
	}
}

// askedFor is for how many leases a take-up may still happen after it was sent.
const askedFor = 4
