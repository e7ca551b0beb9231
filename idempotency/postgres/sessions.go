package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// How a call locks the row of its session. It rules out that the session ends before the call has committed.
const (
	unlocked = ``
	shared   = ` FOR KEY SHARE OF s` // renewals do not wait for it
	alone    = ` FOR UPDATE OF s`
)

// call is one call of a live session.
type call struct {
	*tx
	id, changes, declared         int64
	controls                      int64
	raises                        bool // the call makes controls rise
	space, partitions             int
	now                           time.Time // the store's clock, read once
	horizon, retention, tolerance time.Duration
	replica                       []byte
}

// with runs f for a live session: first on a snapshot, and only if there is something to write again in a transaction that
// locks. So a call that loses, or finds nothing to do, writes nothing and waits for nobody.
func (s *Store) with(ctx context.Context, ses idempotency.Session, lock string, f func(*call) error) error {
	err := s.read(ctx, func(t *tx) error { return t.call(ses, unlocked, f) })
	if err == errWrite {
		err = s.locked(ctx, ses, lock, f)
	}
	return err
}

// locked runs f for a live session that stays so.
func (s *Store) locked(ctx context.Context, ses idempotency.Session, lock string, f func(*call) error) error {
	return s.write(ctx, s.calls, func(t *tx) error { return t.call(ses, lock, f) })
}

// call finds the session and demands that it is live.
func (t *tx) call(ses idempotency.Session, lock string, f func(*call) error) error {
	c := call{tx: t, id: ses.ID}
	var horizon, retention, tolerance int64
	found, err := t.get([]any{&c.now, &c.space, &c.partitions, &c.replica, &horizon, &retention, &tolerance, &c.declared, &c.changes, &c.controls},
		`WITH c AS MATERIALIZED (SELECT {clock} AS now)
SELECT c.now, s.space, n.partitions, s.replica, s.horizon, s.retention, s.tolerance, s.declared, s.changes,
  coalesce((SELECT k.controls FROM belfry_control k WHERE k.space = s.space), 0)
FROM c CROSS JOIN belfry_session s JOIN belfry_space n ON n.id = s.space
WHERE s.id = $1 AND n.name = $2 AND s.marked IS NULL AND s.expires > c.now`+lock, ses.ID, ses.Namespace)
	if err != nil {
		return err
	}
	if !found {
		return idempotency.ErrSessionDead
	}
	c.now = c.now.UTC()
	c.horizon, c.retention, c.tolerance = duration(horizon), duration(retention), duration(tolerance)
	return c.run(f)
}

// run runs f, and last of all makes controls rise where something it did is news.
func (c *call) run(f func(*call) error) error {
	err := f(c)
	if err == nil && c.raises {
		_, err = c.exec(`UPDATE belfry_control SET controls = controls + 1 WHERE space = $1`, c.space)
	}
	return err
}

// OpenSession opens a session; see idempotency.Sessions.
func (s *Store) OpenSession(ctx context.Context, o idempotency.Opening) (ses idempotency.Session, r idempotency.Renewal, err error) {
	if err := ctx.Err(); err != nil {
		return ses, r, err
	}
	if err := o.Validate(); err != nil {
		return ses, r, err
	}
	err = s.write(ctx, s.sessions, func(t *tx) error {
		space, err := t.openSpace(o)
		if err != nil {
			return err
		}
		ses, r = idempotency.Session{Namespace: o.Namespace}, idempotency.Renewal{}
		_, err = t.get([]any{&ses.ID, &r.Now, &r.Highest, &r.Store}, `WITH c AS MATERIALIZED (SELECT {clock} AS now),
k AS (UPDATE belfry_control SET horizon = $5 WHERE space = $1 AND horizon <> $5)
INSERT INTO belfry_session (id, space, replica, boot, lease, horizon, retention, tolerance, expires)
SELECT nextval('belfry_number'), $1, $2, $3, $4, $5, $6, $7, c.now + $4::bigint * interval '1 microsecond' FROM c
RETURNING id, expires - lease * interval '1 microsecond', greatest(id, (SELECT last_value FROM belfry_number)), (SELECT id FROM belfry_store)`,
			space, []byte(o.Replica), []byte(o.Boot), o.Lease.Microseconds(), o.Horizon.Microseconds(), o.Retention.Microseconds(), o.Tolerance.Microseconds())
		return err
	})
	if err != nil {
		return idempotency.Session{}, idempotency.Renewal{}, err
	}
	r.Now = r.Now.UTC()
	return ses, r, nil
}

