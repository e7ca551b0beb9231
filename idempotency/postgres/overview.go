package postgres

import (
	"context"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/internal/rule"
)

// Dues yields dues; see idempotency.History. It reads as List does.
func (s *Store) Dues(ctx context.Context, namespace, job string, from, to time.Time) iter.Seq2[idempotency.Due, error] {
	return rule.Pages(namespace, func() func() ([]idempotency.Due, bool, error) {
		next := first.Due
		if !from.IsZero() {
			next = rule.Ceil(from)
		}
		return func() (list []idempotency.Due, more bool, err error) {
			err = s.read(ctx, func(t *tx) error {
				list, err = t.dues(namespace, job, next, to)
				return err
			})
			if len(list) > 0 {
				next = list[len(list)-1].Due.Add(time.Second)
			}
			return list, len(list) == rule.Page, err
		}
	})
}

// dues returns a page of dues.
func (t *tx) dues(namespace, job string, from, to time.Time) (list []idempotency.Due, err error) {
	err = t.query(func(r pgx.Rows) error {
		x := idempotency.Due{Job: job}
		var closed *time.Time
		err := r.Scan(&x.Due, &x.Opened, &closed, &x.Keys)
		x.Due, x.Opened, x.Closed = x.Due.UTC(), x.Opened.UTC(), at(closed)
		list = append(list, x)
		return err
	}, `SELECT due, opened, closed, keys FROM belfry_due
WHERE space = (SELECT id FROM belfry_space WHERE name = $1) AND job = $2::text AND due >= $3 AND ($4::timestamptz IS NULL OR due < $4) AND opened IS NOT NULL
ORDER BY due LIMIT $5`, namespace, job, from, instant(to), rule.Page)
	return list, err
}

// Commands yields the records of commands; see idempotency.History. It reads as List does.
func (s *Store) Commands(ctx context.Context, namespace, job string) iter.Seq2[idempotency.Command, error] {
	return rule.Pages(namespace, func() func() ([]idempotency.Command, bool, error) {
		var before *time.Time
		var request string
		return func() (list []idempotency.Command, more bool, err error) {
			err = s.read(ctx, func(t *tx) error {
				list, err = t.commands(namespace, job, before, request)
				return err
			})
			if len(list) > 0 {
				last := list[len(list)-1]
				before, request = &last.At, last.Request
			}
			return list, len(list) == rule.Page, err
		}
	})
}

// commands returns a page of records before the one of that instant and request.
func (t *tx) commands(namespace, job string, before *time.Time, request string) (list []idempotency.Command, err error) {
	err = t.query(func(r pgx.Rows) error {
		c, err := scanCommand(r)
		list = append(list, c)
		return err
	}, `SELECT `+commandColumns+` FROM belfry_command
WHERE space = (SELECT id FROM belfry_space WHERE name = $1) AND ($2 = '' OR job = $2::text) AND ($3::timestamptz IS NULL OR (at, name) < ($3, $4::text))
ORDER BY at DESC, name DESC LIMIT $5`, namespace, job, before, request, rule.Page)
	return list, err
}

// Overview returns what is scheduled, open and alive; see idempotency.History. It reads one snapshot.
func (s *Store) Overview(ctx context.Context, namespace string) (o idempotency.Overview, err error) {
	if err := idempotency.CheckNamespace(namespace); err != nil {
		return o, err
	}
	err = s.read(ctx, func(t *tx) error {
		c := call{tx: t}
		if _, err := c.get([]any{&c.now, &c.space, &c.partitions}, `SELECT c.now, coalesce(n.id, 0), coalesce(n.partitions, 0)
FROM (SELECT {clock} AS now) c LEFT JOIN belfry_space n ON n.name = $1`, namespace); err != nil {
			return err
		}
		c.now = c.now.UTC()
		o, err = c.overview()
		return err
	})
	if err != nil {
		return idempotency.Overview{}, err
	}
	return o, nil
}

func (c *call) overview() (o idempotency.Overview, err error) {
	o.Now, o.Partitions = c.now, c.partitions
	if c.space == 0 {
		return o, nil
	}
	var jobs []string
	err = c.query(func(r pgx.Rows) error {
		e, err := scanEntry(r)
		o.Entries, jobs = append(o.Entries, e), append(jobs, e.Job)
		return err
	}, `SELECT `+entryColumns+` FROM belfry_entry e WHERE e.space = $1 AND e.key = '' ORDER BY e.job`, c.space)
	if err != nil {
		return o, err
	}
	inForce, err := c.inForce(jobs)
	if err != nil {
		return o, err
	}
	for i, job := range jobs {
		o.Entries[i].InForce = inForce[job]
	}
	if o.Open, err = c.openDues(func(string) bool { return true }, true); err != nil {
		return o, err
	}
	o.Sessions, err = c.liveSessions()
	return o, err
}

// liveSessions are the live ones, with what they announced.
func (c *call) liveSessions() (list []idempotency.SessionStatus, err error) {
	at := make(map[int64]int)
	err = c.query(func(r pgx.Rows) error {
		x := idempotency.SessionStatus{Announced: make(map[string]string)}
		var replica, boot []byte
		err := r.Scan(&x.ID, &replica, &boot, &x.Expires)
		x.Replica, x.Boot, x.Expires = string(replica), string(boot), x.Expires.UTC()
		at[x.ID] = len(list)
		list = append(list, x)
		return err
	}, `SELECT id, replica, boot, expires FROM belfry_session WHERE space = $1 AND marked IS NULL AND expires > $2 ORDER BY replica, id`, c.space, c.now)
	if err != nil {
		return nil, err
	}
	err = c.query(func(r pgx.Rows) error {
		var session int64
		var job string
		var hash []byte
		err := r.Scan(&session, &job, &hash)
		list[at[session]].Announced[job] = string(hash)
		return err
	}, `SELECT d.session, d.job, d.hash FROM belfry_session s JOIN belfry_definition d ON d.session = s.id
WHERE s.space = $1 AND s.marked IS NULL AND s.expires > $2`, c.space, c.now)
	return list, err
}
