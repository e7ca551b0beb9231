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
		p := pageOfRuns{filter: f}
		return func() (list []idempotency.Run, more bool, err error) {
			p.size = min(left, rule.Page)
			err = s.read(ctx, func(t *tx) error {
				list, err = p.read(t)
				return err
			})
			if len(list) > 0 {
				p.last = &list[len(list)-1].ID
			}
			left -= len(list)
			return list, len(list) == p.size && left > 0, err
		}
	})
}

// pageOfRuns is the next page of a listing.
type pageOfRuns struct {
	filter idempotency.Filter
	last   *idempotency.ID // of the page before; nil: there is none
	size   int
}

// read reads it. Runs in a state that few are in are found by what those have: an index, or a second row.
func (p *pageOfRuns) read(t *tx) ([]idempotency.Run, error) {
	f := p.filter
	const space = `(SELECT id FROM belfry_space WHERE name = $1)`
	where, from := `r.space = `+space, `belfry_run r`
	args := []any{f.Namespace}
	add := func(condition string, arg ...any) {
		at := make([]any, len(arg))
		for i, x := range arg {
			args = append(args, x)
			at[i] = len(args)
		}
		where += " AND " + fmt.Sprintf(condition, at...)
	}
	after, order := ">", ""
	if f.Newest {
		after, order = "<", " DESC"
	}
	if l := p.last; l != nil {
		add(`(r.due, r.job, r.key, r.request) `+after+` ($%d::timestamptz, $%d::text, $%d::bytea, $%d::bytea)`, l.Due, l.Job, []byte(l.Key), []byte(l.Request))
	}
	if !f.From.IsZero() {
		add(`r.due >= $%d`, rule.Ceil(f.From))
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
	switch f.State {
	case 0:
	case idempotency.Waiting:
		add(`r.wake IS NOT NULL`)
	case idempotency.Running:
		from = `belfry_running o CROSS JOIN LATERAL (SELECT * FROM belfry_run r
  WHERE r.space = o.space AND r.due = o.due AND r.job = o.job AND r.key = o.key AND r.request = o.request LIMIT 1) r`
		add(`o.space = ` + space)
	default:
		add(`r.state = $%d`, int16(f.State))
	}
	args = append(args, p.size)
	return t.runs(fmt.Sprintf(`SELECT `+runColumns+` FROM %s WHERE %s ORDER BY r.due%[3]s, r.job%[3]s, r.key%[3]s, r.request%[3]s LIMIT $%[4]d`,
		from, where, order, len(args)), args...)
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
