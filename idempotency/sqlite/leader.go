package sqlite

import (
	"context"
	"database/sql"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/internal/rule"
)

// Lead makes the session the leader where it may be; see idempotency.Leaders. Where it may not it takes no lock.
func (s *Store) Lead(ctx context.Context, ses idempotency.Session, term int64) (l idempotency.Leader, err error) {
	if err := idempotency.CheckLead(term); err != nil {
		return idempotency.Leader{}, err
	}
	err = s.with(ctx, ses, func(c *call) error {
		l, err = c.lead(term)
		return err
	})
	if err != nil {
		return idempotency.Leader{}, err
	}
	return l, nil
}

func (c *call) lead(term int64) (none idempotency.Leader, err error) {
	last, err := c.leading(c.by.space)
	if err != nil {
		return none, err
	}
	next := last.Succeed(term, c.now)
	if !next.Leads {
		return last.Leader(c.now), nil
	}
	if term == 0 {
		if term, err = c.draw(); err != nil {
			return none, err
		}
	}
	if next.Mark {
		if _, err := c.exec(`UPDATE belfry_session SET marked = ? WHERE id = ? AND marked IS NULL`, micro(c.now), last.Session); err != nil {
			return none, err
		}
	}
	if _, err := c.exec(`INSERT OR REPLACE INTO belfry_leader (space, term, session, since, why) VALUES (?, ?, ?, ?, ?)`,
		c.by.space, term, c.by.id, micro(c.now), []byte(next.Why)); err != nil {
		return none, err
	}
	if last.Term > 0 {
		c.name(last.Session, -1)
	}
	c.name(c.by.id, 1)
	return idempotency.Leader{Term: term, Session: c.by.id, Replica: string(c.by.replica), Since: c.now, Why: next.Why}, nil
}

// leading is the namespace's row of who leads, zero where there is none.
func (t *tx) leading(space int64) (l rule.Leading, err error) {
	var why, replica []byte
	var since, until, expires, marked sql.NullInt64
	_, err = t.get([]any{&l.Term, &l.Session, &since, &until, &why, &replica, &expires, &marked},
		`SELECT l.term, l.session, l.since, l.until, l.why, s.replica, s.expires, s.marked
FROM belfry_leader l JOIN belfry_session s ON s.id = l.session WHERE l.space = ?`, space)
	l.Since, l.Until, l.Why = at(since), at(until), string(why)
	l.Replica, l.Expires, l.Marked = string(replica), at(expires), at(marked)
	return l, err
}

// Resign ends the session's leadership of a term; see idempotency.Leaders.
func (s *Store) Resign(ctx context.Context, ses idempotency.Session, term int64, why string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := idempotency.CheckResign(term, why); err != nil {
		return err
	}
	resign := func(t *tx) error {
		space, last, err := t.leadingOf(ses.Namespace)
		if err != nil || !last.Resigns(ses.ID, term, t.now) {
			return err
		}
		_, err = t.exec(`UPDATE belfry_leader SET until = ?, why = ? WHERE space = ?`, micro(t.now), []byte(rule.Resigned(why)), space)
		return err
	}
	err := s.read(ctx, resign)
	if err == errWrite {
		err = s.write(ctx, true, resign)
	}
	return err
}

// Leader returns who leads, or led last; see idempotency.Leaders. It reads a snapshot, so it waits for nobody.
func (s *Store) Leader(ctx context.Context, namespace string) (l idempotency.Leader, err error) {
	if err := idempotency.CheckNamespace(namespace); err != nil {
		return idempotency.Leader{}, err
	}
	err = s.read(ctx, func(t *tx) error {
		_, last, err := t.leadingOf(namespace)
		l = last.Leader(t.now)
		return err
	})
	if err != nil {
		return idempotency.Leader{}, err
	}
	return l, nil
}

// leadingOf is leading by the namespace's name; nobody leads one that is not there.
func (t *tx) leadingOf(namespace string) (space int64, l rule.Leading, err error) {
	found, err := t.get([]any{&space}, `SELECT id FROM belfry_space WHERE name = ?`, namespace)
	if err != nil || !found {
		return 0, l, err
	}
	l, err = t.leading(space)
	return space, l, err
}
