package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/internal/rule"
)

// Lagging returns what the replica may take; see idempotency.Entries. It reads
// a snapshot, so it waits for nobody.
func (s *Store) Lagging(ctx context.Context, ses idempotency.Session, q idempotency.LagQuery) (lag idempotency.Lag, err error) {
	err = s.with(ctx, ses, func(c *call) error {
		if err := q.Validate(c.by.partitions); err != nil {
			return err
		}
		l := lagging{call: c, Lag: rule.Lag{Now: c.now, Partitions: c.by.partitions, Query: q}}
		if err := l.lateEntries(); err != nil {
			return err
		}
		lag = idempotency.Lag{Now: c.now, Entries: l.Entries(), Controls: c.by.controls}
		if lag.Open, err = c.openDues(l.Known, liveOnly); err != nil {
			return err
		}
		if q.Limit == 0 {
			return nil
		}
		if lag.Waiting, err = l.waitingRuns(); err != nil {
			return err
		}
		lag.Orphaned, err = l.orphanedRuns()
		return err
	})
	if err != nil {
		return idempotency.Lag{}, err
	}
	return lag, nil
}

// lagging answers one query.
type lagging struct {
	*call
	rule.Lag
}

func (l *lagging) lateEntries() error {
	inForce, err := l.allInForce()
	if err != nil {
		return err
	}
	return l.query(func(r *sql.Rows) error {
		var announced []byte
		e, err := scanEntry(r, &announced)
		e.InForce = inForce[e.Job]
		l.Entry(e, string(announced))
		return err
	}, `SELECT `+entryColumns+`, d.hash FROM belfry_definition d JOIN belfry_entry e ON e.space = ? AND e.job = d.job AND e.key = x''
WHERE d.session = ?`, l.by.space, l.by.id)
}

// Which passes are shown.
const (
	liveOnly = false
	deadToo  = true
)

func (c *call) openDues(known func(job string) bool, dead bool) (list []idempotency.OpenDue, err error) {
	err = c.query(func(r *sql.Rows) error {
		var x idempotency.OpenDue
		var due int64
		var opened sql.NullInt64
		err := r.Scan(&due, &x.Job, &opened, &x.CatchUp, &x.ByHand)
		if x.Due, x.Opened = time.Unix(due, 0).UTC(), at(opened); known(x.Job) {
			list = append(list, x)
		}
		return err
	}, `SELECT due, job, opened, catch_up, by_hand FROM belfry_due WHERE space = ? AND closed IS NULL ORDER BY due, job`, c.by.space)
	for i := range list {
		if err == nil {
			err = c.addPasses(&list[i], dead)
		}
	}
	return list, err
}

// addPasses adds the union of all passes, and those of live sessions, or of dead ones too.
func (c *call) addPasses(d *idempotency.OpenDue, dead bool) error {
	d.Finished = rule.Bitmap(c.by.partitions)
	return c.query(func(r *sql.Rows) error {
		p := idempotency.Pass{Job: d.Job, Due: d.Due}
		var moved sql.NullInt64
		var live bool
		err := r.Scan(&p.Session, &p.Mine, &p.Finished, &p.Keys, &moved, &live)
		p.MovedAt = at(moved)
		rule.Or(d.Finished, p.Finished)
		if live || dead {
			d.Passes = append(d.Passes, p)
		}
		return err
	}, `SELECT p.session, p.mine, p.finished, p.keys, p.moved, coalesce(s.marked IS NULL AND s.expires > ?, 0)
FROM belfry_pass p LEFT JOIN belfry_session s ON s.id = p.session WHERE p.space = ? AND p.due = ? AND p.job = ? ORDER BY p.session`,
		micro(c.now), c.by.space, d.Due.Unix(), d.Job)
}

// errEnough ends a query whose caller has all it wants.
var errEnough = errors.New("sqlite: enough rows")

// jobs are those of which runs are asked for, as JSON. What waits of another may be much, and stay for long: it is not even read.
func (l *lagging) jobs() string { return `["` + strings.Join(l.Jobs(), `","`) + `"]` }

// waitingRuns reads the waiting runs in order until there are enough.
func (l *lagging) waitingRuns() ([]idempotency.Run, error) {
	runs := l.Waiting()
	err := l.query(func(r *sql.Rows) error {
		x, err := scanRun(r)
		if err == nil && runs.Add(x, x.Wake) {
			return errEnough
		}
		return err
	}, `SELECT `+runColumns+` FROM belfry_run r INDEXED BY belfry_run_waiting LEFT JOIN belfry_session s ON s.id = r.session
WHERE r.space = ? AND r.state = 1 AND r.wake <= ? AND r.job IN (SELECT value FROM json_each(?)) AND NOT EXISTS (
  SELECT 1 FROM belfry_run h INDEXED BY belfry_run_exclusive WHERE h.space = r.space AND h.job = r.job AND h.key = r.key AND h.exclusive = 1)`+byDue,
		l.by.space, micro(l.now), l.jobs())
	if err == errEnough {
		err = nil
	}
	return runs.List, err
}

// orphanedRuns reads the running runs, which are few, rather than the dead
// sessions, which may be many.
func (l *lagging) orphanedRuns() ([]idempotency.Run, error) {
	runs := l.Orphaned()
	err := l.query(func(r *sql.Rows) error {
		var died sql.NullInt64
		x, err := scanRun(r, &died)
		if err == nil && runs.Add(x, at(died)) {
			return errEnough
		}
		return err
	}, `SELECT `+runColumns+`, min(s.expires, coalesce(s.marked, s.expires))
FROM belfry_run r INDEXED BY belfry_run_running CROSS JOIN belfry_session s ON s.id = r.session
WHERE r.state = 2 AND s.space = ? AND (s.marked IS NOT NULL OR s.expires <= ?) AND r.job IN (SELECT value FROM json_each(?))`+byDue,
		l.by.space, micro(l.now), l.jobs())
	if err == errEnough {
		err = nil
	}
	return runs.List, err
}