// openSpace finds the namespace or makes it, and demands its number of partitions. While it is locked nobody can change
// that or drop the namespace.
func (t *tx) openSpace(o idempotency.Opening) (id int, err error) {
	const find = `SELECT id, partitions FROM belfry_space WHERE name = $1 FOR KEY SHARE`
	var p int
	found, err := t.get([]any{&id, &p}, find, o.Namespace)
	if err == nil && !found {
		if _, err = t.exec(`WITH n AS (INSERT INTO belfry_space (name, partitions) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING id)
INSERT INTO belfry_control (space, controls, horizon) SELECT id, 0, $3 FROM n`, o.Namespace, o.Partitions, o.Horizon.Microseconds()); err == nil {
			found, err = t.get([]any{&id, &p}, find, o.Namespace)
		}
	}
	switch {
	case err != nil:
		return 0, err
	case !found:
		return 0, errAgain // it was dropped meanwhile
	case p != o.Partitions:
		return 0, fmt.Errorf("%w: namespace %q has %d partitions, not %d; set %d, or change it by `belfry migrate --partitions` with all replicas stopped",
			idempotency.ErrRefused, o.Namespace, p, o.Partitions, p)
	}
	return id, nil
}

// RenewSession renews a live session; see idempotency.Sessions.
func (s *Store) RenewSession(ctx context.Context, ses idempotency.Session) (r idempotency.Renewal, err error) {
	err = s.write(ctx, s.sessions, func(t *tx) error {
		found, err := t.get([]any{&r.Now, &r.Highest, &r.Store}, `WITH c AS MATERIALIZED (SELECT {clock} AS now)
UPDATE belfry_session s SET expires = c.now + s.lease * interval '1 microsecond' FROM c
WHERE s.id = $1 AND s.space = (SELECT id FROM belfry_space WHERE name = $2) AND s.marked IS NULL AND s.expires > c.now
RETURNING c.now, (SELECT last_value FROM belfry_number), (SELECT id FROM belfry_store)`, ses.ID, ses.Namespace)
		if err == nil && !found {
			err = idempotency.ErrSessionDead
		}
		return err
	})
	if err != nil {
		return idempotency.Renewal{}, err
	}
	r.Now = r.Now.UTC()
	return r, nil
}

// CloseSession marks the session dead; see idempotency.Sessions. It waits for the session's calls in flight.
func (s *Store) CloseSession(ctx context.Context, ses idempotency.Session) error {
	return s.write(ctx, s.sessions, func(t *tx) error {
		_, err := t.exec(`WITH c AS MATERIALIZED (SELECT {clock} AS now), x AS MATERIALIZED (
  SELECT id FROM belfry_session WHERE id = $1 AND space = (SELECT id FROM belfry_space WHERE name = $2) AND marked IS NULL FOR UPDATE)
UPDATE belfry_session s SET marked = c.now FROM c, x WHERE s.id = x.id AND s.marked IS NULL`, ses.ID, ses.Namespace)
		return err
	})
}

// MarkDead marks the dead sessions among the given; see idempotency.Sessions. It waits for the calls in flight of those.
func (s *Store) MarkDead(ctx context.Context, ses idempotency.Session, dead []int64) error {
	if err := idempotency.CheckBatch("mark dead", dead, func(int64) error { return nil }); err != nil {
		return err
	}
	dead = slices.Clone(dead)
	slices.Sort(dead)
	dead = slices.Compact(dead)
	return s.with(ctx, ses, shared, func(c *call) error {
		var some bool
		if _, err := c.get([]any{&some}, `SELECT EXISTS (SELECT FROM unnest($1::bigint[]) u(id) CROSS JOIN LATERAL (
  SELECT 1 FROM belfry_session s WHERE s.id = u.id AND s.space = $2 AND s.marked IS NULL AND s.expires <= $3 LIMIT 1) s)`, dead, c.space, c.now); err != nil || !some {
			return err
		}
		_, err := c.exec(markLapsed, dead, c.space, c.now)
		return err
	})
}

// markLapsed marks those of the sessions $1 dead that are not live.
const markLapsed = `WITH x AS MATERIALIZED (
  SELECT s.id FROM unnest($1::bigint[]) u(id) CROSS JOIN LATERAL (
    SELECT s.id FROM belfry_session s WHERE s.id = u.id AND s.space = $2 AND s.marked IS NULL AND s.expires <= $3 FOR UPDATE) s)
UPDATE belfry_session s SET marked = $3 FROM x WHERE s.id = x.id AND s.marked IS NULL`

// duration is what a number of microseconds stands for.
func duration(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// at is an instant that may be none.
func at(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

// instant is how at's instants are sent: nil for none.
func instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
