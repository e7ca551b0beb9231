package mysql

import (
	"cmp"
	"context"
	"database/sql"
	"math"
	"slices"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/internal/rule"
)

// keptNumbers is how many of the last drawn numbers stay in belfry_sequence. Of the last one depends what Highest tells.
const keptNumbers = 10_000

// stale is something that retention may remove.
type stale struct {
	at   int64 // microseconds
	kind int   // index of kinds
	row  sqlText
}

// kinds are what ages, each with how its old rows are found, locked, and removed by their keys.
var kinds = []struct {
	find   func(*call, int) ([]stale, error)
	remove string
}{
	{(*call).oldDues, `DELETE x FROM belfry_due x FORCE INDEX (PRIMARY) WHERE x.space = ? AND (x.due, x.job) IN (?)`},
	{(*call).oldRuns, `DELETE x FROM belfry_run x FORCE INDEX (PRIMARY) WHERE x.space = ? AND (x.due, x.job, x.run_key, x.request) IN (?)`},
	{(*call).oldRanges, `DELETE x FROM belfry_range x FORCE INDEX (PRIMARY) WHERE x.space = ? AND (x.low, x.high, x.job, x.id) IN (?)`},
	{(*call).oldCommands, `DELETE x FROM belfry_command x FORCE INDEX (PRIMARY) WHERE x.space = ? AND x.name IN (?)`},
}

const ofCommands = 3 // among kinds

