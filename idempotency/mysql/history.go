package mysql

import (
	"context"
	"database/sql"
	"iter"
	"math"
	"strings"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/internal/rule"
)

// List yields runs; see idempotency.History. It reads page by page, each as it stands at that instant; between pages it
// holds neither a connection nor a snapshot. A key without bounds on the due reads all runs of the namespace; what waits
// or runs is found without reading those that have ended.
func (s *Store) List(ctx context.Context, f idempotency.Filter) iter.Seq2[idempotency.Run, error] {
	return rule.Pages(f.Namespace, func() func() ([]idempotency.Run, bool, error) {
		left := f.Limit
		if left <= 0 {
			left = math.MaxInt
		}
		last := begin(f)
		return func() (list []idempotency.Run, more bool, err error) {
			n := min(left, rule.Page)
			err = s.read(ctx, func(t *tx) error {
				space, err := t.spaceOf(f.Namespace)
				if err == nil && space != 0 {
					list, err = t.list(space, f, last, n)
				}
				return err
			})
			if len(list) > 0 {
				last = refOf(list[len(list)-1].ID)
			}
			left -= len(list)
			return list, len(list) == n && left > 0, err
		}
	})
}

// begin is what a listing begins beyond: less, or with Newest more, than any of the first due that it may have, for no
// job has an empty name.
func begin(f idempotency.Filter) ref {
	switch {
	case f.Newest && f.To.IsZero():
		return final
	case f.Newest:
		return ref{due: rule.Ceil(f.To).Unix()}
	case f.From.IsZero():
		return first
	}
	return ref{due: rule.Ceil(f.From).Unix()}
}

// spaceOf is the namespace's id, 0 where there is none.
func (t *tx) spaceOf(namespace string) (id int64, err error) {
	_, err = t.get([]any{&id}, `SELECT id FROM belfry_space WHERE name = ?`, namespace)
	return id, err
}

// Where runs are found by their state, and the name of the table that leads there.
const (
	allRuns     = `belfry_run r FORCE INDEX (PRIMARY) WHERE r.space = ?`
	waitingRuns = `belfry_waiting w FORCE INDEX (PRIMARY)` + itsRun
	runningRuns = `belfry_running w FORCE INDEX (PRIMARY)` + itsRun
	itsRun      = ` STRAIGHT_JOIN belfry_run r FORCE INDEX (PRIMARY)
  ON r.space = w.space AND r.due = w.due AND r.job = w.job AND r.run_key = w.run_key AND r.request = w.request WHERE w.space = ?`
)

// list returns up to n runs behind the last one, or before it where the newest come first.
func (t *tx) list(space int64, f idempotency.Filter, last ref, n int) ([]idempotency.Run, error) {
	where, args := allRuns, []any{space}
	table, order := "r.", byDue
	switch f.State {
	case idempotency.Waiting:
		where, table = waitingRuns, "w."
	case idempotency.Running:
		where, table = runningRuns, "w."
	}
	add := func(condition string, arg any) {
		where += " AND " + condition
		args = append(args, arg)
	}
	if f.Newest {
		order = newestFirst
		add(`(?)`, last.before(table))
	} else {
		add(`(?)`, last.behind(table))
	}
	if !f.From.IsZero() {
		add(table+`due >= ?`, rule.Ceil(f.From).Unix())
	}
	if !f.To.IsZero() {
		add(table+`due < ?`, rule.Ceil(f.To).Unix())
	}
	if f.Job != "" {
		add(table+`job = ?`, f.Job)
	}
	if f.Key != "" {
		add(table+`run_key = ?`, f.Key)
	}
	if f.State != 0 {
		add(`r.state = ?`, int(f.State))
	}
	if f.Outcome != 0 {
		add(`r.outcome = ?`, int(f.Outcome))
	}
	return t.runs(where+strings.ReplaceAll(order, "r.", table)+` LIMIT ?`, append(args, n)...)
}

// Ranges yields ranges; see idempotency.History. It reads as List does.
func (s *Store) Ranges(ctx context.Context, namespace, job string) iter.Seq2[idempotency.Range, error] {
	return rule.Pages(namespace, func() func() ([]idempotency.Range, bool, error) {
		last := rangeKey{low: math.MinInt64 + 1}
		return func() (list []idempotency.Range, more bool, err error) {
			next := last
			err = s.read(ctx, func(t *tx) error {
				space, err := t.spaceOf(namespace)
				if err == nil && space != 0 {
					list, next, err = t.ranges(space, job, last)
				}
				return err
			})
			last = next
			return list, len(list) == rule.Page, err
		}
	})
}

// rangeKey is a range's primary key within its namespace.
type rangeKey struct {
	low, high int64
	job       string
	id        int64
}

// ranges returns a page of ranges behind the one that has the key, and the key of the last of them.
func (t *tx) ranges(space int64, job string, k rangeKey) (list []idempotency.Range, last rangeKey, err error) {
	last = k
	err = t.query(func(r *sql.Rows) error {
		var x idempotency.Range
		err := r.Scan(&last.low, &last.high, &last.job, &last.id, &x.Count, &x.Outcome, &x.Reason)
		x.Job, x.From, x.To = last.job, time.UnixMicro(last.low).UTC(), time.UnixMicro(last.high).UTC()
		list = append(list, x)
		return err
	}, `SELECT low, high, job, id, dues, outcome, reason FROM belfry_range FORCE INDEX (PRIMARY)
WHERE space = ? AND (low > ? OR low = ? AND high > ? OR low = ? AND high = ? AND job > ? OR low = ? AND high = ? AND job = ? AND id > ?)
  AND (? = '' OR job = ?) ORDER BY low, high, job, id LIMIT ?`, space,
		k.low, k.low, k.high, k.low, k.high, k.job, k.low, k.high, k.job, k.id, job, job, rule.Page)
	return list, last, err
}
