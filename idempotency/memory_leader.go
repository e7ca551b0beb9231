package idempotency

import (
	"context"
	"time"
)

// leading is a namespace's row of who leads.
type leading struct {
	term    int64
	session *session
	since   time.Time
	until   time.Time // when it resigned; zero: it has not
	why     string
}

// leader is who leads or led last.
func (l *leading) leader(now time.Time) Leader {
	if l == nil {
		return Leader{}
	}
	s := l.session
	x := Leader{Term: l.term, Session: s.id, Replica: s.Replica, Since: l.since, Until: l.until, Why: l.why}
	if l.until.IsZero() && !s.live(now) {
		x.Until, x.Why = s.died(), "its session ended"
	}
	return x
}

// Lead makes the session the leader where it may be; see Leaders.
func (m *Memory) Lead(ctx context.Context, s Session, term int64) (l Leader, err error) {
	if err := CheckLead(term); err != nil {
		return Leader{}, err
	}
	err = m.with(ctx, s, func(c *call) error {
		l = c.lead(term)
		return nil
	})
	return l, err
}

func (c *call) lead(term int64) Leader {
	last := c.leading.leader(c.now)
	switch {
	case last.Term == 0:
		return c.succeed(term, "nobody led before")
	case !last.Until.IsZero():
		if old := c.leading.session; c.leading.until.IsZero() && old.marked.IsZero() {
			old.marked = c.now
		}
		return c.succeed(term, last.Replica+": "+last.Why)
	case term > last.Term:
		return c.succeed(term, last.Replica+": a higher term")
	}
	return last
}

// succeed makes the session the leader. A session that the row names is not removed.
func (c *call) succeed(term int64, why string) Leader {
	if term == 0 {
		term = c.m.draw()
	}
	if c.leading != nil {
		c.leading.session.named--
	}
	c.by.named++
	c.leading = &leading{term: term, session: c.by, since: c.now, why: why}
	return c.leading.leader(c.now)
}

// Resign ends the session's leadership; see Leaders.
func (m *Memory) Resign(ctx context.Context, s Session, term int64, why string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := CheckResign(term, why); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()

	sp := m.spaces[s.Namespace]
	if sp == nil {
		return nil
	}
	now := instant(m.now())
	if l := sp.leading.leader(now); l.Session != s.ID || l.Term != term || !l.Until.IsZero() {
		return nil
	}
	sp.leading.until, sp.leading.why = now, "resigned"
	if why != "" {
		sp.leading.why += ": " + why
	}
	return nil
}

// Leader returns who leads, or led last; see Leaders.
func (m *Memory) Leader(ctx context.Context, namespace string) (Leader, error) {
	if err := ctx.Err(); err != nil {
		return Leader{}, err
	}
	if err := CheckNamespace(namespace); err != nil {
		return Leader{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()

	sp := m.spaces[namespace]
	if sp == nil {
		return Leader{}, nil
	}
	return sp.leading.leader(instant(m.now())), nil
}
