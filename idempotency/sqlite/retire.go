package sqlite

import (
	"context"
	"database/sql"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/internal/rule"
)

// Retire counts for how long nobody has announced a job, and ends what such a job left; see idempotency.Entries.
func (s *Store) Retire(ctx context.Context, ses idempotency.Session, after time.Duration) (list []idempotency.Orphan, err error) {
	err = s.with(ctx, ses, func(c *call) error {
		list, err = c.retire(after)
		return err
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// counting is of an entry what a count looks at.
type counting struct {
	job         string
	retired     bool
	unannounced int64
}

func (c *call) retire(after time.Duration) (list []idempotency.Orphan, err error) {
	var counted sql.NullInt64
	if _, err := c.get([]any{&counted}, `SELECT counted FROM belfry_space WHERE id = ?`, c.by.space); err != nil {
		return nil, err
	}
	if _, err := c.exec(`UPDATE belfry_space SET counted = ? WHERE id = ?`, micro(c.now), c.by.space); err != nil {
		return nil, err
	}
	announced, err := c.allInForce()
	if err != nil {
		return nil, err
	}
	var entries []counting
	err = c.query(func(r *sql.Rows) error {
		var e counting
		err := r.Scan(&e.job, &e.retired, &e.unannounced)
		entries = append(entries, e)
		return err
	}, `SELECT job, retired IS NOT NULL, unannounced FROM belfry_entry WHERE space = ? AND key = x'' ORDER BY job`, c.by.space)
	if err != nil {
		return nil, err
	}
	passed := rule.Passed(at(counted), c.now)
	for _, e := range entries {
		x := idempotency.Orphan{Job: e.job}
		ends := e.retired // what has come to wait since, or lost its session
		if _, ok := announced[e.job]; ok {
			ends = false
		} else if !e.retired {
			x = rule.Unannounced(e.job, time.Duration(e.unannounced), passed, after)
			list = append(list, x)
			ends = x.Retired
		}
		if err := c.note(e, x); err != nil {
			return nil, err
		}
		if ends {
			if err := c.endJob(e.job); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

// note notes the count of a job.
func (c *call) note(e counting, x idempotency.Orphan) error {
	if int64(x.For) == e.unannounced && !x.Retired {
		return nil
	}
	_, err := c.exec(`UPDATE belfry_entry SET unannounced = ?, retired = coalesce(retired, iif(?, ?, NULL)) WHERE space = ? AND job = ? AND key = x''`,
		int64(x.For), x.Retired, micro(c.now), c.by.space, e.job)
	return err
}

// endJob ends what waits for a replica that has the job's code.
func (c *call) endJob(job string) error {
	var dues []time.Time
	err := c.query(func(r *sql.Rows) error {
		var due int64
		err := r.Scan(&due)
		dues = append(dues, time.Unix(due, 0))
		return err
	}, `SELECT due FROM belfry_due WHERE space = ? AND job = ? AND closed IS NULL ORDER BY due`, c.by.space, job)
	for _, due := range dues {
		if err == nil {
			err = c.record(rule.RetiredDue(job, due))
		}
		if err == nil {
			err = c.closeDue(job, due)
		}
	}
	if err != nil {
		return err
	}
	if _, err := c.exec(`UPDATE belfry_run INDEXED BY belfry_run_queued SET state = 3, outcome = ?, reason = ?, wake = NULL, finished = ?
WHERE space = ? AND job = ? AND state = 1`, idempotency.Skipped, []byte(rule.Retired), micro(c.now), c.by.space, job); err != nil {
		return err
	}
	return c.abandon(job)
}

// abandon ends the job's orphans.
func (c *call) abandon(job string) error {
	var sessions []int64
	err := c.query(func(r *sql.Rows) error {
		var id int64
		err := r.Scan(&id)
		sessions = append(sessions, id)
		return err
	}, `SELECT DISTINCT s.id FROM belfry_run r INDEXED BY belfry_run_running CROSS JOIN belfry_session s ON s.id = r.session
WHERE r.state = 2 AND r.job = ? AND s.space = ? AND (s.marked IS NOT NULL OR s.expires <= ?)`, job, c.by.space, micro(c.now))
	for _, id := range sessions {
		if err == nil {
			_, err = c.exec(`UPDATE belfry_session SET marked = ? WHERE id = ? AND marked IS NULL`, micro(c.now), id)
		}
		if err == nil {
			_, err = c.exec(`UPDATE belfry_run INDEXED BY belfry_run_running SET state = 3, outcome = ?, reason = ?, exclusive = NULL, cancel = NULL, finished = ?
WHERE session = ? AND state = 2 AND job = ?`, idempotency.Failed, []byte("abandoned"), micro(c.now), id, job)
		}
	}
	return err
}
