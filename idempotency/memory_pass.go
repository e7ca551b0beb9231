package idempotency

import (
	"cmp"
	"context"
	"math/bits"
	"slices"
	"time"
)

// SavePass saves the session's progress through open dues; see Passes.
func (m *Memory) SavePass(ctx context.Context, s Session, p []Pass) (verdicts []Verdict, err error) {
	err = m.with(ctx, s, func(c *call) error {
		if err := CheckPasses(p, c.partitions); err != nil {
			return err
		}
		verdicts = make([]Verdict, len(p))
		for i, x := range p {
			verdicts[i] = c.savePass(x)
		}
		return nil
	})
	return verdicts, err
}

func (c *call) savePass(p Pass) Verdict {
	d := c.openDue(p.Job, p.Due)
	if d == nil {
		return Closed
	}
	i, ok := d.pass(c.by.id)
	if !ok {
		d.passes = slices.Insert(d.passes, i, &Pass{
			Job: d.job, Due: d.due, Session: c.by.id,
			Mine: c.bitmap(), Finished: c.bitmap(),
		})
	}
	own := d.passes[i]
	or(own.Mine, p.Mine)
	or(own.Finished, p.Finished)
	own.Keys = max(own.Keys, p.Keys)
	own.MovedAt = c.now
	return Won
}

// pass finds the session's pass over the due, or where it would stand.
func (d *keyedDue) pass(session int64) (int, bool) {
	return slices.BinarySearchFunc(d.passes, session, func(p *Pass, id int64) int { return cmp.Compare(p.Session, id) })
}

// move moves the session's passes over the open dues that a claim batch names.
func (c *call) move(batch []Claim) {
	for _, x := range batch {
		d := c.openDue(x.ID.Job, x.ID.Due)
		if d == nil {
			continue
		}
		if i, ok := d.pass(c.by.id); ok {
			d.passes[i].MovedAt = c.now
		}
	}
}

// CloseDue closes a due of a job with keys; see Passes.
func (m *Memory) CloseDue(ctx context.Context, s Session, job string, due time.Time, missed *Range) (closed bool, err error) {
	if err := CheckClose(job, due, missed); err != nil {
		return false, err
	}
	err = m.with(ctx, s, func(c *call) error {
		d := c.openDue(job, due)
		switch {
		case d == nil: // closed before, or never opened
		case c.covered(d):
			c.closeKeyed(d, c.now)
		case missed != nil && due.Before(c.now.Add(-c.by.Horizon)):
			c.record(*missed)
			c.closeKeyed(d, c.now)
		default:
			return nil
		}
		closed = true
		return nil
	})
	return closed, err
}

// openKeyed opens a due that was never open, and returns it, or nil.
func (sp *space) openKeyed(job string, due, now time.Time, catchUp bool) *keyedDue {
	at := jobDue{job, due.Unix()}
	d := sp.keyed[at]
	switch {
	case d == nil:
		d = &keyedDue{job: job, due: due}
		sp.keyed[at] = d
	case !d.opened.IsZero():
		return nil
	default:
		sp.closed = removeDue(sp.closed, d)
	}
	d.opened, d.closed, d.catchUp = now, time.Time{}, catchUp
	sp.open = addDue(sp.open, d)
	return d
}

func (sp *space) closeKeyed(d *keyedDue, now time.Time) {
	for _, p := range d.passes {
		d.keys += p.Keys
	}
	sp.open = removeDue(sp.open, d)
	sp.closed = addDue(sp.closed, d)
	d.closed, d.passes = now, nil
}

// covered reports whether the finished bits of all passes cover the partitions.
func (sp *space) covered(d *keyedDue) bool {
	n := 0
	for _, b := range sp.finished(d) {
		n += bits.OnesCount8(b)
	}
	return n == sp.partitions
}

// finished is the union of the finished bits of all passes, dead sessions' too.
func (sp *space) finished(d *keyedDue) []byte {
	union := sp.bitmap()
	for _, p := range d.passes {
		or(union, p.Finished)
	}
	return union
}

func (sp *space) bitmap() []byte { return make([]byte, (sp.partitions+7)/8) }

func or(to, from []byte) {
	for i, b := range from {
		to[i] |= b
	}
}
