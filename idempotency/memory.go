package idempotency

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"
)

// Memory is a store in memory, for tests and for one process alone: it forgets
// with its process, and replicas of other processes cannot see it. Its only
// clock is the function it was made with, and no answer depends on the order of
// a map, so a simulator that repeats its calls gets its answers again; only the
// store's identity is random.
//
// It starts no goroutine and nothing needs to be closed.
type Memory struct {
	now func() time.Time
	id  string

	mu     sync.Mutex
	last   int64 // session ids, fences and first-seen counts are drawn from it
	spaces map[string]*space
	call   call // the last one, or the one that is made
}

var (
	_ Store   = (*Memory)(nil)
	_ History = (*Memory)(nil)
	_ Control = (*Memory)(nil)
	_ Leaders = (*Memory)(nil)
)

// NewMemory returns an empty store with the clock now; nil means time.Now. The
// store calls now while it holds its lock, so now must not call the store.
func NewMemory(now func() time.Time) *Memory {
	if now == nil {
		now = time.Now
	}
	return &Memory{now: now, id: rand.Text(), spaces: make(map[string]*space)}
}

// session is a session's row.
type session struct {
	Opening
	id       int64
	expires  time.Time
	marked   time.Time // zero: not marked dead
	defs     map[string]Definition
	declared int64             // nonce of the Declare that they are of
	runs     map[*row]struct{} // running under it
	named    int               // rows whose last claim or decision was its, and the leader's row where that names it
}

func (s *session) live(now time.Time) bool {
	return s.marked.IsZero() && now.Before(s.expires)
}

// died is the instant at which a session that is not live stopped being it.
func (s *session) died() time.Time {
	if !s.marked.IsZero() && s.marked.Before(s.expires) {
		return s.marked
	}
	return s.expires
}

// announced reports whether the session announced the hash for the job.
func (s *session) announced(job, hash string) bool {
	d, ok := s.defs[job]
	return ok && d.Hash == hash
}

// OpenSession opens a session; see Sessions.
func (m *Memory) OpenSession(ctx context.Context, o Opening) (Session, Renewal, error) {
	if err := ctx.Err(); err != nil {
		return Session{}, Renewal{}, err
	}
	if err := o.Validate(); err != nil {
		return Session{}, Renewal{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()

	sp := m.spaces[o.Namespace]
	if sp == nil {
		sp = newSpace(o.Partitions)
		m.spaces[o.Namespace] = sp
	}
	if sp.partitions != o.Partitions {
		return Session{}, Renewal{}, fmt.Errorf("%w: namespace %q has %d partitions, not %d; set %d, or change it with all replicas stopped",
			ErrRefused, o.Namespace, sp.partitions, o.Partitions, sp.partitions)
	}
	now := instant(m.now())
	s := &session{
		Opening: o, id: m.draw(), expires: instant(now.Add(o.Lease)),
		defs: make(map[string]Definition), runs: make(map[*row]struct{}),
	}
	sp.sessions = append(sp.sessions, s)
	sp.census.until = time.Time{}
	sp.horizon = o.Horizon
	return Session{Namespace: o.Namespace, ID: s.id}, Renewal{Now: now, Store: m.id, Highest: m.last}, nil
}

// RenewSession renews a live session; see Sessions.
func (m *Memory) RenewSession(ctx context.Context, s Session) (r Renewal, err error) {
	err = m.with(ctx, s, func(c *call) error {
		c.by.expires = instant(c.now.Add(c.by.Lease))
		c.census.until = earlier(c.census.until, c.by.expires) // the clock may have stepped back
		r = Renewal{Now: c.now, Store: m.id, Highest: m.last}
		return nil
	})
	return r, err
}

// CloseSession marks the session dead; see Sessions.
func (m *Memory) CloseSession(ctx context.Context, s Session) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()

	if sp := m.spaces[s.Namespace]; sp != nil {
		if ss := sp.session(s.ID); ss != nil && ss.marked.IsZero() {
			ss.marked = instant(m.now())
			sp.census.until = time.Time{}
		}
	}
	return nil
}

// MarkDead marks the dead sessions among the given; see Sessions.
func (m *Memory) MarkDead(ctx context.Context, s Session, dead []int64) error {
	if err := CheckBatch("mark dead", dead, func(int64) error { return nil }); err != nil {
		return err
	}
	return m.with(ctx, s, func(c *call) error {
		for _, id := range dead {
			if ss := c.session(id); ss != nil && ss.marked.IsZero() && !ss.live(c.now) {
				ss.marked = c.now
			}
		}
		return nil
	})
}
