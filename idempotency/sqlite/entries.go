package sqlite

import (
	"context"
	"database/sql"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/internal/rule"
)

const entryColumns = `e.job, e.key, e.schedule, e.hash, e.revision, e.keyed, e.leader, e.opened, e.next, e.paused_from, e.paused_until, e.retired`

// scanEntry reads entryColumns, and more behind them.
func scanEntry(r *sql.Rows, more ...any) (e idempotency.Entry, err error) {
	var key, schedule, hash []byte
	var opened, next, from, until, retired sql.NullInt64
	err = r.Scan(append([]any{&e.Job, &key, &schedule, &hash, &e.Revision, &e.Keyed, &e.Leader, &opened, &next, &from, &until, &retired}, more...)...)
	e.Key, e.Schedule, e.Hash = string(key), string(schedule), string(hash)
	e.Opened, e.Next, e.PausedFrom, e.PausedUntil, e.Retired = at(opened), at(next), at(from), at(until), at(retired)
	return e, err
}

// Declare announces definitions; see idempotency.Entries.
func (s *Store) Declare(ctx context.Context, ses idempotency.Session, nonce int64, d []idempotency.Declaration) (entries []idempotency.Entry, err error) {
	if err := idempotency.CheckDeclarations(d); err != nil {
		return nil, err
	}
	err = s.with(ctx, ses, func(c *call) error {
		if err := c.announce(nonce, d); err != nil {
			return err
		}
		entries = make([]idempotency.Entry, len(d))
		for i, x := range d {
			e, err := c.entry(x.Job)
			if err != nil {
				return err
			}
			if e != nil {
				entries[i] = *e
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return entries, nil
}

// announce makes the definitions exactly the session's. A session that repeats what it has announced under the same
// nonce writes nothing, and a call that comes after one of a higher nonce neither.
func (c *call) announce(nonce int64, d []idempotency.Declaration) error {
	if nonce < c.by.declared {
		return nil
	}
	if nonce > c.by.declared {
		if _, err := c.exec(`UPDATE belfry_session SET declared = ? WHERE id = ?`, nonce, c.by.id); err != nil {
			return err
		}
	}
	old, err := c.definitions()
	if err != nil {
		return err
	}
	special, err := c.specialEntries()
	if err != nil {
		return err
	}
	for _, x := range d {
		if old[x.Job] != x.Definition {
			if err := c.declare(x); err != nil {
				return err
			}
		}
		if special[x.Job] {
			if err := c.redeclare(x); err != nil {
				return err
			}
		}
		delete(old, x.Job)
	}
	for job := range old {
		if _, err := c.exec(`DELETE FROM belfry_definition WHERE session = ? AND job = ?`, c.by.id, job); err != nil {
			return err
		}
	}
	return nil
}

// definitions are what the session has announced, by job.
func (c *call) definitions() (map[string]idempotency.Definition, error) {
	m := make(map[string]idempotency.Definition)
	err := c.query(func(r *sql.Rows) error {
		var d idempotency.Definition
		var schedule, hash []byte
		err := r.Scan(&d.Job, &schedule, &hash, &d.Revision, &d.Keyed, &d.Leader)
		d.Schedule, d.Hash = string(schedule), string(hash)
		m[d.Job] = d
		return err
	}, `SELECT job, schedule, hash, revision, keyed, leader FROM belfry_definition WHERE session = ?`, c.by.id)
	return m, err
}

func (c *call) declare(d idempotency.Declaration) error {
	if _, err := c.exec(`INSERT OR REPLACE INTO belfry_definition (session, job, schedule, hash, revision, keyed, leader) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		c.by.id, d.Job, []byte(d.Schedule), []byte(d.Hash), d.Revision, d.Keyed, d.Leader); err != nil {
		return err
	}
	var first int64
	seen, err := c.get([]any{&first}, `SELECT first FROM belfry_seen WHERE space = ? AND job = ? AND hash = ?`, c.by.space, d.Job, []byte(d.Hash))
	if err != nil {
		return err
	}
	if !seen {
		if first, err = c.draw(); err != nil {
			return err
		}
		if _, err := c.exec(`INSERT INTO belfry_seen (space, job, hash, first) VALUES (?, ?, ?, ?)`, c.by.space, d.Job, []byte(d.Hash), first); err != nil {
			return err
		}
	}
	_, err = c.exec(`INSERT INTO belfry_entry (space, job, key, schedule, hash, revision, keyed, leader, opened, next)
VALUES (?, ?, x'', ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		c.by.space, d.Job, []byte(d.Schedule), []byte(d.Hash), d.Revision, d.Keyed, d.Leader, micro(rule.Opened(d, c.now, c.now.Add(c.by.tolerance))), micro(d.Next))
	return err
}

// specialEntries are the jobs whose entries a declaration changes, or may.
func (c *call) specialEntries() (map[string]bool, error) {
	m := make(map[string]bool)
	err := c.query(func(r *sql.Rows) error {
		var job string
		err := r.Scan(&job)
		m[job] = true
		return err
	}, `SELECT job FROM belfry_entry WHERE space = ? AND key = x'' AND (opened IS NULL OR retired IS NOT NULL OR unannounced > 0)`, c.by.space)
	return m, err
}

// redeclare makes of an entry that is there what a declaration says.
func (c *call) redeclare(d idempotency.Declaration) error {
	was, err := c.entry(d.Job)
	if err != nil {
		return err
	}
	e, missed := rule.Redeclare(*was, d, c.now, c.now.Add(c.by.tolerance))
	if missed != nil {
		if err := c.record(*missed); err != nil {
			return err
		}
	}
	n, err := c.count(`SELECT unannounced FROM belfry_entry WHERE space = ? AND job = ? AND key = x''`, c.by.space, d.Job)
	if err != nil || e == *was && n == 0 {
		return err
	}
	_, err = c.exec(`UPDATE belfry_entry SET opened = ?, next = ?, retired = NULL, unannounced = 0 WHERE space = ? AND job = ? AND key = x''`,
		micro(e.Opened), micro(e.Next), c.by.space, d.Job)
	return err
}

// entry returns the job's entry as callers see it, nil where there is none.
func (c *call) entry(job string) (e *idempotency.Entry, err error) {
	err = c.query(func(r *sql.Rows) error {
		x, err := scanEntry(r)
		e = &x
		return err
	}, `SELECT `+entryColumns+` FROM belfry_entry e WHERE e.space = ? AND e.job = ? AND e.key = x''`, c.by.space, job)
	if err != nil || e == nil {
		return nil, err
	}
	e.InForce, err = c.inForce(job)
	return e, err
}

// inForce is computed anew each time, for the end of a lease changes it without
// a write.
func (c *call) inForce(job string) (string, error) {
	var hash []byte
	_, err := c.get([]any{&hash}, `SELECT d.hash
FROM belfry_session s JOIN belfry_definition d ON d.session = s.id JOIN belfry_seen f ON f.space = s.space AND f.job = d.job AND f.hash = d.hash
WHERE s.space = ? AND s.marked IS NULL AND s.expires > ? AND d.job = ? ORDER BY d.revision DESC, f.first DESC LIMIT 1`,
		c.by.space, micro(c.now), job)
	return string(hash), err
}

// allInForce is inForce of all jobs.
func (c *call) allInForce() (map[string]string, error) {
	m := make(map[string]string)
	err := c.query(func(r *sql.Rows) error {
		var job string
		var hash []byte
		err := r.Scan(&job, &hash)
		m[job] = string(hash) // the last one beats those before it
		return err
	}, `SELECT d.job, d.hash
FROM belfry_session s JOIN belfry_definition d ON d.session = s.id JOIN belfry_seen f ON f.space = s.space AND f.job = d.job AND f.hash = d.hash
WHERE s.space = ? AND s.marked IS NULL AND s.expires > ? ORDER BY d.revision, f.first`, c.by.space, micro(c.now))
	return m, err
}

// isFresh reports whether the job's entry has that hash and the session
// announced it.
func (c *call) isFresh(job, hash string) (bool, error) {
	if h, ok := c.fresh[job]; ok {
		return h == hash, nil
	}
	var have []byte
	_, err := c.get([]any{&have}, `SELECT e.hash FROM belfry_definition d JOIN belfry_entry e ON e.job = d.job AND e.hash = d.hash
WHERE d.session = ? AND d.job = ? AND e.space = ? AND e.key = x''`, c.by.id, job, c.by.space)
	if err != nil {
		return false, err
	}
	if c.fresh == nil {
		c.fresh = make(map[string]string)
	}
	c.fresh[job] = string(have) // empty where they differ: no hash is
	return string(have) == hash, nil
}

// isOpen reports whether the due is open.
func (c *call) isOpen(job string, due time.Time) (bool, error) {
	d := dueOf{job, due.Unix()}
	if open, ok := c.open[d]; ok {
		return open, nil
	}
	var one int
	open, err := c.get([]any{&one}, `SELECT 1 FROM belfry_due WHERE space = ? AND due = ? AND job = ? AND closed IS NULL`, c.by.space, d.due, job)
	if err != nil {
		return false, err
	}
	if c.open == nil {
		c.open = make(map[dueOf]bool)
	}
	c.open[d] = open
	return open, nil
}
