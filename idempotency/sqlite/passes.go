package sqlite

import (
	"context"
	"database/sql"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/internal/rule"
)

// SavePass saves the session's progress through open dues; see
// idempotency.Passes.
func (s *Store) SavePass(ctx context.Context, ses idempotency.Session, p []idempotency.Pass) (verdicts []idempotency.Verdict, err error) {
	err = s.with(ctx, ses, func(c *call) error {
		if err := idempotency.CheckPasses(p, c.by.partitions); err != nil {
			return err
		}
		verdicts = make([]idempotency.Verdict, len(p))
		for i, x := range p {
			open, err := c.isOpen(x.Job, x.Due)
			if err != nil {
				return err
			}
			verdicts[i] = idempotency.Closed
			if open {
				verdicts[i] = idempotency.Won
				if err := c.savePass(x); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return verdicts, nil
}

func (c *call) savePass(p idempotency.Pass) error {
	mine, finished := rule.Bitmap(c.by.partitions), rule.Bitmap(c.by.partitions)
	var keys int64
	err := c.query(func(r *sql.Rows) error {
		return r.Scan(&mine, &finished, &keys)
	}, `SELECT mine, finished, keys FROM belfry_pass WHERE space = ? AND due = ? AND job = ? AND session = ?`,
		c.by.space, p.Due.Unix(), p.Job, c.by.id)
	if err != nil {
		return err
	}
	rule.Or(mine, p.Mine)
	rule.Or(finished, p.Finished)
	_, err = c.exec(`INSERT OR REPLACE INTO belfry_pass (space, due, job, session, mine, finished, keys, moved) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		c.by.space, p.Due.Unix(), p.Job, c.by.id, mine, finished, max(keys, p.Keys), micro(c.now))
	return err
}

// move moves the session's passes over the open dues that a claim batch names.
// Passes of closed dues are gone.
func (c *call) move(batch []idempotency.Claim) error {
	moved := make(map[dueOf]bool)
	for _, x := range batch {
		d := dueOf{x.ID.Job, x.ID.Due.Unix()}
		if moved[d] {
			continue
		}
		moved[d] = true
		var one int
		found, err := c.get([]any{&one}, `SELECT 1 FROM belfry_pass WHERE space = ? AND due = ? AND job = ? AND session = ?`, c.by.space, d.due, d.job, c.by.id)
		if err == nil && found {
			_, err = c.exec(`UPDATE belfry_pass SET moved = ? WHERE space = ? AND due = ? AND job = ? AND session = ?`, micro(c.now), c.by.space, d.due, d.job, c.by.id)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// CloseDue closes a due of a job with keys; see idempotency.Passes.
func (s *Store) CloseDue(ctx context.Context, ses idempotency.Session, job string, due time.Time, missed *idempotency.Range) (closed bool, err error) {
	if err := idempotency.CheckClose(job, due, missed); err != nil {
		return false, err
	}
	err = s.with(ctx, ses, func(c *call) error {
		open, err := c.isOpen(job, due)
		if err != nil || !open {
			closed = !open // before, or it was never opened
			return err
		}
		covered, err := c.isCovered(job, due)
		if err != nil {
			return err
		}
		if !covered {
			if missed == nil || !due.Before(c.now.Add(-c.by.horizon)) {
				closed = false
				return nil
			}
			if err := c.record(*missed); err != nil {
				return err
			}
		}
		closed = true
		return c.closeDue(job, due)
	})
	return closed && err == nil, err
}

func (c *call) closeDue(job string, due time.Time) error {
	if _, err := c.exec(`UPDATE belfry_due AS d SET closed = ?, keys = (
  SELECT coalesce(sum(p.keys), 0) FROM belfry_pass p WHERE p.space = d.space AND p.due = d.due AND p.job = d.job)
WHERE space = ? AND due = ? AND job = ?`, micro(c.now), c.by.space, due.Unix(), job); err != nil {
		return err
	}
	_, err := c.exec(`DELETE FROM belfry_pass WHERE space = ? AND due = ? AND job = ?`, c.by.space, due.Unix(), job)
	return err
}

// isCovered reports whether the finished bits of all passes, those of dead
// sessions too, cover the partitions.
func (c *call) isCovered(job string, due time.Time) (bool, error) {
	union := rule.Bitmap(c.by.partitions)
	err := c.query(func(r *sql.Rows) error {
		var finished []byte
		err := r.Scan(&finished)
		rule.Or(union, finished)
		return err
	}, `SELECT finished FROM belfry_pass WHERE space = ? AND due = ? AND job = ?`, c.by.space, due.Unix(), job)
	return rule.Covers(union, c.by.partitions), err
}
