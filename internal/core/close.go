package core

import (
	"context"
	"slices"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// Why partitions of a due were not finished in time.
const (
	reasonSource     = "source" // its KeySource fails
	reasonUnfinished = "unfinished"
)

// closeDue closes a due whose partitions are all finished, or one that reached
// the horizon: then what is left of it is recorded as missed.
func (c *Core) closeDue(now time.Time, j *job, o idempotency.OpenDue) {
	k, s := keyOf(o.Job, o.Due), c.session
	if c.closing[k] || !c.closesFirst(now, j, o) {
		return
	}
	var missed *idempotency.Range
	if !full(o.Finished) {
		missed = &idempotency.Range{Job: o.Job, From: o.Due, To: o.Due, Count: 1, Outcome: idempotency.Missed, Reason: reasonUnfinished}
		if c.setbacks[k].times > 0 {
			missed.Reason = reasonSource
		}
	}
	c.closing[k] = true
	c.emit(newCall("CloseDue",
		func(ctx context.Context, st idempotency.Store) (bool, error) {
			return st.CloseDue(ctx, s.Session, o.Job, o.Due, missed)
		},
		func(bool, error) { // what is not closed, the next sweep shows again
			if c.session == s {
				delete(c.closing, k)
			}
		}))
}

// forgetClosed drops the passes over dues, and what else is kept of them, that a listing, sent at an instant, does not
// show as open any more.
func (c *Core) forgetClosed(open []idempotency.OpenDue, sent time.Duration) {
	if len(c.passes)+len(c.finished)+len(c.waking)+len(c.setbacks) == 0 { // as nearly always
		return
	}
	still := make(map[dueKey]bool, len(open))
	for _, o := range open {
		still[keyOf(o.Job, o.Due)] = true
	}
	for _, p := range slices.Clone(c.passes) {
		if p.saved && !still[p.key()] && p.moved < sent {
			c.dropPass(p)
		}
	}
	for k, p := range c.finished {
		if !still[k] && p.saved < sent {
			delete(c.finished, k)
		}
	}
	for k, t := range c.waking {
		if !still[k] {
			c.stopTimer(t)
			delete(c.waking, k)
		}
	}
	for k, b := range c.setbacks {
		if !still[k] && b.until < sent {
			delete(c.setbacks, k)
		}
	}
}

// closesFirst spares the others a call: whoever owns the job's name, or the leader where it is
// the leader's, closes; the others in their turn only when it does not.
func (c *Core) closesFirst(now time.Time, j *job, o idempotency.OpenDue) bool {
	moved := o.Opened
	for _, p := range o.Passes {
		if p.MovedAt.After(moved) {
			moved = p.MovedAt
		}
	}
	r := c.rank(j.partition)
	if j.ofLeader() {
		r = c.turnOf(j)
	}
	return r >= 0 && now.Sub(moved) >= time.Duration(r)*c.cfg.Grace
}
