package scheduler_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/membership/electortest"
	"github.com/belfry-go/belfry/ring"
	"github.com/belfry-go/belfry/scheduler"
)

// smallRing is built quickly, which counts where many schedulers start.
var smallRing = &ring.Options{Partitions: 64}

// full is a store with the further powers.
type full interface {
	idempotency.Store
	idempotency.History
	idempotency.Control
	idempotency.Leaders
}

// throne is a door that keeps who leads too.
type throne struct {
	*door
	idempotency.History
	idempotency.Control
	leaders idempotency.Leaders
}

func (s throne) Lead(ctx context.Context, id idempotency.Session, term int64) (idempotency.Leader, error) {
	if err := s.wait(ctx); err != nil {
		return idempotency.Leader{}, err
	}
	return s.leaders.Lead(ctx, id, term)
}

func (s throne) Resign(ctx context.Context, id idempotency.Session, term int64, why string) error {
	if err := s.wait(ctx); err != nil {
		return err
	}
	return s.leaders.Resign(ctx, id, term, why)
}

func (s throne) Leader(ctx context.Context, namespace string) (idempotency.Leader, error) {
	if err := s.wait(ctx); err != nil {
		return idempotency.Leader{}, err
	}
	return s.leaders.Leader(ctx, namespace)
}

// ofLeader is a job of the leader, each ten seconds.
func ofLeader(run jobs.Handler) jobs.Job {
	return jobs.Job{Name: "report", Schedule: jobs.Every(10 * time.Second), Placement: jobs.Leader, Run: run}
}

// election is replicas with a job of the leader, and what is known of them.
type election struct {
	t      *testing.T
	gossip *gossip
	wires  *wires
	store  full                // nil: there is none
	static *electortest.Static // nil: the store elects
	tweak  func(*scheduler.Config)
	all    sync.WaitGroup
	stops  []context.CancelFunc

	mu   sync.Mutex
	runs []run
	led  []change
}

// run is a start of a handler.
type run struct {
	by string
	at time.Time
	jobs.Occurrence
}

// change is a change of who leads, as a replica told it.
type change struct {
	by string
	at time.Time
	scheduler.Led
}

func newElection(t *testing.T, store full) *election {
	return &election{t: t, gossip: newGossip(), wires: newWires(), store: store, tweak: func(*scheduler.Config) {}}
}

// withElection runs f in a bubble with a store in memory; elected: by the test.
func withElection(t *testing.T, elected bool, f func(t *testing.T, e *election)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newElection(t, idempotency.NewMemory(nil))
		if elected {
			e.static = electortest.NewStatic()
		}
		defer e.end()
		f(t, e)
	})
}

// candidate is one replica.
type candidate struct {
	*scheduler.Scheduler
	name string
	door *door
	stop context.CancelFunc
	done chan error
}

// start runs a replica with jobs, or with this one. It ends with the test, or by stop.
func (e *election) start(name string, list ...jobs.Job) *candidate {
	e.t.Helper()
	r := &candidate{name: name, done: make(chan error, 1)}
	config := scheduler.Config{
		Namespace: "test", Members: wired{seat{e.gossip, name}, e.wires}, Concurrency: 8, Ring: smallRing,
		Lease: 10 * time.Second, Sweep: time.Second, Drain: 5 * time.Second, Logger: slog.New(slog.DiscardHandler),
		Middleware: []scheduler.Middleware{func(next jobs.Handler) jobs.Handler {
			return func(ctx context.Context, o jobs.Occurrence) error {
				e.mu.Lock()
				e.runs = append(e.runs, run{name, time.Now(), o})
				e.mu.Unlock()
				return next(ctx, o)
			}
		}},
		Hooks: []scheduler.Hooks{{Led: func(_ context.Context, l scheduler.Led) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.led = append(e.led, change{name, time.Now(), l})
		}}},
	}
	if e.store != nil {
		r.door = &door{Store: e.store}
		config.Store = throne{r.door, e.store, e.store, e.store}
	}
	if e.static != nil {
		config.Elector = e.static.For(name)
	}
	e.tweak(&config)
	var err error
	if r.Scheduler, err = scheduler.New(config); err == nil {
		err = r.Add(list...)
	}
	if err != nil {
		e.t.Fatal(err)
	}
	var ctx context.Context
	ctx, r.stop = context.WithCancel(context.WithoutCancel(e.t.Context()))
	e.stops = append(e.stops, r.stop)
	e.all.Go(func() { r.done <- r.Run(ctx) })
	return r
}

// end stops all replicas, and waits for them.
func (e *election) end() {
	for _, stop := range e.stops {
		stop()
	}
	e.all.Wait()
}

// ran are the starts of a job so far, in order; of all jobs where it is empty.
func (e *election) ran(job string) []run {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(e.runs), func(r run) bool { return job != "" && r.Job != job })
}

// terms are the terms that began, as the leaders told them.
func (e *election) terms() []change {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(e.led), func(r change) bool { return !r.Mine })
}

// leader is the replica that began to lead last.
func (e *election) leader(list ...*candidate) *candidate {
	e.t.Helper()
	synctest.Wait()
	terms := e.terms()
	for _, r := range list {
		if len(terms) > 0 && r.name == terms[len(terms)-1].by {
			return r
		}
	}
	e.t.Fatalf("none of them leads: %+v", terms)
	return nil
}

// at sleeps until so long after the bubble's first instant.
func at(d time.Duration) { time.Sleep(time.Until(day(1, 0, 0).Add(d))) }
