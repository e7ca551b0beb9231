package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/scheduler"
)

// said is one announcement, when it was made.
type said struct {
	at            time.Time
	state, reason string
	facts         map[string]string
}

// ledger is a seat that writes down what its replica announces; each announcement takes as long as the test says.
type ledger struct {
	seat
	take func(ctx context.Context, state string) error

	mu  sync.Mutex
	all []said
	why string // what the members say of this replica
}

func (l *ledger) Announce(ctx context.Context, state, layout, reason string, facts map[string]string) error {
	l.mu.Lock()
	l.all = append(l.all, said{time.Now(), state, reason, facts})
	l.mu.Unlock()
	if l.take != nil {
		if err := l.take(ctx, state); err != nil {
			return err
		}
	}
	return l.seat.Announce(ctx, state, layout, reason, facts)
}

func (l *ledger) Reason() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.why
}

func (l *ledger) overrule(why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.why = why
}

func (l *ledger) last() said {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.all) == 0 {
		return said{}
	}
	return l.all[len(l.all)-1]
}

// run starts a replica of these members and this store; its job is due each hour.
func (l *ledger) run(ctx context.Context, t *testing.T, store idempotency.Store) (*scheduler.Scheduler, <-chan error) {
	t.Helper()
	return l.runAs(ctx, t, l, store)
}

func (l *ledger) runAs(ctx context.Context, t *testing.T, m scheduler.Members, store idempotency.Store) (*scheduler.Scheduler, <-chan error) {
	t.Helper()
	s, err := scheduler.New(scheduler.Config{Namespace: "test", Store: store, Members: m, Lease: lease, Sweep: 100 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	job := jobs.Job{Name: "j", Schedule: jobs.Every(time.Hour), Run: quick}
	if store == nil {
		job.Guarantee = jobs.Efficiency
	}
	if err == nil {
		err = s.Add(job)
	}
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	return s, done
}

// renamed is a store whose identity the test changes.
type renamed struct {
	idempotency.Store

	mu sync.Mutex
	id string
}

func (r *renamed) rename(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.id = id
}

func (r *renamed) as(x idempotency.Renewal, err error) (idempotency.Renewal, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	x.Store = r.id
	return x, err
}

func (r *renamed) OpenSession(ctx context.Context, o idempotency.Opening) (idempotency.Session, idempotency.Renewal, error) {
	s, x, err := r.Store.OpenSession(ctx, o)
	x, err = r.as(x, err)
	return s, x, err
}

func (r *renamed) RenewSession(ctx context.Context, s idempotency.Session) (idempotency.Renewal, error) {
	return r.as(r.Store.RenewSession(ctx, s))
}

// A replica announces the store it works with, from when it serves on. When another one answers in its place it is
// unfit, and goes on announcing the one that it holds to be right, so that the others can count who has which.
func TestStoreIsAnnounced(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		store := &renamed{Store: f.store, id: "first"}
		l := &ledger{seat: seat{f.gossip, "a"}}
		ctx, stop := context.WithCancel(t.Context())
		s, done := l.run(ctx, t, store)
		time.Sleep(5 * time.Second)
		if got := l.last(); got.state != "serving" || len(got.facts) != 3 || got.facts["store"] != "first" {
			t.Errorf("announced %+v, want serving with the store's identity, a fence and the zone data", got)
		}
		store.rename("second")
		time.Sleep(5 * time.Second)
		got := l.last()
		if got.state != "unfit" || got.facts["store"] != "first" || !strings.Contains(got.reason, "replaced: it is second, not first") {
			t.Errorf("announced %+v, want unfit, since the store was replaced, with the store it began with", got)
		}
		if err := s.Ready(); err == nil || !strings.Contains(err.Error(), got.reason) {
			t.Errorf("Ready says %v, not the reason that was announced: %q", err, got.reason)
		}
		store.rename("first")
		time.Sleep(5 * time.Second)
		if got := l.last(); got.state != "serving" || got.facts["store"] != "first" || s.Ready() != nil {
			t.Errorf("the first store is back: announced %+v, and Ready says %v", got, s.Ready())
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if got := l.last(); got.state != "draining" || got.facts["store"] != "first" || got.reason != "stopping: the program's context ended" {
			t.Errorf("announced %+v", got)
		}
	})
}

// Without a store there is no such fact, and one with an endless name does not break what members may announce.
func TestStoreFactIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		long := &renamed{Store: f.store, id: strings.Repeat("s", 1000)}
		for name, store := range map[string]idempotency.Store{"none": nil, "long": long} {
			l := &ledger{seat: seat{newGossip(), name}}
			ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
			_, done := l.run(ctx, t, store)
			if err := <-done; err != nil {
				t.Error(err)
			}
			stop()
			id, has := l.last().facts["store"]
			if has != (store != nil) || len(id) > 64 {
				t.Errorf("%s: facts %v", name, l.last().facts)
			}
		}
	})
}

// What a replica decides is announced at once: not when the announcement before it is through, nor when that is tried again.
func TestNewerStateIsNotHeldUp(t *testing.T) {
	refuses := func(context.Context) error { return errors.New("gossip is not up") }
	for name, slow := range map[string]func(context.Context) error{
		"before it is told": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"before it failed":  refuses,
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fleet) {
				l := &ledger{seat: seat{f.gossip, "a"}, take: func(ctx context.Context, state string) error {
					if state == "serving" {
						return slow(ctx)
					}
					return nil
				}}
				ctx, stop := context.WithCancelCause(t.Context())
				_, done := l.run(ctx, t, f.store)
				time.Sleep(4*time.Second + 100*time.Millisecond)
				if got := l.last(); got.state != "serving" {
					t.Fatalf("announced %+v, want serving", got)
				}
				at := time.Now()
				stop(errors.New("terminated signal received"))
				if err := <-done; err != nil {
					t.Error(err)
				}
				got := l.last()
				if got.state != "draining" || got.reason != "stopping: terminated signal received" {
					t.Fatalf("announced %+v", got)
				}
				if d := got.at.Sub(at); d > 0 {
					t.Errorf("draining is announced %v after it began", d)
				}
			})
		})
	}
}

