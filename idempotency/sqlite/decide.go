package sqlite

import (
	"context"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/internal/rule"
)

// Decide moves entries on; see idempotency.Entries.
func (s *Store) Decide(ctx context.Context, ses idempotency.Session, nonce int64, d []idempotency.Decision) (decided []idempotency.Decided, err error) {
	if err := idempotency.CheckDecisions(d); err != nil {
		return nil, err
	}
	err = s.with(ctx, ses, func(c *call) error {
		decided = make([]idempotency.Decided, len(d))
		for i, x := range d {
			var err error
			if decided[i], err = c.decide(x, nonce); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return decided, nil
}

func (c *call) decide(d idempotency.Decision, nonce int64) (x idempotency.Decided, err error) {
	e, err := c.entry(d.Job)
	if err != nil || e == nil {
		return x, err
	}
	x.Won, err = c.wonBefore(e, nonce)
	if err == nil && !x.Won {
		if x.Won, err = c.wins(e, d); x.Won && err == nil {
			if err = c.apply(e, d, nonce); err == nil {
				e, err = c.entry(d.Job)
			}
		}
	}
	if err != nil {
		return x, err
	}
	x.Entry = *e
	if x.Won && !d.Keyed {
		x.Runs, err = c.decidedRuns(e, d, nonce)
	}
	return x, err
}

// wonBefore reports whether the decision that this session last won of the
// entry was under this nonce.
func (c *call) wonBefore(e *idempotency.Entry, nonce int64) (bool, error) {
	var last int64
	found, err := c.get([]any{&last}, `SELECT nonce FROM belfry_decision WHERE session = ? AND job = ? AND key = ?`, c.by.id, e.Job, []byte(e.Key))
	return found && last == nonce, err
}

// wins tests what a decision is conditional on.
func (c *call) wins(e *idempotency.Entry, d idempotency.Decision) (bool, error) {
	if !rule.Wins(*e, d, c.now.Add(c.by.tolerance)) {
		return false, nil
	}
	var one int
	return c.get([]any{&one}, `SELECT 1 FROM belfry_definition WHERE session = ? AND job = ? AND hash = ?`, c.by.id, d.Job, []byte(d.Hash))
}

// apply writes a decision that is won.
func (c *call) apply(e *idempotency.Entry, d idempotency.Decision, nonce int64) error {
	if _, err := c.exec(`INSERT OR REPLACE INTO belfry_decision (session, job, key, nonce) VALUES (?, ?, ?, ?)`, c.by.id, d.Job, []byte(e.Key), nonce); err != nil {
		return err
	}
	if _, err := c.exec(`UPDATE belfry_entry SET schedule = ?, hash = ?, revision = ?, keyed = ?, leader = ?, opened = ?, next = ? WHERE space = ? AND job = ? AND key = ?`,
		[]byte(d.Schedule), []byte(d.Hash), d.Revision, d.Definition.Keyed, d.Leader, micro(d.Opened), micro(d.Next), c.by.space, d.Job, []byte(e.Key)); err != nil {
		return err
	}
	for _, r := range d.Ranges {
		if err := c.record(r); err != nil {
			return err
		}
	}
	if d.Keyed {
		return c.openDecided(d)
	}
	return c.decideRuns(idempotency.ID{Job: d.Job, Key: rule.RunKey(*e)}, d, nonce)
}

// openDecided opens dues of a job with keys, but those that were opened before.
func (c *call) openDecided(d idempotency.Decision) error {
	for _, due := range d.Run {
		if _, err := c.exec(`INSERT INTO belfry_due (space, due, job, opened, catch_up) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			c.by.space, due.Unix(), d.Job, micro(c.now), d.CatchUp); err != nil {
			return err
		}
	}
	return nil
}

// decideRuns writes the runs of a job without keys that have no row yet.
func (c *call) decideRuns(id idempotency.ID, d idempotency.Decision, nonce int64) error {
	dues, err := c.absent(id, d.Run)
	if err != nil || len(dues) == 0 {
		return err
	}
	o, err := c.overlap(id, d)
	if err != nil {
		return err
	}
	id.Due = dues[len(dues)-1]
	if _, overtakes := o.Idle(id.Due); overtakes { // before a run of this decision waits
		if err := c.overtake(id); err != nil {
			return err
		}
	}
	for _, id.Due = range dues {
		if o.Claim > 0 {
			o.Claim--
			_, err = c.insertRunning(id, nonce, o.Exclusive, d.Term)
		} else {
			idle, _ := o.Idle(id.Due)
			err = c.insertIdle(id, idle, nonce)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// absent are the dues of which the run has no row.
func (c *call) absent(id idempotency.ID, dues []time.Time) (list []time.Time, err error) {
	for _, id.Due = range dues {
		old, err := c.row(id)
		if err != nil {
			return nil, err
		}
		if old == nil {
			list = append(list, id.Due)
		}
	}
	return list, nil
}

// overlap asks what the decision's runs find, before it writes one.
func (c *call) overlap(id idempotency.ID, d idempotency.Decision) (o rule.Overlap, err error) {
	id.Due = time.Time{} // of no row
	holder, err := c.holder(id)
	queued := false
	if err == nil && !holder.IsZero() && d.Overlap == idempotency.OverlapQueue {
		queued, err = c.isQueued(id)
	}
	return rule.Overlapping(d, holder, queued, c.now), err
}

// decidedRuns are the rows that the decision wrote and nobody claimed since.
func (c *call) decidedRuns(e *idempotency.Entry, d idempotency.Decision, nonce int64) (runs []idempotency.Run, err error) {
	for _, due := range d.Run {
		r, err := c.runs(`r.space = ? AND r.due = ? AND r.job = ? AND r.key = ? AND r.request = x'' AND r.session = ? AND r.nonce = ?`,
			c.by.space, due.Unix(), d.Job, []byte(rule.RunKey(*e)), c.by.id, nonce)
		if err != nil {
			return nil, err
		}
		runs = append(runs, r...)
	}
	return runs, nil
}

// record writes a range, behind those that are equal.
func (c *call) record(r idempotency.Range) error {
	id, err := c.draw()
	if err != nil {
		return err
	}
	_, err = c.exec(`INSERT INTO belfry_range (space, low, high, job, id, count, outcome, reason) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		c.by.space, micro(r.From), micro(r.To), r.Job, id, r.Count, r.Outcome, []byte(r.Reason))
	return err
}
