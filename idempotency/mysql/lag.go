package mysql

import (
	"context"
	"database/sql"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/internal/rule"
)

// Lagging returns what the replica may take; see idempotency.Entries. It reads a snapshot, so it waits for nobody.
func (s *Store) Lagging(ctx context.Context, ses idempotency.Session, q idempotency.LagQuery) (lag idempotency.Lag, err error) {
	err = s.reads(ctx, ses, func(c *call) error {
		if err := q.Validate(c.by.partitions); err != nil {
			return err
		}
		l := lagging{call: c, Lag: rule.Lag{Now: c.now, Partitions: c.by.partitions, Query: q}}
		if err := l.lateEntries(); err != nil {
			return err
		}
		lag = idempotency.Lag{Now: c.now, Entries: l.Entries(), Controls: c.by.controls}
		if lag.Open, err = l.listOpen(openQuery{c.by.space, c.by.partitions, l.Known, true}); err != nil {
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
	inForce, err := l.inForce(l.by.space, nil)
	if err != nil {
		return err
	}
	return l.query(func(r *sql.Rows) error {
		var announced string
		e, err := scanEntry(r, &announced)
		e.InForce = inForce[e.Job]
		l.Entry(e, announced)
		return err
	}, `SELECT `+entryColumns+`, d.hash FROM belfry_definition d STRAIGHT_JOIN belfry_entry e ON e.space = ? AND e.job = d.job AND e.run_key = ''
WHERE d.session = ?`, l.by.space, l.by.id)
}

// waitingRuns reads the waiting runs in order, page by page, until there are enough.
func (l *lagging) waitingRuns() ([]idempotency.Run, error) {
	runs := l.Waiting()
	for last, more := first, true; more; {
		n := 0
		enough := false
		err := l.query(func(r *sql.Rows) error {
			var x idempotency.Run
			var wake int64
			if err := r.Scan(&last.due, &last.job, &last.key, &last.request, &x.Crashes, &wake); err != nil {
				return err
			}
			n++
			x.ID = last.id()
			enough = enough || runs.Add(x, time.UnixMicro(wake).UTC())
			return nil
		}, `SELECT w.due, w.job, w.run_key, w.request, r.crashes, w.wake
FROM belfry_waiting w FORCE INDEX (PRIMARY) STRAIGHT_JOIN belfry_run r FORCE INDEX (PRIMARY)
    ON r.space = w.space AND r.due = w.due AND r.job = w.job AND r.run_key = w.run_key AND r.request = w.request
  LEFT JOIN belfry_running h ON h.space = w.space AND h.job = w.job AND h.run_key = w.run_key AND h.slot = ''
WHERE w.space = ? AND w.wake <= ?? AND (?) AND h.space IS NULL ORDER BY w.due, w.job, w.run_key, w.request LIMIT ?`,
			l.by.space, l.now.UnixMicro(), l.asked("w."), last.behind("w."), rule.Page)
		if err != nil {
			return nil, err
		}
		more = n == rule.Page && !enough
	}
	return l.whole(runs.List)
}

// asked is the condition for runs of jobs that are asked for.
func (l *lagging) asked(table string) sqlText {
	if len(l.Query.Full) == 0 {
		return ""
	}
	return sqlText(" AND "+table+"job NOT IN (") + list(l.Query.Full).whole() + ")"
}

// orphanedRuns reads the running runs of sessions that are not live: what lies in the index between those that are.
func (l *lagging) orphanedRuns() ([]idempotency.Run, error) {
	var live []int64
	err := l.query(func(r *sql.Rows) error {
		var id int64
		err := r.Scan(&id)
		live = append(live, id)
		return err
	}, `SELECT s.id FROM belfry_session s STRAIGHT_JOIN belfry_lease l ON l.session = s.id WHERE s.space = ? AND s.marked IS NULL AND l.expires > ?`,
		l.by.space, l.now.UnixMicro())
	if err != nil {
		return nil, err
	}
	runs := l.Orphaned()
	enough := false
	err = l.query(func(r *sql.Rows) error {
		var k ref
		var x idempotency.Run
		var died int64
		if err := r.Scan(&k.due, &k.job, &k.key, &k.request, &x.Crashes, &died); err != nil {
			return err
		}
		x.ID = k.id()
		enough = enough || runs.Add(x, time.UnixMicro(died).UTC())
		return nil
	}, `SELECT r.due, r.job, r.run_key, r.request, r.crashes, least(l.expires, coalesce(l.marked, l.expires))
FROM belfry_running h FORCE INDEX (session) STRAIGHT_JOIN belfry_lease l ON l.session = h.session STRAIGHT_JOIN belfry_run r FORCE INDEX (PRIMARY)
  ON r.space = h.space AND r.due = h.due AND r.job = h.job AND r.run_key = h.run_key AND r.request = h.request
WHERE h.space = ? AND h.session NOT IN (?)?`+byDue, l.by.space, list(live).whole(), l.asked("h."))
	if err != nil {
		return nil, err
	}
	return l.whole(runs.List)
}

// whole reads all of the runs that were chosen.
func (l *lagging) whole(chosen []idempotency.Run) (runs []idempotency.Run, err error) {
	refs := make([]ref, len(chosen))
	for i, x := range chosen {
		refs[i] = refOf(x.ID)
	}
	err = runsAt(refs).packets(l.packet, func(part sqlText) error {
		some, err := l.runs(`belfry_run r FORCE INDEX (PRIMARY) WHERE space = ? AND (?)`+byDue, l.by.space, part)
		runs = append(runs, some...)
		return err
	})
	return runs, err
}
