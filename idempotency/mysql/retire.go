package mysql

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/internal/rule"
)

// maxRetire bounds how many runs that wait, and how many that were abandoned, one call ends, so that it meets its
// deadline whatever a job leaves. The next call ends more.
const maxRetire = 10 * idempotency.MaxBatch

// Retire counts for how long nobody has announced a job, and ends what such a job left; see idempotency.Entries. Where
// all jobs are announced it locks and writes no more than the time of the count.
func (s *Store) Retire(ctx context.Context, ses idempotency.Session, after time.Duration) (orphans []idempotency.Orphan, err error) {
	err = s.with(ctx, ses, shared, func(c *call) error {
		orphans, err = c.retire(after)
		return err
	})
	if err != nil {
		return nil, err
	}
	return orphans, nil
}

func (c *call) retire(after time.Duration) (orphans []idempotency.Orphan, err error) {
	jobs, leaving, err := c.absentJobs(after)
	if err != nil {
		return nil, err
	}
	// Sessions are locked before entries. What lapses after this is for the next call.
	if err := c.markHolders(leaving); err != nil {
		return nil, err
	}
	entries, err := c.entries(jobs, alone)
	if err != nil {
		return nil, err
	}
	passed, err := c.count()
	if err != nil {
		return nil, err
	}
	var ending []string
	for _, job := range slices.Sorted(maps.Keys(entries)) {
		e := entries[job]
		x := idempotency.Orphan{Job: job}
		switch {
		case e.InForce == "" && !e.Retired.IsZero():
			ending = append(ending, job) // what has come to wait since, or lost its session
			continue
		case e.InForce == "":
			x = rule.Unannounced(job, e.absent, passed, after)
			orphans = append(orphans, x)
		}
		var retired any
		if x.Retired {
			ending = append(ending, job)
			retired = c.now.UnixMicro()
		}
		if x.For == e.absent && !x.Retired {
			continue
		}
		if _, err := c.exec(`UPDATE belfry_entry SET absent = ?, retired = ? WHERE space = ? AND run_key = '' AND job = ?`, int64(x.For), retired, c.by.space, job); err != nil {
			return nil, err
		}
	}
	return orphans, c.endJobs(ending)
}

// absentJobs are the jobs that the count is about, and of these the ones that are retired, or will be by it. It locks none.
func (c *call) absentJobs(after time.Duration) (jobs, leaving []string, err error) {
	inForce, err := c.inForce(c.by.space, nil)
	if err != nil {
		return nil, nil, err
	}
	err = c.query(func(r *sql.Rows) error {
		var job string
		var absent time.Duration
		var retired bool
		var counted sql.NullInt64
		err := r.Scan(&job, &absent, &retired, &counted)
		switch {
		case inForce[job] == "":
			jobs = append(jobs, job)
			if retired || rule.Unannounced(job, absent, rule.Passed(at(counted), c.now), after).Retired {
				leaving = append(leaving, job)
			}
		case absent > 0:
			jobs = append(jobs, job)
		}
		return err
	}, `SELECT e.job, e.absent, e.retired IS NOT NULL, k.counted FROM belfry_entry e FORCE INDEX (PRIMARY) STRAIGHT_JOIN belfry_control k ON k.space = e.space
WHERE e.space = ? AND e.run_key = ''`, c.by.space)
	return jobs, leaving, err
}

// markHolders marks sessions dead that are not live and under which runs of the jobs are running.
func (c *call) markHolders(jobs []string) error {
	var ids []int64
	err := c.queryRows(func(r *sql.Rows) error {
		var id int64
		err := r.Scan(&id)
		ids = append(ids, id)
		return err
	}, list(jobs), `SELECT DISTINCT h.session FROM belfry_running h FORCE INDEX (PRIMARY) WHERE h.space = ? AND h.job IN (?)`, c.by.space)
	if err != nil {
		return err
	}
	return c.markLapsed(slices.Compact(slices.Sorted(slices.Values(ids))))
}

// count notes that this is the time of the last count, and returns what has passed since the one before.
func (c *call) count() (time.Duration, error) {
	var counted sql.NullInt64
	if _, err := c.get([]any{&counted}, `SELECT counted FROM belfry_control WHERE space = ?`+alone, c.by.space); err != nil {
		return 0, err
	}
	_, err := c.exec(`UPDATE belfry_control SET counted = ? WHERE space = ?`, c.now.UnixMicro(), c.by.space)
	return rule.Passed(at(counted), c.now), err
}

// endJobs ends what waits for replicas that have the jobs' code. Their entries are locked, so that nobody opens or claims.
func (c *call) endJobs(jobs []string) error {
	if len(jobs) == 0 {
		return nil
	}
	if err := c.endDues(jobs); err != nil {
		return err
	}
	limit := strconv.Itoa(maxRetire)
	var refs []ref
	scan := func(r *sql.Rows) error {
		var x ref
		err := r.Scan(&x.due, &x.job, &x.key, &x.request)
		refs = append(refs, x)
		return err
	}
	if err := c.queryRows(scan, list(jobs), `SELECT due, job, run_key, request FROM belfry_waiting FORCE INDEX (run_key) WHERE space = ? AND job IN (?) LIMIT `+limit, c.by.space); err != nil {
		return err
	}
	if err := c.queryRows(scan, list(jobs), `SELECT h.due, h.job, h.run_key, h.request FROM belfry_running h FORCE INDEX (PRIMARY)
  STRAIGHT_JOIN belfry_session s ON s.id = h.session AND s.marked IS NOT NULL WHERE h.space = ? AND h.job IN (?) LIMIT `+limit, c.by.space); err != nil {
		return err
	}
	x := c.changes(0)
	if err := x.findRows(refs, alone); err != nil {
		return err
	}
	for _, r := range x.rows {
		switch r.State {
		case idempotency.Waiting:
			x.end(r, idempotency.Skipped, rule.Retired)
		case idempotency.Running:
			x.end(r, idempotency.Failed, "abandoned")
		}
	}
	return x.write()
}

func (c *call) endDues(jobs []string) error {
	var dues []dueOf
	err := c.queryRows(func(r *sql.Rows) error {
		var d dueOf
		err := r.Scan(&d.due, &d.job)
		dues = append(dues, d)
		return err
	}, list(jobs), `SELECT due, job FROM belfry_due FORCE INDEX (closed) WHERE space = ? AND closed = 0 AND job IN (?)`, c.by.space)
	if err != nil {
		return err
	}
	open, err := c.openDues(dues, alone)
	if err != nil {
		return err
	}
	var missed []idempotency.Range
	for _, d := range sortedDues(slices.Collect(maps.Keys(open))) {
		missed = append(missed, rule.RetiredDue(d.job, time.Unix(d.due, 0)))
		if err := c.closeDue(d); err != nil {
			return err
		}
	}
	return c.record(missed...)
}
