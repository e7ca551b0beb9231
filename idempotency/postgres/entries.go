package postgres

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/internal/rule"
)

const entryColumns = `e.job, e.key, e.schedule, e.hash, e.revision, e.opened, e.next, e.paused_from, e.paused_until`

// scanEntry reads entryColumns, and more behind them.
func scanEntry(r pgx.Rows, more ...any) (e idempotency.Entry, err error) {
	var key, schedule, hash []byte
	var opened time.Time
	var next, from, until *time.Time
	err = r.Scan(append([]any{&e.Job, &key, &schedule, &hash, &e.Revision, &opened, &next, &from, &until}, more...)...)
	e.Key, e.Schedule, e.Hash = string(key), string(schedule), string(hash)
	e.Opened, e.Next, e.PausedFrom, e.PausedUntil = opened.UTC(), at(next), at(from), at(until)
	return e, err
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
	// The calls of the session that rely on its definitions end before they change.
	err = s.with(ctx, ses, alone, func(c *call) error {
		if err := c.announce(nonce, d); err != nil {
			return err
		}
		found, err := c.entries(jobs)
		if err != nil {
			return err
		}
		entries = make([]idempotency.Entry, len(d))
		for i, job := range jobs {
			entries[i] = found[job].Entry
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return entries, nil
}

// announce makes the definitions exactly the session's. A session that repeats what it has announced under the same nonce
// writes nothing, and a call that comes after one of a higher nonce neither.
func (c *call) announce(nonce int64, d []idempotency.Declaration) error {
	if nonce < c.declared {
		return nil
	}
	withdrawn, err := c.definitions()
	if err != nil {
		return err
	}
	var changed []idempotency.Declaration
	for _, x := range d {
		if withdrawn[x.Job] != x.Definition {
			changed = append(changed, x)
		}
		delete(withdrawn, x.Job)
	}
	if nonce == c.declared && len(changed) == 0 && len(withdrawn) == 0 {
		return nil
	}
	if _, err := c.exec(`UPDATE belfry_session SET declared = $2, changes = changes + 1 WHERE id = $1`, c.id, nonce); err != nil {
		return err
	}
	if len(withdrawn) > 0 {
		if _, err := c.exec(`DELETE FROM belfry_definition WHERE session = $1 AND job = ANY ($2::text[])`, c.id, slices.Collect(maps.Keys(withdrawn))); err != nil {
			return err
		}
	}
	if len(changed) == 0 {
		return nil
	}
	return c.declare(changed)
}

// definitions are what the session has announced, by job.
func (c *call) definitions() (map[string]idempotency.Definition, error) {
	m := make(map[string]idempotency.Definition)
	err := c.query(func(r pgx.Rows) error {
		var d idempotency.Definition
		var schedule, hash []byte
		err := r.Scan(&d.Job, &schedule, &hash, &d.Revision)
		d.Schedule, d.Hash = string(schedule), string(hash)
		m[d.Job] = d
		return err
	}, `SELECT job, schedule, hash, revision FROM belfry_definition WHERE session = $1`, c.id)
	return m, err
}

// declare writes definitions that are not the session's yet, and entries of jobs that have none.
func (c *call) declare(d []idempotency.Declaration) error {
	slices.SortFunc(d, func(a, b idempotency.Declaration) int { return strings.Compare(a.Job, b.Job) })
	n := len(d)
	job, schedule, hash, revision := make([]string, n), make([][]byte, n), make([][]byte, n), make([]int64, n)
	opened, next := make([]time.Time, n), make([]*time.Time, n)
	for i, x := range d {
		job[i], schedule[i], hash[i], revision[i] = x.Job, []byte(x.Schedule), []byte(x.Hash), x.Revision
		opened[i], next[i] = x.Opened, instant(x.Next)
		if rule.Instant(x.Opened).After(c.now.Add(c.tolerance)) {
			opened[i] = c.now
		}
	}
	if _, err := c.exec(`INSERT INTO belfry_seen (space, job, hash, first)
SELECT $1, u.job, u.hash, nextval('belfry_number') FROM unnest($2::text[], $3::bytea[]) u(job, hash)
WHERE NOT EXISTS (SELECT FROM belfry_seen f WHERE f.space = $1 AND f.job = u.job AND f.hash = u.hash) ON CONFLICT DO NOTHING`, c.space, job, hash); err != nil {
		return err
	}
	if _, err := c.exec(`INSERT INTO belfry_definition (session, job, schedule, hash, revision, first)
SELECT $1, u.job, u.schedule, u.hash, u.revision, f.first FROM unnest($3::text[], $4::bytea[], $5::bytea[], $6::bigint[]) u(job, schedule, hash, revision)
CROSS JOIN LATERAL (SELECT first FROM belfry_seen f WHERE f.space = $2 AND f.job = u.job AND f.hash = u.hash LIMIT 1) f
ON CONFLICT (session, job) DO UPDATE SET schedule = excluded.schedule, hash = excluded.hash, revision = excluded.revision, first = excluded.first`,
		c.id, c.space, job, schedule, hash, revision); err != nil {
		return err
	}
	_, err := c.exec(`INSERT INTO belfry_entry (space, job, key, schedule, hash, revision, opened, next)
SELECT $1, u.job, '', u.schedule, u.hash, u.revision, u.opened, u.next
FROM unnest($2::text[], $3::bytea[], $4::bytea[], $5::bigint[], $6::timestamptz[], $7::timestamptz[]) u(job, schedule, hash, revision, opened, next)
WHERE NOT EXISTS (SELECT FROM belfry_entry e WHERE e.space = $1 AND e.job = u.job AND e.key = '') ON CONFLICT DO NOTHING`,
		c.space, job, schedule, hash, revision, opened, next)
	return err
}

// entry is an entry as callers see it, and of the session what it announced of its job and the nonce under which it last
// won a decision of it: empty and nil where there is none.
type entry struct {
	idempotency.Entry
	announced string
	nonce     *int64
}

// entries returns those of the jobs that have one, by job.
func (c *call) entries(jobs []string) (map[string]entry, error) {
	inForce, err := c.inForce(jobs)
	if err != nil {
		return nil, err
	}
	m := make(map[string]entry, len(jobs))
	err = c.query(func(r pgx.Rows) (err error) {
		var x entry
		var announced []byte
		x.Entry, err = scanEntry(r, &announced, &x.nonce)
		x.InForce, x.announced = inForce[x.Job], string(announced)
		m[x.Job] = x
		return err
	}, `SELECT `+entryColumns+`, d.hash, w.nonce FROM unnest($3::text[]) u(job)
CROSS JOIN LATERAL (SELECT * FROM belfry_entry e WHERE e.space = $1 AND e.job = u.job AND e.key = '' LIMIT 1) e
LEFT JOIN LATERAL (SELECT hash FROM belfry_definition d WHERE d.session = $2 AND d.job = u.job LIMIT 1) d ON true
LEFT JOIN LATERAL (SELECT nonce FROM belfry_decision w WHERE w.session = $2 AND w.job = u.job AND w.key = '' LIMIT 1) w ON true`,
		c.space, c.id, jobs)
	return m, err
}

// inForce is computed anew each time, for the end of a lease changes it without a write.
func (c *call) inForce(jobs []string) (map[string]string, error) {
	m := make(map[string]string, len(jobs))
	err := c.query(func(r pgx.Rows) error {
		var job string
		var hash []byte
		err := r.Scan(&job, &hash)
		m[job] = string(hash)
		return err
	}, `SELECT DISTINCT ON (d.job) d.job, d.hash FROM belfry_session s JOIN belfry_definition d ON d.session = s.id
WHERE s.space = $1 AND s.marked IS NULL AND s.expires > $2 AND d.job = ANY ($3::text[]) ORDER BY d.job, d.revision DESC, d.first DESC`,
		c.space, c.now, jobs)
	return m, err
}
