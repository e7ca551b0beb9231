package mysql

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/internal/rule"
)

// Lead makes the session the leader where it may be; see idempotency.Leaders. It reads before it locks anything but its own
// session, so that a call that changes nothing waits for nobody who leads, and writes nothing.
func (s *Store) Lead(ctx context.Context, ses idempotency.Session, term int64) (leader idempotency.Leader, err error) {
	if err := idempotency.CheckLead(term); err != nil {
		return idempotency.Leader{}, err
	}
	err = s.with(ctx, ses, shared, func(c *call) error {
		leader, err = c.lead(ses, term)
		return err
	})
	if err != nil {
		return idempotency.Leader{}, err
	}
	return leader, nil
}

func (c *call) lead(ses idempotency.Session, term int64) (idempotency.Leader, error) {
	last, next, err := c.succession(term)
	if err != nil || !next.Leads {
		return last.Leader(c.now), err
	}
	// The session of who led is locked before the row, as sessions are before all else.
	if err := c.bury(last, next); err != nil {
		return idempotency.Leader{}, err
	}
	if err := c.holdLeader(); err != nil {
		return idempotency.Leader{}, err
	}
	// The clock is read again: a term begins no earlier than what it waited for ended. So may the lease have.
	if err := c.of(ses, noLock, func(*call) error { return nil }); err != nil {
		return idempotency.Leader{}, err
	}
	if last, next, err = c.succession(term); err != nil || !next.Leads {
		return last.Leader(c.now), err
	}
	if err := c.bury(last, next); err != nil { // of one that led meanwhile
		return idempotency.Leader{}, err
	}
	return c.begin(term, next.Why)
}

// succession reads who leads, and judges a call of Lead by it.
func (c *call) succession(term int64) (rule.Leading, rule.Succession, error) {
	last, err := c.leading(c.by.space)
	return last, last.Succeed(term, c.now), err
}

// bury marks the session of who led dead where it is to be.
func (c *call) bury(last rule.Leading, next rule.Succession) error {
	if !next.Mark {
		return nil
	}
	return c.markLapsed([]int64{last.Session})
}

// holdLeader locks the leader's row for the call. Where there is none it makes one that names no session: of two calls that
// do, one finds a duplicate, and tries again.
func (c *call) holdLeader() error {
	found, err := c.get([]any{new(int)}, `SELECT 1 FROM belfry_leader WHERE space = ?`+alone, c.by.space)
	if err == nil && !found {
		_, err = c.exec(`INSERT INTO belfry_leader (space, term, session, since, why) VALUES (?, 0, 0, 0, '')`, c.by.space)
	}
	return err
}

// begin begins a term in the row that is held. Only now is a fence drawn for it, and so it is above those of all terms before.
func (c *call) begin(term int64, why string) (idempotency.Leader, error) {
	if term == 0 {
		n, err := c.draw()
		if err != nil {
			return idempotency.Leader{}, err
		}
		term = fenceOf(n, 0, true)
	}
	_, err := c.exec(`UPDATE belfry_leader SET term = ?, session = ?, since = ?, until = NULL, why = ? WHERE space = ?`,
		term, c.by.id, c.now.UnixMicro(), why, c.by.space)
	return idempotency.Leader{Term: term, Session: c.by.id, Replica: string(c.by.replica), Since: c.now, Why: why}, err
}

// Resign ends the session's leadership of a term; see idempotency.Leaders. Where that changes nothing it locks nothing.
func (s *Store) Resign(ctx context.Context, ses idempotency.Session, term int64, why string) error {
	if err := errors.Join(idempotency.CheckNamespace(ses.Namespace), idempotency.CheckResign(term, why)); err != nil {
		return err
	}
	return s.write(ctx, func(t *tx) error { return t.resign(ses, term, why) })
}

func (t *tx) resign(ses idempotency.Session, term int64, why string) error {
	leads := func() (space int64, leads bool, err error) {
		space, last, err := t.leadingOf(ses.Namespace)
		return space, last.Resigns(ses.ID, term, t.now), err
	}
	space, is, err := leads()
	if err != nil || !is {
		return err
	}
	if _, err := t.get([]any{new(int)}, `SELECT 1 FROM belfry_leader WHERE space = ?`+alone, space); err != nil {
		return err
	}
	if _, is, err = leads(); err != nil || !is {
		return err
	}
	_, err = t.exec(`UPDATE belfry_leader SET until = ?, why = ? WHERE space = ?`, t.now.UnixMicro(), rule.Resigned(why), space)
	return err
}

// Leader returns who leads, or led last; see idempotency.Leaders. It reads no snapshot, which would be older than the clock: a
// lease that was renewed in between would have ended.
func (s *Store) Leader(ctx context.Context, namespace string) (leader idempotency.Leader, err error) {
	if err := idempotency.CheckNamespace(namespace); err != nil {
		return idempotency.Leader{}, err
	}
	err = s.write(ctx, func(t *tx) error {
		_, last, err := t.leadingOf(namespace)
		leader = last.Leader(t.now)
		return err
	})
	if err != nil {
		return idempotency.Leader{}, err
	}
	return leader, nil
}

// leadingOf finds a namespace, 0 if there is none, and reads the clock and then who leads.
func (t *tx) leadingOf(namespace string) (space int64, last rule.Leading, err error) {
	var now int64
	found, err := t.get([]any{&now, &space}, `SELECT ?, id FROM belfry_space WHERE name = ?`, t.clock, namespace)
	if err != nil || !found {
		return 0, last, err
	}
	t.now = time.UnixMicro(now).UTC()
	last, err = t.leading(space)
	return space, last, err
}

// leading reads who leads a namespace, without a lock. A row that names no session is of one who is about to.
func (t *tx) leading(space int64) (x rule.Leading, err error) {
	var since, expires int64
	var until, marked sql.NullInt64
	found, err := t.get([]any{&x.Term, &x.Session, &since, &until, &x.Why, &x.Replica, &expires, &marked},
		`SELECT b.term, b.session, b.since, b.until, b.why, s.replica, l.expires, s.marked
FROM belfry_leader b JOIN belfry_session s ON s.id = b.session JOIN belfry_lease l ON l.session = b.session WHERE b.space = ?`, space)
	if err != nil || !found {
		return rule.Leading{}, err
	}
	x.Since, x.Until, x.Expires, x.Marked = time.UnixMicro(since).UTC(), at(until), time.UnixMicro(expires).UTC(), at(marked)
	return x, nil
}
