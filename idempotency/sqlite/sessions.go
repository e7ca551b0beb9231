package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// session is a session's row.
type session struct {
	id, space                            int64
	partitions                           int
	replica, boot                        []byte
	lease, horizon, retention, tolerance time.Duration
	expires                              time.Time
	marked                               time.Time // zero: not marked dead
	declared                             int64     // nonce of the Declare that its definitions are of
	controls                             int64     // of its namespace; see idempotency.Lag
}

func (x *session) live(now time.Time) bool {
	return x.marked.IsZero() && now.Before(x.expires)
}

// call is one call of a live session.
type call struct {
	*tx
	by session

	fresh map[string]string     // by job: the hash of entry and session, where they agree
	open  map[dueOf]bool        // whether the due is open
	dead  map[int64]deadSession // sessions whose runs were asked for
}

type dueOf struct {
	job string
	due int64
}

// with runs f for a live session: first on a snapshot, and only if there is
// something to write again under the write lock. So a call that loses, or finds
// nothing to do, never waits for others and writes nothing.
func (s *Store) with(ctx context.Context, ses idempotency.Session, f func(*call) error) error {
	g := func(t *tx) error {
		c, err := begin(t, ses)
		if err != nil {
			return err
		}
		return f(c)
	}
	err := s.read(ctx, g)
	if err == errWrite {
		err = s.write(ctx, false, g)
	}
	return err
}

// begin finds the session and demands that it is live.
func begin(t *tx, ses idempotency.Session) (*call, error) {
	x, err := findSession(t, ses)
	if err != nil {
		return nil, err
	}
	if x == nil || !x.live(t.now) {
		return nil, idempotency.ErrSessionDead
	}
	return &call{tx: t, by: *x}, nil
}

// findSession returns nil where the namespace has no such session.
func findSession(t *tx, ses idempotency.Session) (*session, error) {
	x := session{id: ses.ID}
	var expires, marked sql.NullInt64
	found, err := t.get([]any{&x.space, &x.partitions, &x.replica, &x.boot, &x.lease, &x.horizon, &x.retention, &x.tolerance, &expires, &marked, &x.declared, &x.controls},
		`SELECT n.id, n.partitions, s.replica, s.boot, s.lease, s.horizon, s.retention, s.tolerance, s.expires, s.marked, s.declared, n.controls
FROM belfry_session s JOIN belfry_space n ON n.id = s.space WHERE s.id = ? AND n.name = ?`, ses.ID, ses.Namespace)
	if err != nil || !found {
		return nil, err
	}
	x.expires, x.marked = at(expires), at(marked)
	return &x, nil
}

// OpenSession opens a session; see idempotency.Sessions.
func (s *Store) OpenSession(ctx context.Context, o idempotency.Opening) (ses idempotency.Session, r idempotency.Renewal, err error) {
	if err := ctx.Err(); err != nil {
		return ses, r, err
	}
	if err := o.Validate(); err != nil {
		return ses, r, err
	}
	err = s.write(ctx, true, func(t *tx) error {
		if err := s.there(); err != nil {
			return err
		}
		space, err := t.space(o)
		if err != nil {
			return err
		}
		id, err := t.draw()
		if err != nil {
			return err
		}
		if _, err := t.exec(`UPDATE belfry_space SET horizon = ? WHERE id = ?`, int64(o.Horizon), space); err != nil {
			return err
		}
		_, err = t.exec(`INSERT INTO belfry_session (id, space, replica, boot, lease, horizon, retention, tolerance, expires, named)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0)`, id, space, []byte(o.Replica), []byte(o.Boot),
			int64(o.Lease), int64(o.Horizon), int64(o.Retention), int64(o.Tolerance), micro(t.now.Add(o.Lease)))
		ses = idempotency.Session{Namespace: o.Namespace, ID: id}
		r = idempotency.Renewal{Now: t.now, Store: s.id, Highest: t.last}
		return err
	})
	if err != nil {
		return idempotency.Session{}, idempotency.Renewal{}, err
	}
	return ses, r, nil
}

// space finds the namespace or makes it, and demands its number of partitions.
func (t *tx) space(o idempotency.Opening) (id int64, err error) {
	if _, err := t.exec(`INSERT INTO belfry_space (name, partitions) VALUES (?, ?) ON CONFLICT DO NOTHING`, o.Namespace, o.Partitions); err != nil {
		return 0, err
	}
	var p int
	if _, err := t.get([]any{&id, &p}, `SELECT id, partitions FROM belfry_space WHERE name = ?`, o.Namespace); err != nil {
		return 0, err
	}
	if p != o.Partitions {
		return 0, fmt.Errorf("%w: namespace %q has %d partitions, not %d; set %d, or change it by `belfry migrate --partitions` with all replicas stopped",
			idempotency.ErrRefused, o.Namespace, p, o.Partitions, p)
	}
	return id, nil
}

// RenewSession renews a live session; see idempotency.Sessions. It overtakes
// the calls of this process that wait for the write lock.
func (s *Store) RenewSession(ctx context.Context, ses idempotency.Session) (r idempotency.Renewal, err error) {
	err = s.write(ctx, true, func(t *tx) error {
		if err := s.there(); err != nil {
			return err
		}
		c, err := begin(t, ses)
		if err != nil {
			return err
		}
		r = idempotency.Renewal{Now: t.now}
		if _, err := t.get([]any{&r.Store, &r.Highest}, `SELECT id, last FROM belfry_store`); err != nil {
			return err
		}
		_, err = t.exec(`UPDATE belfry_session SET expires = ? WHERE id = ?`, micro(t.now.Add(c.by.lease)), ses.ID)
		return err
	})
	if err != nil {
		return idempotency.Renewal{}, err
	}
	return r, nil
}

// there refuses to go on in a file that its path does not lead to any more: other processes make a new store there.
func (s *Store) there() error {
	at, err := os.Stat(s.path)
	if err == nil && os.SameFile(at, s.file) {
		return nil
	}
	return errors.New("the file was deleted or replaced while it was open; stop all replicas, put back the file that holds what was done, and start them")
}

// CloseSession marks the session dead; see idempotency.Sessions.
func (s *Store) CloseSession(ctx context.Context, ses idempotency.Session) error {
	return s.write(ctx, true, func(t *tx) error {
		x, err := findSession(t, ses)
		if err != nil || x == nil {
			return err
		}
		_, err = t.exec(`UPDATE belfry_session SET marked = ? WHERE id = ? AND marked IS NULL`, micro(t.now), ses.ID)
		return err
	})
}

// MarkDead marks the dead sessions among the given; see idempotency.Sessions.
func (s *Store) MarkDead(ctx context.Context, ses idempotency.Session, dead []int64) error {
	if err := idempotency.CheckBatch("mark dead", dead, func(int64) error { return nil }); err != nil {
		return err
	}
	return s.with(ctx, ses, func(c *call) error {
		for _, id := range dead {
			x, err := findSession(c.tx, idempotency.Session{Namespace: ses.Namespace, ID: id})
			if err != nil {
				return err
			}
			if x == nil || !x.marked.IsZero() || x.live(c.now) {
				continue
			}
			if _, err := c.exec(`UPDATE belfry_session SET marked = ? WHERE id = ?`, micro(c.now), id); err != nil {
				return err
			}
		}
		return nil
	})
}

// micro is how an instant is kept: in microseconds since 1970, NULL for none.
func micro(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

// at is the instant that micro kept.
func at(n sql.NullInt64) time.Time {
	if !n.Valid {
		return time.Time{}
	}
	return time.UnixMicro(n.Int64).UTC()
}
