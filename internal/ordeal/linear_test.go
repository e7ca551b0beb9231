package ordeal

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/storetest"
)

const (
	clients = 6
	patient = 10 * time.Second // of a call that nothing disturbs
)

// T13: what clients that claim, take up, finish, renew and crash at once are answered is what a register for each
// occurrence would have answered, one question after the other.
func TestLinearizable(t *testing.T) {
	each(t, anyStore, func(t *testing.T, s *site) {
		life{seed: seed(t), until: *ops, deadline: patient}.live(t, s.open(t), s.open(t))
	})
}

// life is how clients work on stores for a while.
type life struct {
	seed     uint64
	until    int           // questions
	deadline time.Duration // of a call

	// trouble is called so many times, evenly among the questions.
	trouble func(n int)
	times   int
}

// live lets clients work on the stores, by turns, and fails the test if what they saw breaks the contract.
func (l life) live(t *testing.T, stores ...storetest.Store) {
	t.Helper()
	sum, err := l.run(t, stores...)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("T13: %d questions, judged in %v: %v", l.until, sum.judged.Round(time.Millisecond), sum)
	if sum.won < l.until/100 || sum.takenUp == 0 || sum.fenced == 0 {
		t.Errorf("hardly anything happened, and nothing was shown: %v", sum)
	}
}

func (l life) run(t *testing.T, stores ...storetest.Store) (tally, error) {
	t.Helper()
	h := newHistory(l.until / (l.times + 1))
	due := openDue(t, stores[0])
	var wg sync.WaitGroup
	for i := range clients {
		c := &client{
			store: stores[i%len(stores)], h: h, name: i, rng: rand.New(rand.NewPCG(l.seed, uint64(i))),
			due: due, brief: 50 * time.Millisecond, deadline: l.deadline,
		}
		wg.Go(func() { c.run(t.Context(), l.until) })
	}
	for n := range l.times {
		<-h.tick
		l.trouble(n)
	}
	h.calm.Store(true)
	wg.Wait()
	begun := time.Now()
	sum, err := h.judge()
	sum.judged = time.Since(begun)
	return sum, err
}

// openDue opens a due of the job, and returns it.
func openDue(t *testing.T, s idempotency.Store) time.Time {
	t.Helper()
	ctx := t.Context()
	session, told, err := s.OpenSession(ctx, opening("opener"))
	if err != nil {
		t.Fatal(err)
	}
	d := declaration(told.Now)
	entries, err := s.Declare(ctx, session, 1, []idempotency.Declaration{d})
	if err != nil {
		t.Fatal(err)
	}
	due := told.Now.Add(-time.Minute).Truncate(time.Second)
	decided, err := s.Decide(ctx, session, 1, []idempotency.Decision{{
		Seen: entries[0], Definition: d.Definition, Opened: due, Next: due.Add(time.Hour), Keyed: true, Run: []time.Time{due},
	}})
	if err != nil || !decided[0].Won {
		t.Fatalf("opening the due: %+v %v", decided, err)
	}
	return due
}

// T21: a store that breaks the contract is found out.
func TestBrokenStoreIsCaught(t *testing.T) {
	t.Parallel()
	for name, breaks := range map[string]func(storetest.Store) storetest.Store{
		"finish ignores the fence":   func(s storetest.Store) storetest.Store { return blind{s} },
		"a lost claim is called won": func(s storetest.Store) storetest.Store { return &generous{Store: s} },
		"a finish is forgotten":      func(s storetest.Store) storetest.Store { return forgetful{s} },
		"a dead session claims":      func(s storetest.Store) storetest.Store { return &undead{Store: s} },
		"a nonce does not count":     func(s storetest.Store) storetest.Store { return amnesiac{s} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 20 {
				_, err := life{seed: rand.Uint64(), until: 2000, deadline: patient}.run(t, breaks(idempotency.NewMemory(nil)))
				if err != nil {
					t.Log(firstLine(err))
					return
				}
			}
			t.Fatal("its histories pass for a register's")
		})
	}
}

func firstLine(err error) string {
	s, _, _ := strings.Cut(err.Error(), "\n")
	return s
}

// blind finishes a run under whatever fence it has.
type blind struct{ storetest.Store }

func (b blind) Finish(ctx context.Context, ns string, f []idempotency.Finish) ([]idempotency.FinishAnswer, error) {
	for i := range f {
		for x, err := range b.List(ctx, idempotency.Filter{Namespace: ns, Job: f[i].ID.Job, Key: f[i].ID.Key}) {
			if err == nil && x.State == idempotency.Running {
				f[i].Fence = x.Fence
			}
		}
	}
	return b.Store.Finish(ctx, ns, f)
}

// generous tells one in ten who lost that they won.
type generous struct {
	storetest.Store
	mu sync.Mutex
	n  int64
}

func (g *generous) Claim(ctx context.Context, s idempotency.Session, nonce int64, c []idempotency.Claim) ([]idempotency.Answer, error) {
	answers, err := g.Store.Claim(ctx, s, nonce, c)
	g.mu.Lock()
	defer g.mu.Unlock()

	for i, a := range answers {
		if g.n++; a.Verdict == idempotency.Taken && g.n%10 == 0 {
			answers[i] = idempotency.Answer{Verdict: idempotency.Won, Fence: 1<<40 + g.n}
		}
	}
	return answers, err
}

// forgetful acknowledges finishes whose fence ends in 7, and does nothing.
type forgetful struct{ storetest.Store }

func (x forgetful) Finish(ctx context.Context, ns string, f []idempotency.Finish) ([]idempotency.FinishAnswer, error) {
	if f[0].Fence%10 == 7 {
		return []idempotency.FinishAnswer{idempotency.Finished}, nil
	}
	return x.Store.Finish(ctx, ns, f)
}

// undead claims for a dead session under another one of its own.
type undead struct {
	storetest.Store
	mu    sync.Mutex
	spare *idempotency.Session
}

func (u *undead) Claim(ctx context.Context, s idempotency.Session, nonce int64, c []idempotency.Claim) ([]idempotency.Answer, error) {
	answers, err := u.Store.Claim(ctx, s, nonce, c)
	if err == nil {
		return answers, nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()

	if u.spare == nil {
		spare, told, err := u.OpenSession(ctx, opening("spare"))
		if err != nil {
			return nil, err
		}
		if _, err := u.Declare(ctx, spare, 1, []idempotency.Declaration{declaration(told.Now)}); err != nil {
			return nil, err
		}
		u.spare = &spare
	}
	return u.Store.Claim(ctx, *u.spare, 1<<40+nonce, c)
}

// amnesiac does not recognise a claim that is repeated.
type amnesiac struct{ storetest.Store }

func (a amnesiac) Claim(ctx context.Context, s idempotency.Session, nonce int64, c []idempotency.Claim) ([]idempotency.Answer, error) {
	return a.Store.Claim(ctx, s, rand.Int64(), c)
}
