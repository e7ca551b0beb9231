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
	if _, err := c.exec(`UPDATE belfry_entry SET schedule = ?, hash = ?, revision = ?, opened = ?, next = ? WHERE space = ? AND job = ? AND key = ?`,
		[]byte(d.Schedule), []byte(d.Hash), d.Revision, micro(d.Opened), micro(d.Next), c.by.space, d.Job, []byte(e.Key)); err != nil {
		return err
	}
	for _, r := range d.Ranges {
		if err := c.record(r); err != nil {
			return err
		}
	}
	if d.Keyed {
		return c.openDues(d)
	}
	return c.decideRuns(idempotency.ID{Job: d.Job, Key: rule.RunKey(*e)}, d, nonce)
}

// openDues opens dues of a job with keys, but those that were opened before.
func (c *call) openDues(d idempotency.Decision) error {
	for _, due := range d.Run {
		if _, err := c.exec(`INSERT INTO belfry_due (space, due, job, opened, catch_up) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			c.by.space, due.Unix(), d.Job, micro(c.now), d.CatchUp); err != nil {
			return err
		}
	}
	return nil
}

// decideRuns writes the runs of a job without keys. They never skip each other,
// but all are skipped where a run of an older decision holds the key, unless they catch up.
func (c *call) decideRuns(id idempotency.ID, d idempotency.Decision, nonce int64) error {
	id.Due = time.Time{} // of no row
	overlap, err := c.isBusy(id)
	if err != nil {
		return err
	}
	idle := idempotency.Finish{Outcome: idempotency.Wait, Wake: c.now}
	if overlap && !d.CatchUp {
		idle = idempotency.Finish{Outcome: idempotency.Skipped, Reason: "overlap"}
	}
	claims := min(d.Claim, 1) // the first one that is claimed holds the key
	for _, id.Due = range d.Run {
		old, err := c.row(id)
		if err != nil {
			return err
		}
		if old != nil {
			continue
		}
		if !overlap && claims > 0 {
			claims--
			_, err = c.insertRunning(id, nonce, true)
		} else {
			err = c.insertIdle(id, idle, nonce)
		}
		if err != nil {
			return err
		}
	}
	return nil
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
