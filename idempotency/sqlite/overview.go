package sqlite

import (
	"context"
	"database/sql"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/internal/rule"
)

// Dues yields the dues of a job with keys that were opened; see idempotency.History. It reads as List does.
func (s *Store) Dues(ctx context.Context, namespace, job string, from, to time.Time) iter.Seq2[idempotency.Due, error] {
	return rule.DuePages(namespace, from, to, func(low, high int64) (list []idempotency.Due, err error) {
		err = s.read(ctx, func(t *tx) error {
			list, err = t.dues(namespace, job, low, high)
			return err
		})
		return list, err
	})
}

func (t *tx) dues(namespace, job string, low, high int64) (list []idempotency.Due, err error) {
	err = t.query(func(r *sql.Rows) error {
		d := idempotency.Due{Job: job}
		var due int64
		var opened, closed sql.NullInt64
		err := r.Scan(&due, &opened, &closed, &d.Keys)
		d.Due, d.Opened, d.Closed = time.Unix(due, 0).UTC(), at(opened), at(closed)
		list = append(list, d)
		return err
	}, `SELECT due, opened, closed, keys FROM belfry_due
WHERE space = (SELECT id FROM belfry_space WHERE name = ?) AND due >= ? AND due < ? AND job = ? AND opened IS NOT NULL ORDER BY due LIMIT ?`,
		namespace, low, high, job, rule.Page)
	return list, err
}

// Overview returns what is scheduled, open and alive, as of one instant; see idempotency.History.
func (s *Store) Overview(ctx context.Context, namespace string) (o idempotency.Overview, err error) {
	if err := idempotency.CheckNamespace(namespace); err != nil {
		return o, err
	}
	err = s.read(ctx, func(t *tx) error {
		o = idempotency.Overview{Now: t.now}
		c := &call{tx: t}
		found, err := t.get([]any{&c.by.space, &c.by.partitions}, `SELECT id, partitions FROM belfry_space WHERE name = ?`, namespace)
		if err != nil || !found {
			return err
		}
		o.Partitions = c.by.partitions
		if o.Entries, err = c.entries(); err != nil {
			return err
		}
		if o.Open, err = c.openDues(func(string) bool { return true }, deadToo); err != nil {
			return err
		}
		o.Sessions, err = c.liveSessions()
		return err
	})
	if err != nil {
		return idempotency.Overview{}, err
	}
	return o, nil
}

// entries are all of the namespace, by job.
func (c *call) entries() (list []idempotency.Entry, err error) {
	inForce, err := c.allInForce()
	if err != nil {
		return nil, err
	}
	err = c.query(func(r *sql.Rows) error {
		e, err := scanEntry(r)
		e.InForce = inForce[e.Job]
		list = append(list, e)
		return err
	}, `SELECT `+entryColumns+` FROM belfry_entry e WHERE e.space = ? ORDER BY e.job, e.key`, c.by.space)
	return list, err
}

func (c *call) liveSessions() (list []idempotency.SessionStatus, err error) {
	err = c.query(func(r *sql.Rows) error {
		x := idempotency.SessionStatus{Announced: make(map[string]string)}
		var replica, boot []byte
		var expires sql.NullInt64
		err := r.Scan(&x.ID, &replica, &boot, &expires)
		x.Replica, x.Boot, x.Expires = string(replica), string(boot), at(expires)
		list = append(list, x)
		return err
	}, `SELECT id, replica, boot, expires FROM belfry_session WHERE space = ? AND marked IS NULL AND expires > ? ORDER BY replica, id`,
		c.by.space, micro(c.now))
	for _, x := range list {
		if err == nil {
			err = c.query(func(r *sql.Rows) error {
				var job string
				var hash []byte
				err := r.Scan(&job, &hash)
				x.Announced[job] = string(hash)
				return err
			}, `SELECT job, hash FROM belfry_definition WHERE session = ?`, x.ID)
		}
	}
	return slices.Clip(list), err
}

const commandColumns = `request, kind, job, key, due, last, run_request, actor, reason, at, changed`

func scanCommand(r *sql.Rows) (x idempotency.Command, err error) {
	var key, run, actor, reason []byte
	var due, last, when sql.NullInt64
	err = r.Scan(&x.Request, &x.Kind, &x.ID.Job, &key, &due, &last, &run, &actor, &reason, &when, &x.Changed)
	x.ID.Key, x.ID.Request, x.Actor, x.Reason, x.At = string(key), string(run), string(actor), string(reason), at(when)
	if due.Valid {
		x.ID.Due = time.Unix(due.Int64, 0).UTC()
	}
	if last.Valid {
		x.Last = time.Unix(last.Int64, 0).UTC()
	}
	return x, err
}

// Commands yields the records of commands; see idempotency.History. It reads as List does.
func (s *Store) Commands(ctx context.Context, namespace, job string) iter.Seq2[idempotency.Command, error] {
	return rule.Pages(namespace, func() func() ([]idempotency.Command, bool, error) {
		last, request := int64(math.MaxInt64), ""
		return func() (list []idempotency.Command, more bool, err error) {
			err = s.read(ctx, func(t *tx) error {
				list = nil
				return t.query(func(r *sql.Rows) error {
					x, err := scanCommand(r)
					list = append(list, x)
					return err
				}, `SELECT `+commandColumns+` FROM belfry_command
WHERE space = (SELECT id FROM belfry_space WHERE name = ?) AND (at, request) < (?, ?) AND (? = '' OR job = ?)
ORDER BY at DESC, request DESC LIMIT ?`, namespace, last, request, job, job, rule.Page)
			})
			if n := len(list); n > 0 {
				last, request = list[n-1].At.UnixMicro(), list[n-1].Request
			}
			return list, len(list) == rule.Page, err
		}
	})
}
