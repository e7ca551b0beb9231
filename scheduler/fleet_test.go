package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/scheduler"
)

// gossip is a membership as all see it at once, for replicas in one bubble.
type gossip struct {
	mu      sync.Mutex
	states  map[string]string
	changed chan struct{}
}

func newGossip() *gossip {
	return &gossip{states: map[string]string{}, changed: make(chan struct{})}
}

func (g *gossip) set(name, state string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.states[name] = state
	if state == "" {
		delete(g.states, name)
	}
	close(g.changed)
	g.changed = make(chan struct{})
}

// seat is one replica's place in it.
type seat struct {
	*gossip
	name string
}

func (s seat) Self() string { return s.name }

func (s seat) Watch() ([]string, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var owners []string
	for name, state := range s.states {
		if state == "serving" {
			owners = append(owners, name)
		}
	}
	slices.Sort(owners)
	return owners, s.changed
}

func (s seat) Announce(_ context.Context, state, _, _ string, _ map[string]string) error {
	s.set(s.name, state)
	return nil
}

func (s seat) Facts() map[string]map[string]string { return nil }

// door is a replica's way to the store; while it is shut, calls end with an error at their deadline.
type door struct {
	idempotency.Store

	mu   sync.Mutex
	shut bool

	slow time.Duration // of listings: their answers are that old when they come
}

func (d *door) set(shut bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shut = shut
}

func (d *door) wait(ctx context.Context) error {
	d.mu.Lock()
	shut := d.shut
	d.mu.Unlock()
	if shut {
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func (d *door) OpenSession(ctx context.Context, o idempotency.Opening) (idempotency.Session, idempotency.Renewal, error) {
	if err := d.wait(ctx); err != nil {
		return idempotency.Session{}, idempotency.Renewal{}, err
	}
	return d.Store.OpenSession(ctx, o)
}

func (d *door) RenewSession(ctx context.Context, s idempotency.Session) (idempotency.Renewal, error) {
	if err := d.wait(ctx); err != nil {
		return idempotency.Renewal{}, err
	}
	return d.Store.RenewSession(ctx, s)
}

func (d *door) Claim(ctx context.Context, s idempotency.Session, nonce int64, c []idempotency.Claim) ([]idempotency.Answer, error) {
	if err := d.wait(ctx); err != nil {
		return nil, err
	}
	return d.Store.Claim(ctx, s, nonce, c)
}

func (d *door) Decide(ctx context.Context, s idempotency.Session, nonce int64, q []idempotency.Decision) ([]idempotency.Decided, error) {
	if err := d.wait(ctx); err != nil {
		return nil, err
	}
	return d.Store.Decide(ctx, s, nonce, q)
}

func (d *door) Lagging(ctx context.Context, s idempotency.Session, q idempotency.LagQuery) (idempotency.Lag, error) {
	if err := d.wait(ctx); err != nil {
		return idempotency.Lag{}, err
	}
	l, err := d.Store.Lagging(ctx, s, q)
	time.Sleep(d.slow)
	return l, err
}

func (d *door) Finish(ctx context.Context, ns string, f []idempotency.Finish) ([]idempotency.FinishAnswer, error) {
	if err := d.wait(ctx); err != nil {
		return nil, err
	}
	return d.Store.Finish(ctx, ns, f)
}

// fleet is replicas that share a store, in one bubble.
type fleet struct {
	t      *testing.T
	gossip *gossip
	store  *idempotency.Memory
	wg     sync.WaitGroup

	mu     sync.Mutex
	ran    map[string][]string // occurrence -> replicas that ran it
	hedged int
	stuck  int
	taken  int // claims refused because the run exists
}

func newFleet(t *testing.T) *fleet {
	return &fleet{t: t, gossip: newGossip(), store: idempotency.NewMemory(nil), ran: map[string][]string{}}
}

// replica is one started member of a fleet.
type replica struct {
	*scheduler.Scheduler
	door *door
	stop context.CancelFunc
	done chan error
}

const lease = 2 * time.Second

// start runs a replica with these jobs; each run is noted before its handler is called.
func (f *fleet) start(name string, list ...jobs.Job) *replica {
	f.t.Helper()
	return f.startAt(&door{Store: f.store}, name, list...)
}

func (f *fleet) startAt(d *door, name string, list ...jobs.Job) *replica {
	f.t.Helper()
	s, err := scheduler.New(scheduler.Config{
		Namespace: "test", Store: d, Members: seat{f.gossip, name}, Concurrency: 8,
		Lease: lease, Sweep: 200 * time.Millisecond, Drain: 5 * time.Second,
		Logger: slog.New(slog.DiscardHandler),
		Middleware: []scheduler.Middleware{func(next jobs.Handler) jobs.Handler {
			return func(ctx context.Context, o jobs.Occurrence) error {
				f.mu.Lock()
				f.ran[o.ID()] = append(f.ran[o.ID()], name)
				f.mu.Unlock()
				return next(ctx, o)
			}
		}},
		Hooks: []scheduler.Hooks{{
			Hedged: func(context.Context, jobs.Occurrence) { f.mu.Lock(); f.hedged++; f.mu.Unlock() },
			Refused: func(_ context.Context, r scheduler.Refused) {
				f.mu.Lock()
				defer f.mu.Unlock()
				if r.Cause == "taken" {
					f.taken++
				}
			},
			Stuck: func(context.Context, jobs.Occurrence) { f.mu.Lock(); f.stuck++; f.mu.Unlock() },
		}},
	})
	if err != nil {
		f.t.Fatal(err)
	}
	if err := s.Add(list...); err != nil {
		f.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(f.t.Context())
	r := &replica{Scheduler: s, door: d, stop: stop, done: make(chan error, 1)}
	f.wg.Go(func() { r.done <- s.Run(ctx) })
	return r
}

// end stops the replicas and waits for them.
func (f *fleet) end(replicas ...*replica) {
	for _, r := range replicas {
		r.stop()
	}
	f.wg.Wait()
}

// runs are the store's rows of a job, by outcome.
func (f *fleet) runs(job string) map[idempotency.Outcome][]idempotency.Run {
	f.t.Helper()
	out := map[idempotency.Outcome][]idempotency.Run{}
	for r, err := range f.store.List(f.t.Context(), idempotency.Filter{Namespace: "test", Job: job}) {
		if err != nil {
			f.t.Fatal(err)
		}
		out[r.Outcome] = append(out[r.Outcome], r)
	}
	return out
}

// count is how many occurrences ran, and how many of them more than once.
func (f *fleet) count() (once, more int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, by := range f.ran {
		if len(by) == 1 {
			once++
		} else {
			more++
		}
	}
	return once, more
}

func keys(n int) jobs.KeySource {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("c-%05d", i)
	}
	return jobs.KeyList(list...)
}

func quick(context.Context, jobs.Occurrence) error { time.Sleep(10 * time.Millisecond); return nil }

// bubble runs f with fake time that begins at a whole minute.
func bubble(t *testing.T, f func(t *testing.T, fl *fleet)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { f(t, newFleet(t)) })
}

var errDeclined = errors.New("declined")
