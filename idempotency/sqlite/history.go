package sqlite

import (
	"context"
	"database/sql"
	"iter"
	"math"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/internal/rule"
)

// List yields runs; see idempotency.History. It reads page by page, each as it stands at that instant: between pages it
// holds no snapshot, which would keep the log from being cut back. The caller may call the store while it reads. A key
// without bounds on the due reads all runs of the namespace.
func (s *Store) List(ctx context.Context, f idempotency.Filter) iter.Seq2[idempotency.Run, error] {
	return rule.Pages(f.Namespace, func() func() ([]idempotency.Run, bool, error) {
		left := f.Limit
		if left <= 0 {
			left = math.MaxInt
		}
		last := beforeFirst(f)
		return func() (list []idempotency.Run, more bool, err error) {
			n := min(left, rule.Page)
			err = s.read(ctx, func(t *tx) error {
				list, err = t.list(f, last, n)
				return err
			})
			if len(list) > 0 {
				last = list[len(list)-1].ID
			}
			left -= len(list)
			return list, len(list) == n && left > 0, err
		}
	})
}

// beforeFirst is where a listing starts: no job has an empty name, so that it comes before all of its due.
func beforeFirst(f idempotency.Filter) (id idempotency.ID) {
	switch {
	case f.Newest && f.To.IsZero():
		id.Due = time.Unix(math.MaxInt64, 0)
	case f.Newest:
		id.Due = time.Unix(rule.Ceil(f.To).Unix(), 0)
	case f.From.IsZero():
		id.Due = time.Unix(math.MinInt64, 0)
	default:
		id.Due = time.Unix(rule.Ceil(f.From).Unix(), 0)
	}
	return id
}

const newestFirst = ` ORDER BY r.due DESC, r.job DESC, r.key DESC, r.request DESC`

// list returns up to n runs behind the last one.
func (t *tx) list(f idempotency.Filter, last idempotency.ID, n int) ([]idempotency.Run, error) {
	then, order := ">", byDue
	if f.Newest {
		then, order = "<", newestFirst
	}
	where := `r.space = (SELECT id FROM belfry_space WHERE name = ?) AND (r.due, r.job, r.key, r.request) ` + then + ` (?, ?, ?, ?)`
	args := []any{f.Namespace, last.Due.Unix(), last.Job, []byte(last.Key), []byte(last.Request)}
	add := func(condition string, arg any) {
		where += " AND " + condition
		args = append(args, arg)
	}
	if !f.To.IsZero() && !f.Newest {
		add(`r.due < ?`, rule.Ceil(f.To).Unix())
	}
	if !f.From.IsZero() && f.Newest {
		add(`r.due >= ?`, rule.Ceil(f.From).Unix())
	}
	// The plus keeps the planner from taking a constant out of the order, and
	// then sorting every page.
	if f.Job != "" {
		add(`+r.job = ?`, f.Job)
	}
	if f.Key != "" {
		add(`+r.key = ?`, []byte(f.Key))
	}
	if f.State != 0 {
		add(`+r.state = ?`, f.State)
	}
	if f.Outcome != 0 {
		add(`r.outcome = ?`, f.Outcome)
	}
	return t.runs(where+order+` LIMIT ?`, append(args, n)...)
}

// Ranges yields ranges; see idempotency.History. It reads as List does.
func (s *Store) Ranges(ctx context.Context, namespace, job string) iter.Seq2[idempotency.Range, error] {
	return rule.Pages(namespace, func() func() ([]idempotency.Range, bool, error) {
		low, high, last, id := int64(math.MinInt64), int64(0), "", int64(0)
		return func() (list []idempotency.Range, more bool, err error) {
			err = s.read(ctx, func(t *tx) error {
				list, err = t.ranges(namespace, job, &low, &high, &last, &id)
				return err
			})
			return list, len(list) == rule.Page, err
		}
	})
}

// ranges returns a page of ranges behind the one that is pointed to, and points
// to the last of them.
func (t *tx) ranges(namespace, job string, low, high *int64, last *string, id *int64) (list []idempotency.Range, err error) {
	err = t.query(func(r *sql.Rows) error {
		var x idempotency.Range
		var reason []byte
		err := r.Scan(low, high, last, id, &x.Count, &x.Outcome, &reason)
		x.Job, x.From, x.To, x.Reason = *last, time.UnixMicro(*low).UTC(), time.UnixMicro(*high).UTC(), string(reason)
		list = append(list, x)
		return err
	}, `SELECT low, high, job, id, count, outcome, reason FROM belfry_range
WHERE space = (SELECT id FROM belfry_space WHERE name = ?) AND (low, high, job, id) > (?, ?, ?, ?) AND (? = '' OR job = ?)
ORDER BY low, high, job, id LIMIT ?`, namespace, *low, *high, *last, *id, job, job, rule.Page)
	return list, err
}
