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

const entryColumns = `e.job, e.run_key, e.schedule, e.hash, e.revision, e.keyed, e.leader, e.opened, e.next, e.paused_from, e.paused_until, e.retired`

// scanEntry reads entryColumns, and more behind them.
func scanEntry(r *sql.Rows, more ...any) (e idempotency.Entry, err error) {
	var opened, next, from, until, retired sql.NullInt64
	err = r.Scan(append([]any{&e.Job, &e.Key, &e.Schedule, &e.Hash, &e.Revision, &e.Keyed, &e.Leader, &opened, &next, &from, &until, &retired}, more...)...)
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
	err = s.with(ctx, ses, alone, func(c *call) error {
		if nonce >= c.by.declared {
			if err := c.announce(nonce, d); err != nil {
				return err
			}
		}
		entries, err = c.declare(d, nonce < c.by.declared)
		return err
	})
	if err != nil {
		return nil, err
	}
	return entries, nil
}

// announce makes the definitions exactly the session's. A session that repeats what it has announced under the same
// nonce writes nothing.
func (c *call) announce(nonce int64, d []idempotency.Declaration) error {
	if nonce > c.by.declared {
		if _, err := c.exec(`UPDATE belfry_session SET declared = ? WHERE id = ?`, nonce, c.by.id); err != nil {
			return err
		}
	}
	old, err := c.definitions()
	if err != nil {
		return err
	}
	var fresh []idempotency.Definition
	for _, x := range d {
		if old[x.Job] == x.Definition {
			delete(old, x.Job)
			continue
		}
		fresh = append(fresh, x.Definition)
	}
	if _, err := c.execRows(list(slices.Collect(maps.Keys(old))), `DELETE FROM belfry_definition WHERE session = ? AND job IN (?)`, c.by.id); err != nil {
		return err
	}
	slices.SortFunc(fresh, func(a, b idempotency.Definition) int { return cmp.Compare(a.Job, b.Job) })
	return c.addDefinitions(fresh)
}

// definitions are what the session has announced, by job.
func (c *call) definitions() (map[string]idempotency.Definition, error) {
	m := make(map[string]idempotency.Definition)
	err := c.query(func(r *sql.Rows) error {
		var d idempotency.Definition
		err := r.Scan(&d.Job, &d.Schedule, &d.Hash, &d.Revision, &d.Keyed, &d.Leader)
		m[d.Job] = d
		return err
	}, `SELECT job, schedule, hash, revision, keyed, leader FROM belfry_definition WHERE session = ?`, c.by.id)
	return m, err
}

// addDefinitions writes definitions that the session has no row of, in the order of their jobs. Of two sessions that see
// one first, one finds a duplicate, and tries again.
func (c *call) addDefinitions(d []idempotency.Definition) error {
	if len(d) == 0 {
		return nil
	}
	var definitions, jobs, seen rows
	for _, x := range d {
		definitions.add(c.by.id, x.Job, x.Schedule, x.Hash, x.Revision, x.Keyed, x.Leader)
		jobs.value(x.Job)
	}
	if _, err := c.insert(&definitions, `INSERT INTO belfry_definition (session, job, schedule, hash, revision, keyed, leader)`, ``); err != nil {
		return err
	}
	old := make(map[[2]string]bool) // by job and hash
	err := c.queryRows(func(r *sql.Rows) error {
		var job, hash string
		err := r.Scan(&job, &hash)
		old[[2]string{job, hash}] = true
		return err
	}, &jobs, `SELECT job, hash FROM belfry_seen WHERE space = ? AND job IN (?)`, c.by.space)
	if err != nil {
		return err
	}
	var drawn int64
	for _, x := range d {
		if old[[2]string{x.Job, x.Hash}] {
			continue
		}
		if drawn == 0 {
			if drawn, err = c.draw(); err != nil {
				return err
			}
		}
		seen.add(c.by.space, x.Job, x.Hash, drawn)
	}
	_, err = c.insert(&seen, `INSERT INTO belfry_seen (space, job, hash, drawn)`, ``)
	return err
}

// declare gives the declared jobs entries, unless it comes late, and returns them. They are locked, so that a decision is
// either seen here or sees what is announced here.
func (c *call) declare(d []idempotency.Declaration, late bool) ([]idempotency.Entry, error) {
	jobs := make([]string, len(d))
	for i, x := range d {
		jobs[i] = x.Job
	}
	all, err := c.entries(jobs, shared)
	if err == nil && !late {
		var changed bool
		if changed, err = c.enter(d, all); changed && err == nil {
			all, err = c.entries(jobs, shared)
		}
	}
	entries := make([]idempotency.Entry, len(d))
	for i, x := range d {
		entries[i] = all[x.Job].Entry
	}
	return entries, err
}

// enter writes entries of jobs that have none, and changes those of jobs that come back, or that the store decides from
// now on. Of two sessions that do either at once, one finds a duplicate or a deadlock, and tries again.
func (c *call) enter(d []idempotency.Declaration, there map[string]entry) (changed bool, err error) {
	var fresh rows
	var missed []idempotency.Range
	limit := c.now.Add(c.by.tolerance)
	for _, x := range slices.SortedFunc(slices.Values(d), func(a, b idempotency.Declaration) int { return cmp.Compare(a.Job, b.Job) }) {
		was, ok := there[x.Job]
		if !ok {
			fresh.add(c.by.space, x.Job, "", x.Schedule, x.Hash, x.Revision, x.Keyed, x.Leader, micro(rule.Opened(x, c.now, limit)), micro(x.Next))
			continue
		}
		e, gap := rule.Redeclare(was.Entry, x, c.now, limit)
		if e == was.Entry && was.absent == 0 {
			continue
		}
		if gap != nil {
			missed = append(missed, *gap)
		}
		changed = true
		if _, err := c.exec(`UPDATE belfry_entry SET opened = ?, next = ?, absent = 0, retired = NULL WHERE space = ? AND run_key = '' AND job = ?`,
			micro(e.Opened), micro(e.Next), c.by.space, x.Job); err != nil {
			return false, err
		}
	}
	if _, err := c.insert(&fresh, `INSERT INTO belfry_entry (space, job, run_key, schedule, hash, revision, keyed, leader, opened, next)`, ``); err != nil {
		return false, err
	}
	return changed || len(fresh.ends) > 0, c.record(missed...)
}

// entry is an entry's row.
type entry struct {
	idempotency.Entry
	absent time.Duration // for so long nobody has announced the job
}

// entries returns the jobs' entries as callers see them, by job.
func (c *call) entries(jobs []string, lock string) (map[string]entry, error) {
	m := make(map[string]entry)
	names := list(jobs)
	err := names.packets(c.packet, func(part sqlText) error {
		return c.query(func(r *sql.Rows) (err error) {
			var e entry
			e.Entry, err = scanEntry(r, &e.absent)
			m[e.Job] = e
			return err
		}, `SELECT `+entryColumns+`, e.absent FROM belfry_entry e FORCE INDEX (PRIMARY) WHERE e.space = ? AND e.run_key = '' AND e.job IN (?)`+lock, c.by.space, part)
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
