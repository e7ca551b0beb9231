package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/internal/rule"
)

// dueOf is a due of a job as a map's key.
type dueOf struct {
	job string
	due int64
}

// dues are dues of jobs, column by column.
type dues struct {
	job []string
	due []time.Time
}

func (d *dues) add(job string, due time.Time) {
	d.job, d.due = append(d.job, job), append(d.due, due)
}

// SavePass saves the session's progress through open dues; see idempotency.Passes.
func (s *Store) SavePass(ctx context.Context, ses idempotency.Session, p []idempotency.Pass) (verdicts []idempotency.Verdict, err error) {
	err = s.locked(ctx, ses, shared, func(c *call) error {
		if err := idempotency.CheckPasses(p, c.partitions); err != nil {
			return err
		}
		var d dues
		for _, x := range p {
			d.add(x.Job, x.Due)
		}
		open, err := c.openOf(d)
		if err != nil {
			return err
		}
		saved := make(map[dueOf]idempotency.Pass)
		verdicts = make([]idempotency.Verdict, len(p))
		for i, x := range p {
			verdicts[i] = idempotency.Closed
			if k := (dueOf{x.Job, x.Due.Unix()}); open[k] {
				verdicts[i] = idempotency.Won
				saved[k] = c.union(saved[k], x)
			}
		}
		if len(saved) == 0 {
			return nil
		}
		return c.savePasses(saved)
	})
	if err != nil {
		return nil, err
	}
	return verdicts, nil
}

// union is what both passes over a due say.
func (c *call) union(a, b idempotency.Pass) idempotency.Pass {
	mine, finished := rule.Bitmap(c.partitions), rule.Bitmap(c.partitions)
	for _, x := range []idempotency.Pass{a, b} {
		rule.Or(mine, x.Mine)
		rule.Or(finished, x.Finished)
	}
	return idempotency.Pass{Job: b.Job, Due: b.Due, Mine: mine, Finished: finished, Keys: max(a.Keys, b.Keys)}
}

// openOf returns which of the dues are open. They stay so until the call has committed.
func (c *call) openOf(d dues) (map[dueOf]bool, error) {
	open := make(map[dueOf]bool)
	err := c.query(func(r pgx.Rows) error {
		var job string
		var due time.Time
		err := r.Scan(&job, &due)
		open[dueOf{job, due.Unix()}] = true
		return err
	}, `SELECT d.job, d.due FROM (SELECT DISTINCT job COLLATE "C" AS job, due FROM unnest($2::text[], $3::timestamptz[]) u(job, due) ORDER BY 1, 2) u
CROSS JOIN LATERAL (SELECT d.job, d.due FROM belfry_due d WHERE d.space = $1 AND d.due = u.due AND d.job = u.job AND d.closed IS NULL FOR KEY SHARE) d`, c.space, d.job, d.due)
	return open, err
}

// savePasses adds to the session's passes over open dues what they lack.
func (c *call) savePasses(saved map[dueOf]idempotency.Pass) error {
	var old, young dues
	for _, p := range saved {
		old.add(p.Job, p.Due)
	}
	found := make(map[dueOf]bool)
	err := c.query(func(r pgx.Rows) error {
		var p idempotency.Pass
		err := r.Scan(&p.Job, &p.Due, &p.Mine, &p.Finished, &p.Keys)
		k := dueOf{p.Job, p.Due.Unix()}
		found[k], saved[k] = true, c.union(saved[k], p)
		return err
	}, `SELECT p.job, p.due, p.mine, p.finished, p.keys FROM (SELECT * FROM unnest($3::text[], $4::timestamptz[]) u(job, due) ORDER BY 1, 2) u
CROSS JOIN LATERAL (SELECT * FROM belfry_pass p WHERE p.space = $1 AND p.due = u.due AND p.job = u.job AND p.session = $2 FOR NO KEY UPDATE) p`,
		c.space, c.id, old.job, old.due)
	if err != nil {
		return err
	}
	old = dues{}
	var mine, finished [2][][]byte
	var settled [2][]int64
	for k, p := range saved {
		at := 0
		if found[k] {
			old.add(p.Job, p.Due)
		} else {
			at = 1
			young.add(p.Job, p.Due)
		}
		mine[at], finished[at], settled[at] = append(mine[at], p.Mine), append(finished[at], p.Finished), append(settled[at], p.Keys)
	}
	if len(old.job) > 0 {
		if _, err := c.exec(`UPDATE belfry_pass p SET mine = u.mine, finished = u.finished, keys = u.keys, moved = greatest(p.moved, $3)
FROM unnest($4::text[], $5::timestamptz[], $6::bytea[], $7::bytea[], $8::bigint[]) u(job, due, mine, finished, keys)
WHERE p.space = $1 AND p.due = u.due AND p.job = u.job AND p.session = $2`,
			c.space, c.id, c.now, old.job, old.due, mine[0], finished[0], settled[0]); err != nil {
			return err
		}
	}
	if len(young.job) == 0 {
		return nil
	}
	n, err := c.exec(`INSERT INTO belfry_pass (space, session, moved, job, due, mine, finished, keys)
SELECT $1, $2, $3, u.* FROM unnest($4::text[], $5::timestamptz[], $6::bytea[], $7::bytea[], $8::bigint[]) u ON CONFLICT DO NOTHING`,
		c.space, c.id, c.now, young.job, young.due, mine[1], finished[1], settled[1])
	if err == nil && n < int64(len(young.job)) {
		err = errAgain // another call of the session was faster
	}
	return err
}

