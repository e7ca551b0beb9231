package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/internal/rule"
)

// maxRetire bounds how many runs of retired jobs end in one transaction. The next count ends more.
const maxRetire = 10 * idempotency.MaxBatch

// Retire counts for how long nobody has announced a job, and ends what such a job left; see idempotency.Entries. Of what waits
// and of what was abandoned a call ends at most 10,000 runs each.
func (s *Store) Retire(ctx context.Context, ses idempotency.Session, after time.Duration) (list []idempotency.Orphan, err error) {
	err = s.locked(ctx, ses, shared, func(c *call) error {
		x := retiring{call: c, after: after}
		list, err = x.retire()
		return err
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// retiring is one count.
type retiring struct {
	*call
	after time.Duration

	counted *time.Time // when the last count was
	entries []attended // by job
	orphans []idempotency.Orphan
	gone    []string // jobs that are retired, by this call or before
}

// attended is of an entry what a count looks at.
type attended struct {
	job       string
	retired   *time.Time
	absent    int64
	announced bool
}

func (x *retiring) retire() ([]idempotency.Orphan, error) {
	if err := x.look(); err != nil {
		return nil, err
	}
	if gone := x.gone; len(gone) > 0 {
		// Sessions before entries. A job that is declared meanwhile is announced when the lock is got.
		if err := x.markHolders(); err != nil {
			return nil, err
		}
		if err := x.lockEntries(gone); err != nil {
			return nil, err
		}
		if err := x.look(); err != nil {
			return nil, err
		}
		if !slices.Equal(gone, x.gone) {
			return nil, errAgain
		}
		for _, end := range []func() error{x.endDues, x.endWaiting, x.endOrphans} {
			if err := end(); err != nil {
				return nil, err
			}
		}
	}
	if err := x.count(); err != nil {
		return nil, err
	}
	// Another count since the look has counted what this one would count too.
	return x.orphans, x.each(1, `UPDATE belfry_control SET counted = $2 WHERE space = $1 AND counted IS NOT DISTINCT FROM $3`, x.space, x.now, x.counted)
}

// look reads the entries, and judges them.
func (x *retiring) look() error {
	if _, err := x.get([]any{&x.counted}, `SELECT counted FROM belfry_control WHERE space = $1`, x.space); err != nil {
		return err
	}
	x.entries, x.orphans, x.gone = nil, nil, nil
	passed := rule.Passed(at(x.counted), x.now)
	return x.query(func(r pgx.Rows) error {
		var e attended
		if err := r.Scan(&e.job, &e.retired, &e.absent, &e.announced); err != nil {
			return err
		}
		x.entries = append(x.entries, e)
		if e.announced {
			return nil
		}
		if e.retired == nil {
			o := rule.Unannounced(e.job, duration(e.absent), passed, x.after)
			x.orphans = append(x.orphans, o)
			if !o.Retired {
				return nil
			}
		}
		x.gone = append(x.gone, e.job)
		return nil
	}, `WITH a AS MATERIALIZED (SELECT DISTINCT d.job FROM belfry_session s JOIN belfry_definition d ON d.session = s.id
  WHERE s.space = $1 AND s.marked IS NULL AND s.expires > $2)
SELECT e.job, e.retired, e.absent, (e.job IN (SELECT a.job FROM a)) IS TRUE
FROM belfry_entry e WHERE e.space = $1 AND e.key = '' ORDER BY e.job`, x.space, x.now)
}

// markHolders marks the sessions dead that are not live and hold runs of the jobs.
func (x *retiring) markHolders() error {
	_, err := x.exec(`WITH x AS MATERIALIZED (
  SELECT s.id FROM belfry_session s WHERE s.id = ANY (ARRAY(SELECT DISTINCT o.session FROM belfry_running o WHERE o.space = $1 AND o.job = ANY ($3::text[])))
    AND s.marked IS NULL AND s.expires <= $2 ORDER BY s.id FOR UPDATE)
UPDATE belfry_session s SET marked = $2 FROM x WHERE s.id = x.id AND s.marked IS NULL`, x.space, x.now, x.gone)
	return err
}

// endDues closes the jobs' open dues.
func (x *retiring) endDues() error {
	var open dues
	var ranges []idempotency.Range
	err := x.query(func(r pgx.Rows) error {
		var job string
		var due time.Time
		err := r.Scan(&job, &due)
		open.add(job, due)
		ranges = append(ranges, rule.RetiredDue(job, due.UTC()))
		return err
	}, `SELECT d.job, d.due FROM belfry_due d WHERE d.space = $1 AND d.closed IS NULL AND d.job = ANY ($2::text[]) ORDER BY d.due, d.job FOR UPDATE`, x.space, x.gone)
	if err != nil {
		return err
	}
	for i, job := range open.job {
		if err := x.closeDue(job, open.due[i]); err != nil {
			return err
		}
	}
	return x.record(ranges)
}

// endWaiting ends the jobs' runs that wait.
func (x *retiring) endWaiting() error {
	list, err := x.ids(`SELECT r.job, r.due, r.key, r.request FROM belfry_run r
WHERE r.space = $1 AND r.wake IS NOT NULL AND r.job = ANY ($2::text[])`+byDue+` LIMIT $3`, x.space, x.gone, maxRetire)
	if err == nil {
		err = x.lockRuns(list)
	}
	if err != nil {
		return err
	}
	return x.end(list, idempotency.Waiting, idempotency.Skipped, rule.Retired)
}

// endOrphans ends the jobs' runs whose session is marked dead. No other can be taken from who holds it.
func (x *retiring) endOrphans() error {
	list, err := x.ids(`SELECT o.job, o.due, o.key, o.request FROM belfry_running o JOIN belfry_session s ON s.id = o.session
WHERE o.space = $1 AND s.marked IS NOT NULL AND o.job = ANY ($2::text[]) ORDER BY o.due, o.job, o.key, o.request LIMIT $3`, x.space, x.gone, maxRetire)
	if err == nil {
		err = x.lockRuns(list)
	}
	if err != nil || len(list) == 0 {
		return err
	}
	if err := x.end(list, idempotency.Running, idempotency.Failed, "abandoned"); err != nil {
		return err
	}
	k := keysOf(list)
	return x.each(len(k.job), `DELETE FROM belfry_running o USING (
  SELECT o.id FROM unnest($2::text[], $3::timestamptz[], $4::bytea[], $5::bytea[]) u(job, due, key, request)
  CROSS JOIN LATERAL (SELECT o.ctid AS id FROM belfry_running o
    WHERE o.space = $1 AND o.job = u.job AND o.key = u.key AND o.due = u.due AND o.request = u.request LIMIT 1) o) x
WHERE o.ctid = x.id`, x.space, k.job, k.due, k.key, k.request)
}

// ids returns the identities that a query chooses.
func (t *tx) ids(text string, args ...any) (list []idempotency.ID, err error) {
	err = t.query(func(r pgx.Rows) error {
		var id idempotency.ID
		var key, request []byte
		err := r.Scan(&id.Job, &id.Due, &key, &request)
		id.Key, id.Request, id.Due = string(key), string(request), id.Due.UTC()
		list = append(list, id)
		return err
	}, text, args...)
	return list, err
}

// count writes the entries' counts. errAgain where one was changed since it was looked at.
func (x *retiring) count() error {
	passed := rule.Passed(at(x.counted), x.now).Microseconds()
	var job []string
	var was, absent []int64
	var retired []*time.Time
	for _, e := range x.entries {
		now, since := e.absent+passed, e.retired
		switch {
		case e.announced:
			now = 0
		case e.retired != nil:
			continue
		case slices.Contains(x.gone, e.job):
			since = &x.now
		}
		if now != e.absent || since != e.retired {
			job, was, absent, retired = append(job, e.job), append(was, e.absent), append(absent, now), append(retired, since)
		}
	}
	if len(job) == 0 {
		return nil
	}
	return x.each(len(job), `UPDATE belfry_entry e SET absent = u.absent, retired = u.retired
FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::timestamptz[]) u(job, was, absent, retired)
WHERE e.space = $1 AND e.job = u.job AND e.key = '' AND e.absent = u.was`, x.space, job, was, absent, retired)
}
