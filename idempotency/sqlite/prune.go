package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/internal/rule"
)

// stale is something that retention may remove.
type stale struct {
	at     int64 // microseconds
	ofDues bool  // it is the record of dues up to then
	drop   func() error
}

// Prune removes what is older than the session's retention; see
// idempotency.Runs. Where nothing is, it takes no lock.
func (s *Store) Prune(ctx context.Context, ses idempotency.Session, limit int) (n int, err error) {
	err = s.with(ctx, ses, func(c *call) error {
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
	for _, find := range []func(int) ([]stale, error){c.oldRuns, c.oldDues, c.oldRanges, c.oldCommands} {
		list, err := find(limit)
		if err != nil {
			return 0, err
		}
		all = append(all, list...)
	}
	slices.SortStableFunc(all, func(a, b stale) int { return cmp.Compare(a.at, b.at) })
	dead, err := c.oldSessions(limit)
	if err != nil {
		return 0, err
	}
	all = append(all, dead...)
	all = all[:min(len(all), limit)]
	return len(all), c.drop(all)
}

// drop removes, and notes up to where no record of a due is left for sure.
func (c *call) drop(all []stale) error {
	var pruned *int64
	for _, x := range all {
		if err := x.drop(); err != nil {
			return err
		}
		if x.ofDues {
			pruned = &x.at // they come in order
		}
	}
	if pruned == nil {
		return nil
	}
	_, err := c.exec(`UPDATE belfry_space SET pruned = max(coalesce(pruned, ?1), ?1) WHERE id = ?2`, *pruned, c.by.space)
	return err
}

// belowOpen holds where nothing of the job is open at x.due or before.
const belowOpen = ` AND NOT EXISTS (SELECT 1 FROM belfry_due o WHERE o.space = x.space AND o.job = x.job AND o.closed IS NULL AND o.due <= `

func (c *call) oldRuns(limit int) (list []stale, err error) {
	err = c.query(func(r *sql.Rows) error {
		var due, session int64
		var job string
		var key, request []byte
		err := r.Scan(&due, &job, &key, &request, &session)
		list = append(list, stale{due * 1e6, true, func() error {
			c.name(session, -1)
			_, err := c.exec(`DELETE FROM belfry_run WHERE space = ? AND due = ? AND job = ? AND key = ? AND request = ?`, c.by.space, due, job, orEmpty(key), orEmpty(request))
			return err
		}})
		return err
	}, `SELECT due, job, key, request, session FROM belfry_run x
WHERE space = ? AND due < ? AND state = 3`+belowOpen+`x.due) ORDER BY due, job, key, request LIMIT ?`,
		c.by.space, rule.Ceil(c.keep()).Unix(), limit)
	return list, err
}

func (c *call) oldDues(limit int) (list []stale, err error) {
	err = c.query(func(r *sql.Rows) error {
		var due int64
		var job string
		err := r.Scan(&due, &job)
		list = append(list, stale{due * 1e6, true, func() error {
			_, err := c.exec(`DELETE FROM belfry_due WHERE space = ? AND due = ? AND job = ?`, c.by.space, due, job)
			return err
		}})
		return err
	}, `SELECT due, job FROM belfry_due x
WHERE space = ? AND due < ? AND closed IS NOT NULL`+belowOpen+`x.due) ORDER BY due, job LIMIT ?`,
		c.by.space, rule.Ceil(c.keep()).Unix(), limit)
	return list, err
}

func (c *call) oldRanges(limit int) (list []stale, err error) {
	err = c.query(func(r *sql.Rows) error {
		var low, high, id int64
		var job string
		err := r.Scan(&low, &high, &job, &id)
		list = append(list, stale{high, true, func() error {
			_, err := c.exec(`DELETE FROM belfry_range WHERE space = ? AND low = ? AND high = ? AND job = ? AND id = ?`, c.by.space, low, high, job, id)
			return err
		}})
		return err
	}, `SELECT low, high, job, id FROM belfry_range x
WHERE space = ? AND low < ? AND high < ?`+belowOpen+`x.high / 1000000) ORDER BY high, low, job, id LIMIT ?`,
		c.by.space, micro(c.keep()), micro(c.keep()), limit)
	return list, err
}

func (c *call) oldCommands(limit int) (list []stale, err error) {
	err = c.query(func(r *sql.Rows) error {
		var at int64
		var request string
		err := r.Scan(&at, &request)
		list = append(list, stale{at, false, func() error {
			_, err := c.exec(`DELETE FROM belfry_command WHERE space = ? AND request = ?`, c.by.space, request)
			return err
		}})
		return err
	}, `SELECT at, request FROM belfry_command x
WHERE space = ? AND at < ?`+belowOpen+`x.at / 1000000) ORDER BY at, request LIMIT ?`, c.by.space, micro(c.keep()), limit)
	return list, err
}

// oldSessions are those that no run names. Their definitions and decisions go
// with them.
func (c *call) oldSessions(limit int) (list []stale, err error) {
	err = c.query(func(r *sql.Rows) error {
		var id, died int64
		err := r.Scan(&id, &died)
		list = append(list, stale{died, false, func() error {
			for _, text := range []string{
				`DELETE FROM belfry_definition WHERE session = ?`, `DELETE FROM belfry_decision WHERE session = ?`, `DELETE FROM belfry_session WHERE id = ?`,
			} {
				if _, err := c.exec(text, id); err != nil {
					return err
				}
			}
			return nil
		}})
		return err
	}, `SELECT id, min(expires, coalesce(marked, expires)) AS died FROM belfry_session
WHERE space = ? AND named = 0 AND (marked IS NOT NULL OR expires <= ?) AND died < ? ORDER BY id LIMIT ?`,
		c.by.space, micro(c.now), micro(c.keep()), limit)
	return list, err
}

// keep is the instant from which on all is kept.
func (c *call) keep() time.Time { return c.now.Add(-c.by.retention) }

// orEmpty undoes what the driver makes of empty bytes.
func orEmpty(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