// move moves the session's passes over the open dues that a claim batch names. Passes of closed dues are gone.
func (c *call) move(batch []idempotency.Claim) error {
	var d dues
	seen := make(map[dueOf]bool)
	for _, x := range batch {
		if k := (dueOf{x.ID.Job, x.ID.Due.Unix()}); !seen[k] {
			seen[k] = true
			d.add(x.ID.Job, x.ID.Due)
		}
	}
	if c.begin == beginRead {
		var some bool
		_, err := c.get([]any{&some}, `SELECT EXISTS (SELECT FROM unnest($3::text[], $4::timestamptz[]) u(job, due)
CROSS JOIN LATERAL (SELECT 1 FROM belfry_pass p WHERE p.space = $1 AND p.due = u.due AND p.job = u.job AND p.session = $2 LIMIT 1) p)`, c.space, c.id, d.job, d.due)
		if err == nil && some {
			err = errWrite
		}
		return err
	}
	_, err := c.exec(`UPDATE belfry_pass p SET moved = greatest(p.moved, $3) FROM unnest($4::text[], $5::timestamptz[]) u(job, due)
WHERE p.space = $1 AND p.due = u.due AND p.job = u.job AND p.session = $2`, c.space, c.id, c.now, d.job, d.due)
	return err
}

// CloseDue closes a due of a job with keys; see idempotency.Passes. It waits for the claims in flight that name the due.
func (s *Store) CloseDue(ctx context.Context, ses idempotency.Session, job string, due time.Time, missed *idempotency.Range) (closed bool, err error) {
	if err := idempotency.CheckClose(job, due, missed); err != nil {
		return false, err
	}
	err = s.with(ctx, ses, shared, func(c *call) error {
		open, err := c.isOpen(job, due)
		if err != nil || !open {
			closed = !open // before, or it was never opened
			return err
		}
		covered, err := c.isCovered(job, due)
		if err != nil {
			return err
		}
		closed = covered || missed != nil && due.Before(c.now.Add(-c.horizon))
		if !closed {
			return nil
		}
		if !covered {
			if err := c.record([]idempotency.Range{*missed}); err != nil {
				return err
			}
		}
		return c.closeDue(job, due)
	})
	return closed && err == nil, err
}

// isOpen reports whether the due is open. Where the call writes it keeps all others from what demands it open.
func (c *call) isOpen(job string, due time.Time) (bool, error) {
	text := `SELECT true FROM belfry_due WHERE space = $1 AND due = $2 AND job = $3 AND closed IS NULL`
	if c.begin == beginWrite {
		text += ` FOR UPDATE`
	}
	var open bool
	_, err := c.get([]any{&open}, text, c.space, due, job)
	return open, err
}

func (c *call) closeDue(job string, due time.Time) error {
	_, err := c.exec(`WITH p AS (DELETE FROM belfry_pass WHERE space = $1 AND due = $2 AND job = $3 RETURNING keys)
UPDATE belfry_due SET closed = $4, keys = (SELECT coalesce(sum(keys), 0) FROM p) WHERE space = $1 AND due = $2 AND job = $3`, c.space, due, job, c.now)
	return err
}

// isCovered reports whether the finished bits of all passes, those of dead sessions too, cover the partitions.
func (c *call) isCovered(job string, due time.Time) (bool, error) {
	union := rule.Bitmap(c.partitions)
	err := c.query(func(r pgx.Rows) error {
		var finished []byte
		err := r.Scan(&finished)
		rule.Or(union, finished)
		return err
	}, `SELECT finished FROM belfry_pass WHERE space = $1 AND due = $2 AND job = $3`, c.space, due, job)
	return rule.Covers(union, c.partitions), err
}
