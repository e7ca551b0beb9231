package electortest

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// queue is an election by a Static: the one that stands longest is elected. It can kill, and cut off.
type queue struct {
	static *Static

	mu     sync.Mutex
	stands []string // in the order of their coming
	gone   map[string]bool
	leader string
}

// queuer is a replica's part in it.
type queuer struct {
	*queue
	name string
}

func newQueue(*testing.T) Election { return &queue{static: NewStatic(), gone: make(map[string]bool)} }

func (q *queue) Elector(name string) Elector { return &queuer{q, name} }

func (q *queue) Kill(name string) { q.Cut(name) }

func (q *queue) Cut(name string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.gone[name] = true
	q.electLocked()
}

func (q *queue) Mend(name string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.gone, name)
	q.electLocked()
}

// electLocked elects the first that stands and is there, unless it leads.
func (q *queue) electLocked() {
	i := slices.IndexFunc(q.stands, func(n string) bool { return !q.gone[n] })
	switch {
	case i < 0:
		q.leader = ""
		q.static.Depose()
	case q.stands[i] != q.leader:
		q.leader = q.stands[i]
		q.static.Elect(q.leader)
	}
}

// Lead stands at the end of the queue, at first and whenever lead has returned.
func (q *queuer) Lead(ctx context.Context, lead func(context.Context, int64) error) error {
	q.move(true)
	defer q.move(false)
	return q.static.For(q.name).Lead(ctx, func(ctx context.Context, term int64) error {
		defer q.move(true)
		return lead(ctx, term)
	})
}

func (q *queuer) move(back bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stands = slices.DeleteFunc(q.stands, func(n string) bool { return n == q.name })
	if back {
		q.stands = append(q.stands, q.name)
	}
	if q.leader == q.name {
		q.leader = ""
	}
	q.electLocked()
}

// TestStatic: an elector by Static keeps the contract.
func TestStatic(t *testing.T) {
	t.Parallel()
	Run(t, Config{Open: newQueue, Bubble: true, Changes: 200})
}

// TestStaticReal does so where goroutines run at once.
func TestStaticReal(t *testing.T) {
	t.Parallel()
	Run(t, Config{Open: newQueue, Changes: 200})
}

// TestSteer: who leads is what the test says, and nobody before; the causes say which.
func TestSteer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewStatic()
		r := newTrial(t, nil, 0)
		a := r.stand("a", s.For("a"), nil)
		b := r.stand("b", s.For("b"), nil)
		synctest.Wait()
		if len(r.calls) > 0 {
			t.Fatalf("%s leads before anybody was elected", (<-r.calls).name)
		}
		leads := func(p *replica, term int64) *call {
			t.Helper()
			c := r.next()
			if c.replica != p || c.term != term {
				t.Errorf("%s leads in term %d, want %s in %d", c.name, c.term, p.name, term)
			}
			return c
		}
		ends := func(c *call, why error) {
			t.Helper()
			if got := context.Cause(c.ctx); got != why { // at once: nothing was waited for
				t.Errorf("term %d ended with %v, want %v", c.term, got, why)
			}
		}
		first := leads(a, s.Elect("a"))
		again := s.Elect("a")
		ends(first, errReplace)
		second := leads(a, again)
		third := s.Elect("b")
		ends(second, errReplace)
		now := leads(b, third)
		nobody := func(when string) {
			t.Helper()
			synctest.Wait()
			if len(r.calls) > 0 {
				t.Errorf("%s leads %s", (<-r.calls).name, when)
			}
		}
		now.answer <- nil
		nobody("when its lead has returned")
		ends(now, errDone)
		now = leads(b, s.Elect("b"))
		s.Depose()
		ends(now, errDeposed)
		nobody("after Depose")
		late := s.Elect("c") // stands later
		c := r.stand("c", s.For("c"), nil)
		leads(c, late)
		if err := s.For("c").Lead(t.Context(), nil); err == nil {
			t.Error("a second Lead of one name was not refused")
		}
		r.leave(c)
		r.stand("c", s.For("c"), nil)
		nobody("though its Lead has ended, which resigns")
		s.Elect("d")
		ctx, end := context.WithCancel(t.Context())
		end()
		if err := s.For("d").Lead(ctx, nil); err != nil {
			t.Errorf("Lead returned %v", err)
		}
		r.stand("d", s.For("d"), nil)
		nobody("though its first Lead has ended, which resigns")
	})
}
