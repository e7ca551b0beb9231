package postgres

import (
	"context"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/internal/rule"
)

// first is before all runs: no due is as early.
var first = idempotency.ID{Due: time.Date(-4000, 1, 1, 0, 0, 0, 0, time.UTC)}

// List yields runs; see idempotency.History. It reads page by page, each as it stands at that instant. The caller may call
// the store while it reads. A key without bounds on the due reads all runs of the namespace.
func (s *Store) List(ctx context.Context, f idempotency.Filter) iter.Seq2[idempotency.Run, error] {
	return rule.Pages(f.Namespace, func() func() ([]idempotency.Run, bool, error) {
		left := f.Limit
		if left <= 0 {
			left = math.MaxInt
		}
		last := first
		if !f.From.IsZero() {
			last.Due = rule.Ceil(f.From) // before any of that due: no job has an empty name
		}
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

// list returns up to n runs behind the last one.
func (t *tx) list(f idempotency.Filter, last idempotency.ID, n int) ([]idempotency.Run, error) {
	where := `r.space = (SELECT id FROM belfry_space WHERE name = $1) AND (r.due, r.job, r.key, r.request) > ($2::timestamptz, $3::text, $4::bytea, $5::bytea)`
	args := []any{f.Namespace, last.Due, last.Job, []byte(last.Key), []byte(last.Request)}
	add := func(condition string, arg any) {
		args = append(args, arg)
		where += " AND " + fmt.Sprintf(condition, len(args))
	}
	if !f.To.IsZero() {
		add(`r.due < $%d`, rule.Ceil(f.To))
	}
	if f.Job != "" {
		add(`r.job = $%d::text`, f.Job)
	}
	if f.Key != "" {
		add(`r.key = $%d`, []byte(f.Key))
	}
	if f.Outcome != 0 {
		add(`r.outcome = $%d`, int16(f.Outcome))
	}
	args = append(args, n)
	return t.runs(fmt.Sprintf(`SELECT `+runColumns+` FROM belfry_run r WHERE %s`+byDue+` LIMIT $%d`, where, len(args)), args...)
}

// Ranges yields ranges; see idempotency.History. It reads as List does.
func (s *Store) Ranges(ctx context.Context, namespace, job string) iter.Seq2[idempotency.Range, error] {
	return rule.Pages(namespace, func() func() ([]idempotency.Range, bool, error) {
		last, id := idempotency.Range{From: first.Due, To: first.Due}, int64(0)
		return func() (list []idempotency.Range, more bool, err error) {
			err = s.read(ctx, func(t *tx) error {
				list, err = t.ranges(namespace, job, last, &id)
				return err
			})
			if len(list) > 0 {
				last = list[len(list)-1]
			}
			return list, len(list) == rule.Page, err
		}
	})
}

// ranges returns a page of ranges behind the last one with its id, which becomes that of the page's last.
func (t *tx) ranges(namespace, job string, last idempotency.Range, id *int64) (list []idempotency.Range, err error) {
	err = t.query(func(r pgx.Rows) error {
		var x idempotency.Range
		var reason []byte
		err := r.Scan(&x.From, &x.To, &x.Job, id, &x.Count, &x.Outcome, &reason)
		x.From, x.To, x.Reason = x.From.UTC(), x.To.UTC(), string(reason)
		list = append(list, x)
		return err
	}, `SELECT low, high, job, id, count, outcome, reason FROM belfry_range
WHERE space = (SELECT id FROM belfry_space WHERE name = $1) AND (low, high, job, id) > ($2::timestamptz, $3::timestamptz, $4::text, $5::bigint)
  AND ($6 = '' OR job = $6::text)
ORDER BY low, high, job, id LIMIT $7`, namespace, last.From, last.To, last.Job, *id, job, rule.Page)
	return list, err
}
