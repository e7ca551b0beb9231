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

const entryColumns = `e.job, e.key, e.schedule, e.hash, e.revision, e.keyed, e.leader, e.opened, e.next, e.paused_from, e.paused_until, e.retired`

// scanEntry reads entryColumns, and more behind them.
func scanEntry(r pgx.Rows, more ...any) (e idempotency.Entry, err error) {
	var key, schedule, hash []byte
	var opened, next, from, until, retired *time.Time
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
	if nonce > c.declared || len(changed) > 0 || len(withdrawn) > 0 {
		if _, err := c.exec(`UPDATE belfry_session SET declared = $2, changes = changes + 1 WHERE id = $1`, c.id, nonce); err != nil {
			return err
		}
		if len(withdrawn) > 0 {
			if _, err := c.exec(`DELETE FROM belfry_definition WHERE session = $1 AND job = ANY ($2::text[])`, c.id, slices.Collect(maps.Keys(withdrawn))); err != nil {
				return err
			}
		}
		if err := c.define(changed); err != nil {
			return err
		}
	}
	return c.enter(d)
}

// definitions are what the session has announced, by job.
func (c *call) definitions() (map[string]idempotency.Definition, error) {
	m := make(map[string]idempotency.Definition)
	err := c.query(func(r pgx.Rows) error {
		var d idempotency.Definition
		var schedule, hash []byte
		err := r.Scan(&d.Job, &schedule, &hash, &d.Revision, &d.Keyed, &d.Leader)
		d.Schedule, d.Hash = string(schedule), string(hash)
		m[d.Job] = d
		return err
	}, `SELECT job, schedule, hash, revision, keyed, leader FROM belfry_definition WHERE session = $1`, c.id)
	return m, err
}

// define writes definitions that are not the session's yet.
func (c *call) define(d []idempotency.Declaration) error {
	if len(d) == 0 {
		return nil
	}
	slices.SortFunc(d, byJob)
	x := columnsOf(d, definition)
	if _, err := c.exec(`INSERT INTO belfry_seen (space, job, hash, first)
SELECT $1, u.job, u.hash, nextval('belfry_number') FROM unnest($2::text[], $3::bytea[]) u(job, hash)
WHERE NOT EXISTS (SELECT FROM belfry_seen f WHERE f.space = $1 AND f.job = u.job AND f.hash = u.hash) ON CONFLICT DO NOTHING`, c.space, x.job, x.hash); err != nil {
		return err
	}
	_, err := c.exec(`INSERT INTO belfry_definition (session, job, schedule, hash, revision, keyed, leader, first)
SELECT $1, u.job, u.schedule, u.hash, u.revision, u.keyed, u.leader, f.first FROM unnest($3::text[], $4::bytea[], $5::bytea[], $6::bigint[], $7::boolean[], $8::boolean[]) u(job, schedule, hash, revision, keyed, leader)
CROSS JOIN LATERAL (SELECT first FROM belfry_seen f WHERE f.space = $2 AND f.job = u.job AND f.hash = u.hash LIMIT 1) f
ON CONFLICT (session, job) DO UPDATE SET schedule = excluded.schedule, hash = excluded.hash, revision = excluded.revision, keyed = excluded.keyed, leader = excluded.leader, first = excluded.first`,
		c.id, c.space, x.job, x.schedule, x.hash, x.revision, x.keyed, x.leader)
	return err
}

func byJob(a, b idempotency.Declaration) int { return strings.Compare(a.Job, b.Job) }

// standing is an entry that a declaration finds, and for how many microseconds nobody had announced its job.
type standing struct {
	idempotency.Entry
	absent int64
}

// enter makes entries of jobs that have none, and sets those going again that were retired, or that were an efficiency
// job's. Where it writes, nobody retires a job that is declared until the call has committed: so whoever comes second
// sees what the first one did.
func (c *call) enter(d []idempotency.Declaration) error {
	d = slices.SortedFunc(slices.Values(d), byJob)
	found, err := c.standings(d)
	if err != nil {
		return err
	}
	limit := c.now.Add(c.tolerance)
	var young []idempotency.Declaration
	var was, is []standing
	var ranges []idempotency.Range
	for _, x := range d {
		e, ok := found[x.Job]
		if !ok {
			x.Opened = rule.Opened(x, c.now, limit)
			young = append(young, x)
			continue
		}
		again, missed := rule.Redeclare(e.Entry, x, c.now, limit)
		if again != e.Entry || e.absent > 0 {
			was, is = append(was, e), append(is, standing{Entry: again})
		}
		if missed != nil {
			ranges = append(ranges, *missed)
		}
	}
	if err := c.makeEntries(young); err != nil {
		return err
	}
	if err := c.revive(was, is); err != nil {
		return err
	}
	return c.record(ranges)
}

