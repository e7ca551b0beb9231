package mysql

import (
	"context"
	"database/sql"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/internal/rule"
)

// progress is a pass as it is kept.
type progress struct {
	mine, finished []byte
	settled        int64
}

// SavePass saves the session's progress through open dues; see idempotency.Passes.
func (s *Store) SavePass(ctx context.Context, ses idempotency.Session, p []idempotency.Pass) (verdicts []idempotency.Verdict, err error) {
	dues := make([]dueOf, len(p))
	for i, x := range p {
		dues[i] = dueOf{x.Due.Unix(), x.Job}
	}
	err = s.with(ctx, ses, shared, func(c *call) error {
		if err := idempotency.CheckPasses(p, c.by.partitions); err != nil {
			return err
		}
		open, err := c.openDues(dues, shared)
		if err != nil {
			return err
		}
		verdicts = make([]idempotency.Verdict, len(p))
		var won []idempotency.Pass
		for i, x := range p {
			verdicts[i] = idempotency.Closed
			if open[dues[i]] {
				verdicts[i] = idempotency.Won
				won = append(won, x)
			}
		}
		return c.savePasses(won)
	})
	if err != nil {
		return nil, err
	}
	return verdicts, nil
}

// savePasses adds passes to what the session has saved, its rows locked. Of two calls that save a pass first, one finds a
// duplicate, and tries again.
func (c *call) savePasses(p []idempotency.Pass) error {
	var dues []dueOf
	for _, x := range p {
		dues = append(dues, dueOf{x.Due.Unix(), x.Job})
	}
	old, err := c.passes(dues)
	if err != nil {
		return err
	}
	all := make(map[dueOf]progress)
	for d, x := range old {
		all[d] = x
	}
	for _, x := range p {
		d := dueOf{x.Due.Unix(), x.Job}
		sum, ok := all[d]
		if !ok {
			sum = progress{mine: rule.Bitmap(c.by.partitions), finished: rule.Bitmap(c.by.partitions)}
		}
		rule.Or(sum.mine, x.Mine)
		rule.Or(sum.finished, x.Finished)
		sum.settled = max(sum.settled, x.Keys)
		all[d] = sum
	}
	var fresh, again rows
	for _, d := range sortedDues(dues) {
		r, x := &fresh, all[d]
		if _, ok := old[d]; ok {
			r = &again
		}
		r.add(c.by.space, d.due, d.job, c.by.id, x.mine, x.finished, x.settled, c.now.UnixMicro())
	}
	const insert = `INSERT INTO belfry_pass (space, due, job, session, mine, finished, settled, moved)`
	if _, err := c.insert(&fresh, insert, ``); err != nil {
		return err
	}
	_, err = c.insert(&again, insert, ` ON DUPLICATE KEY UPDATE mine = VALUES(mine), finished = VALUES(finished), settled = VALUES(settled), moved = VALUES(moved)`)
	return err
}

// passes are the session's own, locked.
func (c *call) passes(dues []dueOf) (map[dueOf]progress, error) {
	m := make(map[dueOf]progress)
	err := c.queryRows(func(r *sql.Rows) error {
		var d dueOf
		var p progress
		err := r.Scan(&d.due, &d.job, &p.mine, &p.finished, &p.settled)
		m[d] = p
		return err
	}, c.passRows(dues), `SELECT due, job, mine, finished, settled FROM belfry_pass FORCE INDEX (PRIMARY)
WHERE space = ? AND (due, job, session) IN (?)`+alone, c.by.space)
	return m, err
}

// move moves the session's passes over the open dues that a claim batch names; passes of closed dues are gone. It comes
// last, because the session's other claims of these dues wait for it.
func (c *call) move(dues []dueOf) error {
	_, err := c.execRows(c.passRows(dues), `UPDATE belfry_pass FORCE INDEX (PRIMARY) SET moved = ? WHERE space = ? AND (due, job, session) IN (?)`,
		c.now.UnixMicro(), c.by.space)
	return err
}

// passRows are the session's passes over dues as a list.
func (c *call) passRows(dues []dueOf) *rows {
	r := &rows{}
	for _, d := range sortedDues(dues) {
		r.add(d.due, d.job, c.by.id)
	}
	return r
}

// CloseDue closes a due of a job with keys; see idempotency.Passes.
func (s *Store) CloseDue(ctx context.Context, ses idempotency.Session, job string, due time.Time, missed *idempotency.Range) (closed bool, err error) {
	if err := idempotency.CheckClose(job, due, missed); err != nil {
		return false, err
	}
	d := dueOf{due.Unix(), job}
	err = s.with(ctx, ses, shared, func(c *call) error {
		open, err := c.openDues([]dueOf{d}, alone)
		if err != nil || !open[d] {
			closed = !open[d] // before, or it was never opened
			return err
		}
		covered, err := c.isCovered(d)
		if err != nil {
			return err
		}
		if closed = covered || missed != nil && due.Before(c.now.Add(-c.by.horizon)); !closed {
			return nil
		}
		if !covered {
			if err := c.record(*missed); err != nil {
				return err
			}
		}
		return c.closeDue(d)
	})
	return closed && err == nil, err
}

// closeDue closes an open due and keeps how many keys its passes had.
func (c *call) closeDue(d dueOf) error {
	_, err := c.exec(`UPDATE belfry_due SET closed = ?, settled = (SELECT coalesce(sum(p.settled), 0) FROM belfry_pass p WHERE p.space = ? AND p.due = ? AND p.job = ?)
WHERE space = ? AND due = ? AND job = ?`, c.now.UnixMicro(), c.by.space, d.due, d.job, c.by.space, d.due, d.job)
	if err != nil {
		return err
	}
	_, err = c.exec(`DELETE FROM belfry_pass WHERE space = ? AND due = ? AND job = ?`, c.by.space, d.due, d.job)
	return err
}

// isCovered reports whether the finished bits of all passes, those of dead sessions too, cover the partitions. Whoever
// saves one shares the due that this transaction has locked.
func (c *call) isCovered(d dueOf) (bool, error) {
	union := rule.Bitmap(c.by.partitions)
	err := c.query(func(r *sql.Rows) error {
		var finished []byte
		err := r.Scan(&finished)
		rule.Or(union, finished)
		return err
	}, `SELECT finished FROM belfry_pass WHERE space = ? AND due = ? AND job = ?`, c.by.space, d.due, d.job)
	return rule.Covers(union, c.by.partitions), err
}
