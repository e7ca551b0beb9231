package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
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
	controls                             int64     // the namespace's count, read without a lock
}

func (x *session) live(now time.Time) bool {
	return x.marked.IsZero() && now.Before(x.expires)
}

// call is one call of a live session.
type call struct {
	*tx
	by session
}

// Locks are taken in this order: the session, the leader's row, entries, dues, runs, what running and waiting runs have beside
// them, and last what changes of the namespace as a whole; of several rows of a table the lower key first. A call that changes what it is about for others, such as a
// mark, a decision or the closing of a due, locks that row for itself; all others share it. So calls that go together
// never wait for each other, and those that do not are one before the other.
const (
	noLock = ``
	shared = ` LOCK IN SHARE MODE`
	alone  = ` FOR UPDATE`
)

// with runs f for a live session that nobody can mark dead meanwhile.
func (s *Store) with(ctx context.Context, ses idempotency.Session, lock string, f func(*call) error) error {
	return s.write(ctx, func(t *tx) error { return t.of(ses, lock, f) })
}

// reads runs f for a live session at one instant.
func (s *Store) reads(ctx context.Context, ses idempotency.Session, f func(*call) error) error {
	return s.read(ctx, func(t *tx) error { return t.of(ses, noLock, f) })
}

func (t *tx) of(ses idempotency.Session, lock string, f func(*call) error) error {
	x, err := t.session(ses, lock)
	if err != nil {
		return err
	}
	if x == nil || !x.live(t.now) {
		return idempotency.ErrSessionDead
	}
	return f(&call{tx: t, by: *x})
}

// session finds a session and locks its row, but never its lease, which renewals write, nor its namespace, which all
// share. It returns nil where the namespace has no such session. It reads the clock.
func (t *tx) session(ses idempotency.Session, lock string) (*session, error) {
	x := session{id: ses.ID}
	var now int64
	var expires, marked, partitions sql.NullInt64
	found, err := t.get([]any{&now, &x.space, &partitions, &x.replica, &x.boot, &x.lease, &x.horizon, &x.retention, &x.tolerance, &marked, &x.declared, &expires, &x.controls},
		`SELECT ?, s.space, (SELECT n.partitions FROM belfry_space n WHERE n.id = s.space AND n.name = ?), s.replica, s.boot, s.lease, s.horizon, s.retention, s.tolerance, s.marked, s.declared,
  (SELECT l.expires FROM belfry_lease l WHERE l.session = s.id), coalesce((SELECT k.controls FROM belfry_control k WHERE k.space = s.space), 0)
FROM belfry_session s WHERE s.id = ?`+lock, t.clock, ses.Namespace, ses.ID)
	if err != nil || !found || !partitions.Valid {
		return nil, err
	}
	x.partitions = int(partitions.Int64)
	t.now = time.UnixMicro(now).UTC()
	x.expires, x.marked = at(expires), at(marked)
	return &x, nil
}

// OpenSession opens a session; see idempotency.Sessions.
func (s *Store) OpenSession(ctx context.Context, o idempotency.Opening) (ses idempotency.Session, r idempotency.Renewal, err error) {
	if err := o.Validate(); err != nil {
		return ses, r, err
	}
	err = s.renew(ctx, func(t *tx) error {
		space, err := t.space(o)
		if err != nil {
			return err
		}
		done, err := t.ExecContext(t.ctx, render(t.prefix, `INSERT INTO belfry_session (space, replica, boot, lease, horizon, retention, tolerance)
VALUES (?, ?, ?, ?, ?, ?, ?)`, []any{space, o.Replica, o.Boot, int64(o.Lease), int64(o.Horizon), int64(o.Retention), int64(o.Tolerance)}))
		if err != nil {
			return t.failed(err)
		}
		id, err := done.LastInsertId()
		if err != nil {
			return err
		}
		ses = idempotency.Session{Namespace: o.Namespace, ID: id}
		if r, err = t.renewal(t.now); err != nil {
			return err
		}
		_, err = t.exec(`INSERT INTO belfry_lease (session, expires) VALUES (?, ?)`, id, t.now.Add(o.Lease).UnixMicro())
		return err
	})
	if err != nil {
		return idempotency.Session{}, idempotency.Renewal{}, err
	}
	return ses, r, nil
}

// space finds the namespace or makes it, demands its number of partitions, and reads the clock.
func (t *tx) space(o idempotency.Opening) (id int64, err error) {
	var now int64
	var p int
	find := func() (bool, error) {
		return t.get([]any{&now, &id, &p}, `SELECT ?, id, partitions FROM belfry_space WHERE name = ?`+shared, t.clock, o.Namespace)
	}
	found, err := find()
	if err == nil && !found {
		if _, err = t.exec(`INSERT INTO belfry_space (name, partitions) VALUES (?, ?)`, o.Namespace, o.Partitions); err == nil {
			_, err = find()
		}
		if err == nil {
			_, err = t.exec(`INSERT INTO belfry_control (space) VALUES (?)`, id)
		}
	}
	if err != nil {
		return 0, err
	}
	if p != o.Partitions {
		return 0, fmt.Errorf("%w: namespace %q has %d partitions, not %d; set %d, or change it by `belfry migrate --partitions` with all replicas stopped",
			idempotency.ErrRefused, o.Namespace, p, o.Partitions, p)
	}
	t.now = time.UnixMicro(now).UTC()
	return id, nil
}