// Prune removes what is older than the session's retention; see idempotency.Runs.
func (s *Store) Prune(ctx context.Context, ses idempotency.Session, limit int) (n int, err error) {
	err = s.with(ctx, ses, shared, func(c *call) error {
		n, err = c.prune(max(limit, 0))
		return err
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

func (c *call) prune(limit int) (int, error) {
	var all []stale
	for _, k := range kinds {
		list, err := k.find(c, limit)
		if err != nil {
			return 0, err
		}
		all = append(all, list...)
	}
	slices.SortStableFunc(all, func(a, b stale) int { return cmp.Compare(a.at, b.at) })
	all = all[:min(len(all), limit)]
	for i, k := range kinds {
		var keys rows
		for _, x := range all {
			if x.kind == i {
				keys.value(x.row)
			}
		}
		if _, err := c.execRows(&keys, k.remove, c.by.space); err != nil {
			return 0, err
		}
	}
	sessions, err := c.pruneSessions(limit - len(all))
	if err != nil {
		return 0, err
	}
	if err := c.pruneSequence(); err != nil {
		return 0, err
	}
	return len(all) + sessions, c.notePruned(all)
}

// notePruned notes up to where there may be dues of which no record is left. It comes after their rows were locked, as a
// backfill looks at them.
func (c *call) notePruned(all []stale) error {
	last := int64(math.MinInt64)
	for _, x := range all {
		if x.kind != ofCommands {
			last = max(last, x.at)
		}
	}
	if last == math.MinInt64 {
		return nil
	}
	_, err := c.exec(`UPDATE belfry_control SET pruned = ? WHERE space = ? AND (pruned IS NULL OR pruned < ?)`, last, c.by.space, last)
	return err
}

// belowOpen holds where nothing of the job is open at the due or before.
const belowOpen = ` AND NOT EXISTS (SELECT 1 FROM belfry_due o FORCE INDEX (closed) WHERE o.space = x.space AND o.closed = 0 AND o.job = x.job AND `

// oldRows collects the rows of one kind: the query yields an instant and the primary key.
func (c *call) oldRows(kind int, scan func(*sql.Rows) (at int64, key []any, err error), query string, args ...any) (list []stale, err error) {
	err = c.query(func(r *sql.Rows) error {
		at, key, err := scan(r)
		var row rows
		row.add(key...)
		list = append(list, stale{at, kind, sqlText(row.text)})
		return err
	}, query, args...)
	return list, err
}

func (c *call) oldDues(limit int) ([]stale, error) {
	return c.oldRows(0, func(r *sql.Rows) (int64, []any, error) {
		var due int64
		var job string
		err := r.Scan(&due, &job)
		return due * 1e6, []any{due, job}, err
	}, `SELECT x.due, x.job FROM belfry_due x FORCE INDEX (PRIMARY)
WHERE x.space = ? AND x.due < ? AND x.closed <> 0`+belowOpen+`o.due <= x.due) ORDER BY x.due, x.job LIMIT ?`+alone,
		c.by.space, rule.Ceil(c.keep()).Unix(), limit)
}

func (c *call) oldRuns(limit int) ([]stale, error) {
	return c.oldRows(1, func(r *sql.Rows) (int64, []any, error) {
		var x ref
		err := r.Scan(&x.due, &x.job, &x.key, &x.request)
		return x.due * 1e6, []any{x.due, x.job, x.key, x.request}, err
	}, `SELECT x.due, x.job, x.run_key, x.request FROM belfry_run x FORCE INDEX (PRIMARY)
WHERE x.space = ? AND x.due < ? AND x.state = 3`+belowOpen+`o.due <= x.due) ORDER BY x.due, x.job, x.run_key, x.request LIMIT ?`+alone,
		c.by.space, rule.Ceil(c.keep()).Unix(), limit)
}

func (c *call) oldRanges(limit int) ([]stale, error) {
	return c.oldRows(2, func(r *sql.Rows) (int64, []any, error) {
		var low, high, id int64
		var job string
		err := r.Scan(&low, &high, &job, &id)
		return high, []any{low, high, job, id}, err
	}, `SELECT x.low, x.high, x.job, x.id FROM belfry_range x FORCE INDEX (PRIMARY)
WHERE x.space = ? AND x.low < ? AND x.high < ?`+belowOpen+`o.due * 1000000 <= x.high) ORDER BY x.high, x.low, x.job, x.id LIMIT ?`+alone,
		c.by.space, c.keep().UnixMicro(), c.keep().UnixMicro(), limit)
}

func (c *call) oldCommands(limit int) ([]stale, error) {
	return c.oldRows(ofCommands, func(r *sql.Rows) (int64, []any, error) {
		var made int64
		var name string
		err := r.Scan(&made, &name)
		return made, []any{name}, err
	}, `SELECT x.at, x.name FROM belfry_command x FORCE INDEX (at)
WHERE x.space = ? AND x.at < ?`+belowOpen+`o.due * 1000000 <= x.at) ORDER BY x.at, x.name LIMIT ?`+alone,
		c.by.space, c.keep().UnixMicro(), limit)
}

// pruneSessions removes sessions that are long dead, under which nothing runs and which did not lead last, with their
// definitions and decisions. Their rows are not locked to find them, because those of the living are in use. What is long dead stays as it is.
func (c *call) pruneSessions(limit int) (int, error) {
	var ids []int64
	err := c.query(func(r *sql.Rows) error {
		var id int64
		err := r.Scan(&id)
		ids = append(ids, id)
		return err
	}, `SELECT s.id FROM belfry_session s JOIN belfry_lease l ON l.session = s.id
WHERE s.space = ? AND (s.marked IS NOT NULL OR l.expires <= ?) AND least(l.expires, coalesce(s.marked, l.expires)) < ?
  AND NOT EXISTS (SELECT 1 FROM belfry_running h WHERE h.space = s.space AND h.session = s.id)
  AND NOT EXISTS (SELECT 1 FROM belfry_leader b WHERE b.space = s.space AND b.session = s.id) ORDER BY s.id LIMIT ?`,
		c.by.space, c.now.UnixMicro(), c.keep().UnixMicro(), max(limit, 0))
	if err != nil {
		return 0, err
	}
	removed, err := c.execRows(list(ids), `DELETE FROM belfry_session WHERE id IN (?)`)
	for _, text := range []string{
		`DELETE FROM belfry_lease WHERE session IN (?)`, `DELETE FROM belfry_definition WHERE session IN (?)`, `DELETE FROM belfry_decision WHERE session IN (?)`,
	} {
		if err == nil {
			_, err = c.execRows(list(ids), text)
		}
	}
	return int(removed), err
}

// pruneSequence removes numbers that were drawn long ago. They count for nothing.
func (c *call) pruneSequence() error {
	var low, high int64
	if _, err := c.get([]any{&low, &high}, `SELECT coalesce(min(n), 0), coalesce(max(n), 0) FROM belfry_sequence`); err != nil || high-low < 2*keptNumbers {
		return err
	}
	_, err := c.exec(`DELETE FROM belfry_sequence WHERE n < ? ORDER BY n LIMIT ?`, high-keptNumbers, keptNumbers)
	return err
}

// keep is the instant from which on all is kept.
func (c *call) keep() time.Time { return c.now.Add(-c.by.retention) }