// standings are those of the declared jobs that have an entry.
func (c *call) standings(d []idempotency.Declaration) (map[string]standing, error) {
	lock := ` LIMIT 1`
	if c.begin == beginWrite {
		lock = ` FOR KEY SHARE`
	}
	jobs := columnsOf(d, definition).job
	m := make(map[string]standing, len(jobs))
	err := c.query(func(r pgx.Rows) (err error) {
		var x standing
		x.Entry, err = scanEntry(r, &x.absent)
		m[x.Job] = x
		return err
	}, `SELECT `+entryColumns+`, e.absent FROM unnest($2::text[]) u(job)
CROSS JOIN LATERAL (SELECT * FROM belfry_entry e WHERE e.space = $1 AND e.job = u.job AND e.key = ''`+lock+`) e`, c.space, jobs)
	return m, err
}

func (c *call) makeEntries(d []idempotency.Declaration) error {
	if len(d) == 0 {
		return nil
	}
	x := columnsOf(d, definition)
	var opened, next []*time.Time
	for _, v := range d {
		opened, next = append(opened, instant(v.Opened)), append(next, instant(v.Next))
	}
	_, err := c.exec(`INSERT INTO belfry_entry (space, job, key, schedule, hash, revision, keyed, leader, opened, next)
SELECT $1, u.job, '', u.schedule, u.hash, u.revision, u.keyed, u.leader, u.opened, u.next
FROM unnest($2::text[], $3::bytea[], $4::bytea[], $5::bigint[], $6::boolean[], $7::boolean[], $8::timestamptz[], $9::timestamptz[]) u(job, schedule, hash, revision, keyed, leader, opened, next)
ON CONFLICT DO NOTHING`, c.space, x.job, x.schedule, x.hash, x.revision, x.keyed, x.leader, opened, next)
	return err
}

// revive changes entries from what they were. errAgain where one is not so any more.
func (c *call) revive(was, is []standing) error {
	if len(is) == 0 {
		return nil
	}
	var job []string
	var opened, next, wasOpened, wasRetired []*time.Time
	var absent []int64
	for i, x := range is {
		job, opened, next = append(job, x.Job), append(opened, instant(x.Opened)), append(next, instant(x.Next))
		wasOpened, wasRetired, absent = append(wasOpened, instant(was[i].Opened)), append(wasRetired, instant(was[i].Retired)), append(absent, was[i].absent)
	}
	n, err := c.exec(`UPDATE belfry_entry e SET opened = u.opened, next = u.next, retired = NULL, absent = 0
FROM unnest($2::text[], $3::timestamptz[], $4::timestamptz[], $5::timestamptz[], $6::timestamptz[], $7::bigint[]) u(job, opened, next, was_opened, was_retired, was_absent)
WHERE e.space = $1 AND e.job = u.job AND e.key = '' AND e.absent = u.was_absent
  AND e.opened IS NOT DISTINCT FROM u.was_opened AND e.retired IS NOT DISTINCT FROM u.was_retired`,
		c.space, job, opened, next, wasOpened, wasRetired, absent)
	if err == nil && n < int64(len(is)) {
		err = errAgain
	}
	return err
}

func definition(d idempotency.Declaration) idempotency.Definition { return d.Definition }

// definitionColumns are definitions, column by column.
type definitionColumns struct {
	job            []string
	schedule, hash [][]byte
	revision       []int64
	keyed, leader  []bool
}

func columnsOf[T any](list []T, of func(T) idempotency.Definition) (x definitionColumns) {
	for _, v := range list {
		d := of(v)
		x.job, x.schedule, x.hash = append(x.job, d.Job), append(x.schedule, []byte(d.Schedule)), append(x.hash, []byte(d.Hash))
		x.revision, x.keyed, x.leader = append(x.revision, d.Revision), append(x.keyed, d.Keyed), append(x.leader, d.Leader)
	}
	return x
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