// The last announcement is waited for, since Run returns after it; the one before it is not.
func TestLastAnnouncementIsWaitedFor(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		l := &ledger{seat: seat{f.gossip, "a"}, take: func(ctx context.Context, state string) error {
			select {
			case <-time.After(2 * time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}}
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		_, done := l.run(ctx, t, f.store)
		from := time.Now()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if took := time.Since(from); took != 3*time.Second {
			t.Errorf("Run took %v, want 1 s, and 2 s for its last announcement", took)
		}
		f.gossip.mu.Lock()
		defer f.gossip.mu.Unlock()
		if got := f.gossip.states["a"]; got != "draining" {
			t.Errorf("Run has returned, and the others know this replica as %q", got)
		}
	})
}

// refusing is a store that will never take this replica, once it is told so.
type refusing struct {
	idempotency.Store
	now chan struct{} // closed: from then on
}

func (r refusing) OpenSession(ctx context.Context, o idempotency.Opening) (idempotency.Session, idempotency.Renewal, error) {
	select {
	case <-r.now:
		return idempotency.Session{}, idempotency.Renewal{}, fmt.Errorf("%w: namespace \"test\" has 8192 partitions, not 4096", idempotency.ErrRefused)
	default:
		return r.Store.OpenSession(ctx, o)
	}
}

func (r refusing) RenewSession(ctx context.Context, s idempotency.Session) (idempotency.Renewal, error) {
	select {
	case <-r.now:
		return idempotency.Renewal{}, idempotency.ErrSessionDead
	default:
		return r.Store.RenewSession(ctx, s)
	}
}

// A replica that its store refuses for good returns from Run, and is no owner in the eyes of the others; they see why.
func TestRefusedReplicaOwnsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		now := make(chan struct{})
		l := &ledger{seat: seat{f.gossip, "a"}}
		_, done := l.run(t.Context(), t, refusing{f.store, now})
		time.Sleep(5 * time.Second)
		if got := l.last(); got.state != "serving" {
			t.Fatalf("announced %+v, want serving", got)
		}
		close(now)
		if err := <-done; !errors.Is(err, idempotency.ErrRefused) {
			t.Errorf("Run returned %v", err)
		}
		if got := l.last(); got.state != "unfit" || !strings.Contains(got.reason, "8192 partitions, not 4096") {
			t.Errorf("announced %+v, want unfit and why", got)
		}
	})
}

// Where the members do not let a replica own anything, Ready says what they say, and that as of now.
func TestReadyNamesTheMembersReason(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		l := &ledger{seat: seat{f.gossip, "a"}, take: func(context.Context, string) error { return errors.New("kept out") }}
		ctx, stop := context.WithCancel(t.Context())
		s, done := l.run(ctx, t, f.store)
		time.Sleep(5 * time.Second)
		for _, why := range []string{"its store is second, not first, which 2 of 3 members have", "a newer process has its name", ""} {
			l.overrule(why)
			if err := s.Ready(); err == nil || !strings.HasSuffix(err.Error(), why) || !strings.Contains(err.Error(), "as an owner") {
				t.Errorf("Ready says %v; the members say %q", err, why)
			}
		}
		stop()
		<-done
	})
}

// Until the store has taken the jobs of a session, a replica is not ready, though that is open: of its first and of
// each later one.
func TestReadyWaitsForTheJobs(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		store := &undeclared{Store: f.store, shut: true}
		l := &ledger{seat: seat{f.gossip, "a"}}
		ctx, stop := context.WithCancel(t.Context())
		s, done := l.run(ctx, t, store)
		want := func(state, word string) {
			t.Helper()
			time.Sleep(900 * time.Millisecond)
			if err := s.Ready(); l.last().state != state || (err == nil) != (word == "") || err != nil && !strings.Contains(err.Error(), word) {
				t.Errorf("Ready says %v, announced %+v; want %q, and %q", err, l.last(), word, state)
			}
		}
		want("", "joining")
		store.set(false, false)
		want("serving", "")
		store.set(true, true)
		want("serving", "session was lost")
		store.set(false, false)
		want("serving", "")
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// undeclared is a store that takes no jobs while it is shut, and finds sessions dead where it is told to.
type undeclared struct {
	idempotency.Store

	mu         sync.Mutex
	shut, dead bool
}

func (u *undeclared) set(shut, dead bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.shut, u.dead = shut, dead
}

func (u *undeclared) Declare(ctx context.Context, s idempotency.Session, nonce int64, d []idempotency.Declaration) ([]idempotency.Entry, error) {
	u.mu.Lock()
	shut := u.shut
	u.mu.Unlock()
	if shut {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return u.Store.Declare(ctx, s, nonce, d)
}

func (u *undeclared) Lagging(ctx context.Context, s idempotency.Session, q idempotency.LagQuery) (idempotency.Lag, error) {
	u.mu.Lock()
	dead := u.dead
	u.dead = false
	u.mu.Unlock()
	if dead {
		return idempotency.Lag{}, idempotency.ErrSessionDead
	}
	return u.Store.Lagging(ctx, s, q)
}
