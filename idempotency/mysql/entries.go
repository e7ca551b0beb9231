package mysql

import (
	"cmp"
	"context"
	"database/sql"
	"maps"
	"slices"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/internal/rule"
)

const entryColumns = `e.job, e.run_key, e.schedule, e.hash, e.revision, e.keyed, e.opened, e.next, e.paused_from, e.paused_until, e.retired`

// scanEntry reads entryColumns, and more behind them.
func scanEntry(r *sql.Rows, more ...any) (e idempotency.Entry, err error) {
	var opened, next, from, until, retired sql.NullInt64
	err = r.Scan(append([]any{&e.Job, &e.Key, &e.Schedule, &e.Hash, &e.Revision, &e.Keyed, &opened, &next, &from, &until, &retired}, more...)...)
	e.Opened, e.Next, e.PausedFrom, e.PausedUntil, e.Retired = at(opened), at(next), at(from), at(until), at(retired)
	return e, err
}

// list makes a list of values, each once and in order.
func list[T cmp.Ordered](values []T) *rows {
	r := &rows{}
	for _, v := range slices.Compact(slices.Sorted(slices.Values(values))) {
		r.value(v)
	}
	return r
}

// Declare announces definitions; see idempotency.Entries.
func (s *Store) Declare(ctx context.Context, ses idempotency.Session, nonce int64, d []idempotency.Declaration) (entries []idempotency.Entry, err error) {
	if err := idempotency.CheckDeclarations(d); err != nil {
		return nil, err
	}
	jobs := make([]string, len(d))
	for i, x := range d {
		jobs[i] = x.Job
	}
	err = s.with(ctx, ses, alone, func(c *call) error {
		if err := c.announce(nonce, d); err != nil {
			return err
		}
		// Locked, so that a decision is either seen here or sees what is announced here.
		all, err := c.entries(jobs, shared)
		if err != nil {
			return err
		}
		entries = make([]idempotency.Entry, len(d))
		for i, x := range d {
			entries[i] = all[x.Job]
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
	var fresh []idempotency.Declaration
	for _, x := range d {
		if old[x.Job] == x.Definition {
			delete(old, x.Job)
			continue
		}
		fresh = append(fresh, x)
	}
	if _, err := c.execRows(list(slices.Collect(maps.Keys(old))), `DELETE FROM belfry_definition WHERE session = ? AND job IN (?)`, c.by.id); err != nil {
		return err
	}
	slices.SortFunc(fresh, func(a, b idempotency.Declaration) int { return cmp.Compare(a.Job, b.Job) })
	return c.declare(fresh)
}

// definitions are what the session has announced, by job.
func (c *call) definitions() (map[string]idempotency.Definition, error) {
	m := make(map[string]idempotency.Definition)
	err := c.query(func(r *sql.Rows) error {
		var d idempotency.Definition
		err := r.Scan(&d.Job, &d.Schedule, &d.Hash, &d.Revision, &d.Keyed)
		m[d.Job] = d
		return err
	}, `SELECT job, schedule, hash, revision, keyed FROM belfry_definition WHERE session = ?`, c.by.id)
	return m, err
}

// declare writes definitions that the session has no row of, in the order of their jobs. Of two sessions that see a
// definition or a job first, one finds a duplicate, and tries again.
func (c *call) declare(d []idempotency.Declaration) error {
	if len(d) == 0 {
		return nil
	}
	var definitions, jobs, seen, entries rows
	for _, x := range d {
		definitions.add(c.by.id, x.Job, x.Schedule, x.Hash, x.Revision, x.Keyed)
		jobs.value(x.Job)
	}
	if _, err := c.insert(&definitions, `INSERT INTO belfry_definition (session, job, schedule, hash, revision, keyed)`, ``); err != nil {
		return err
	}
	old := make(map[[2]string]bool) // by job and hash; an entry has no hash
	note := func(r *sql.Rows) error {
		var job, hash string
		err := r.Scan(&job, &hash)
		old[[2]string{job, hash}] = true
		return err
	}
	if err := c.queryRows(note, &jobs, `SELECT job, hash FROM belfry_seen WHERE space = ? AND job IN (?)`, c.by.space); err != nil {
		return err
	}
	if err := c.queryRows(note, &jobs, `SELECT job, '' FROM belfry_entry WHERE space = ? AND run_key = '' AND job IN (?)`, c.by.space); err != nil {
		return err
	}
	drawn, err := c.draw()
	if err != nil {
		return err
	}
	for _, x := range d {
		if !old[[2]string{x.Job, x.Hash}] {
			seen.add(c.by.space, x.Job, x.Hash, drawn)
		}
		if !old[[2]string{x.Job}] {
			entries.add(c.by.space, x.Job, "", x.Schedule, x.Hash, x.Revision, x.Keyed, micro(c.openedUpTo(x.Opened)), micro(x.Next))
		}
	}
	if _, err := c.insert(&seen, `INSERT INTO belfry_seen (space, job, hash, drawn)`, ``); err != nil {
		return err
	}
	_, err = c.insert(&entries, `INSERT INTO belfry_entry (space, job, run_key, schedule, hash, revision, keyed, opened, next)`, ``)
	return err
}

// openedUpTo is what a new entry counts as decided.
func (c *call) openedUpTo(t time.Time) time.Time {
	if t = rule.Instant(t); t.After(c.now.Add(c.by.tolerance)) {
		return c.now
	}
	return t
}

// entries returns the jobs' entries as callers see them, by job.
func (c *call) entries(jobs []string, lock string) (map[string]idempotency.Entry, error) {
	m := make(map[string]idempotency.Entry)
	names := list(jobs)
	err := names.packets(c.packet, func(part sqlText) error {
		return c.query(func(r *sql.Rows) error {
			e, err := scanEntry(r)
			m[e.Job] = e
			return err
		}, `SELECT `+entryColumns+` FROM belfry_entry e FORCE INDEX (PRIMARY) WHERE e.space = ? AND e.run_key = '' AND e.job IN (?)`+lock, c.by.space, part)
	})
	if err != nil {
		return nil, err
	}
	inForce, err := c.inForce(c.by.space, names)
	for job, e := range m {
		e.InForce = inForce[job]
		m[job] = e
	}
	return m, err
}

// inForce is computed anew each time, for the end of a lease changes it without a write. No names: of all jobs.
func (t *tx) inForce(space int64, names *rows) (map[string]string, error) {
	m := make(map[string]string)
	scan := func(r *sql.Rows) error {
		var job, hash string
		var revision, drawn int64
		err := r.Scan(&job, &hash, &revision, &drawn)
		m[job] = hash // the last one beats those before it
		return err
	}
	const announced = `SELECT DISTINCT d.job, d.hash, d.revision, f.drawn
FROM belfry_session s STRAIGHT_JOIN belfry_lease l ON l.session = s.id STRAIGHT_JOIN belfry_definition d ON d.session = s.id
  STRAIGHT_JOIN belfry_seen f ON f.space = s.space AND f.job = d.job AND f.hash = d.hash
WHERE s.space = ? AND s.marked IS NULL AND l.expires > ?`
	const order = ` ORDER BY revision, drawn`
	if names == nil {
		return m, t.query(scan, announced+order, space, t.now.UnixMicro())
	}
	err := names.packets(t.packet, func(part sqlText) error {
		return t.query(scan, announced+` AND d.job IN (?)`+order, space, t.now.UnixMicro(), part)
	})
	return m, err
}

// freshHashes returns, by job, the hash that the entry has and the session announced, and holds it for the call.
func (c *call) freshHashes(jobs []string) (map[string]string, error) {
	m := make(map[string]string)
	err := list(jobs).packets(c.packet, func(part sqlText) error {
		return c.query(func(r *sql.Rows) error {
			var job, hash string
			err := r.Scan(&job, &hash)
			m[job] = hash
			return err
		}, `SELECT e.job, e.hash FROM belfry_entry e FORCE INDEX (PRIMARY)
  STRAIGHT_JOIN belfry_definition d ON d.session = ? AND d.job = e.job AND d.hash = e.hash
WHERE e.space = ? AND e.run_key = '' AND e.job IN (?)`+shared, c.by.id, c.by.space, part)
	})
	return m, err
}

// dueOf is a due of a job with keys.
type dueOf struct {
	due int64
	job string
}

// openDues returns which of the dues are open, and holds them so for the call.
func (c *call) openDues(dues []dueOf, lock string) (map[dueOf]bool, error) {
	m := make(map[dueOf]bool)
	err := c.queryRows(func(r *sql.Rows) error {
		var d dueOf
		err := r.Scan(&d.due, &d.job)
		m[d] = true
		return err
	}, dueRows(dues), `SELECT due, job FROM belfry_due FORCE INDEX (PRIMARY) WHERE space = ? AND closed = 0 AND (due, job) IN (?)`+lock, c.by.space)
	return m, err
}