// renewal is the store's word now: which store it is, and what is not below any fence that was committed.
func (t *tx) renewal(now time.Time) (idempotency.Renewal, error) {
	var n int64
	r := idempotency.Renewal{Now: now}
	_, err := t.get([]any{&n, &r.Store}, `SELECT (SELECT coalesce(max(n), 0) FROM belfry_sequence), id FROM belfry_store`)
	r.Highest = (n+1)*fencesOf - 1
	return r, err
}

// RenewSession renews a live session; see idempotency.Sessions. It waits for no other calls but a mark of the session.
func (s *Store) RenewSession(ctx context.Context, ses idempotency.Session) (r idempotency.Renewal, err error) {
	err = s.renew(ctx, func(t *tx) error {
		var now, expires int64
		var marked, lease sql.NullInt64 // no lease: the session is another namespace's
		found, err := t.get([]any{&now, &expires, &marked, &lease}, `SELECT ?, l.expires, l.marked,
  (SELECT s.lease FROM belfry_session s JOIN belfry_space n ON n.id = s.space WHERE s.id = l.session AND n.name = ?)
FROM belfry_lease l WHERE l.session = ?`+alone, t.clock, ses.Namespace, ses.ID)
		if err != nil {
			return err
		}
		if !found || !lease.Valid || marked.Valid || now >= expires {
			return idempotency.ErrSessionDead
		}
		if r, err = t.renewal(time.UnixMicro(now).UTC()); err != nil {
			return err
		}
		_, err = t.exec(`UPDATE belfry_lease SET expires = ? WHERE session = ?`, r.Now.Add(time.Duration(lease.Int64)).UnixMicro(), ses.ID)
		return err
	})
	if err != nil {
		return idempotency.Renewal{}, err
	}
	return r, nil
}

// CloseSession marks the session dead; see idempotency.Sessions.
func (s *Store) CloseSession(ctx context.Context, ses idempotency.Session) error {
	return s.renew(ctx, func(t *tx) error {
		x, err := t.session(ses, alone)
		if err != nil || x == nil || !x.marked.IsZero() {
			return err
		}
		return t.mark(x.id)
	})
}

// mark marks a session dead whose row this transaction has locked.
func (t *tx) mark(id int64) error {
	for _, text := range []string{`UPDATE belfry_session SET marked = ? WHERE id = ?`, `UPDATE belfry_lease SET marked = ? WHERE session = ?`} {
		if _, err := t.exec(text, t.now.UnixMicro(), id); err != nil {
			return err
		}
	}
	return nil
}

// MarkDead marks the dead sessions among the given; see idempotency.Sessions. Where none is to be marked it locks
// none: two replicas may think the worst of each other.
func (s *Store) MarkDead(ctx context.Context, ses idempotency.Session, dead []int64) error {
	if err := idempotency.CheckBatch("mark dead", dead, func(int64) error { return nil }); err != nil {
		return err
	}
	dead = slices.Compact(slices.Sorted(slices.Values(dead)))
	return s.with(ctx, ses, shared, func(c *call) error { return c.markLapsed(dead) })
}

// markLapsed marks those of the sessions dead, which are in order, that are and are not marked so.
func (c *call) markLapsed(ids []int64) error {
	for _, id := range ids {
		lapsed, err := c.lapsed(id, noLock)
		if err == nil && lapsed {
			lapsed, err = c.lapsed(id, alone)
		}
		if err == nil && lapsed {
			err = c.mark(id)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lapsed reports whether a session of the namespace is dead and not marked so. Its lease is locked after it.
func (c *call) lapsed(id int64, lock string) (bool, error) {
	var one int
	found, err := c.get([]any{&one}, `SELECT 1 FROM belfry_session WHERE id = ? AND space = ? AND marked IS NULL`+lock, id, c.by.space)
	if err != nil || !found {
		return false, err
	}
	return c.get([]any{&one}, `SELECT 1 FROM belfry_lease WHERE session = ? AND expires <= ?`+lock, id, c.now.UnixMicro())
}

// at is the instant of that many microseconds since 1970.
func at(n sql.NullInt64) time.Time {
	if !n.Valid {
		return time.Time{}
	}
	return time.UnixMicro(n.Int64).UTC()
}

// micro is how an instant that may be none is kept: in microseconds since 1970, NULL for none.
func micro(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}
