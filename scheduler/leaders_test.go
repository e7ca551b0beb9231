package scheduler_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/sqlite"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/membership/electortest"
	"github.com/belfry-go/belfry/scheduler"
	"github.com/belfry-go/belfry/scheduler/schedulertest"
)

// Twenty leaders, each of which is stopped or crashes within a second of a due of a job of the leader: before it, at it, and while
// it is at work. Each due is done once.
func TestTwentyLeaders(t *testing.T) {
	t.Parallel()
	const every, leaders = 20 * time.Second, 20
	var mu sync.Mutex
	var terms []int64
	led := func(_ context.Context, l scheduler.Led) {
		mu.Lock()
		defer mu.Unlock()
		if l.Mine {
			terms = append(terms, l.Term)
		}
	}
	o := &schedulertest.Options{Config: scheduler.Config{
		Ring: smallRing, Sweep: time.Second, Lease: 6 * time.Second, Logger: slog.New(slog.DiscardHandler), Hooks: []scheduler.Hooks{{Led: led}},
	}}
	job := ofLeader(func(ctx context.Context, _ jobs.Occurrence) error { return sleep(ctx, 2*time.Second) })
	job.Schedule = jobs.Every(every)
	schedulertest.Test(t, o, []jobs.Job{job}, func(t *testing.T, c *schedulertest.Cluster) {
		start := time.Now().UTC().Truncate(every)
		for i := range leaders {
			due := start.Add(time.Duration(i+1) * every)
			c.AdvanceTo(due.Add([]time.Duration{-time.Second, -time.Millisecond, 0, time.Millisecond, time.Second}[i%5]))
			leader := c.Leader()
			if leader < 0 {
				t.Fatalf("nobody leads at %v", time.Now())
			}
			if i%2 == 0 {
				must(t, c.Stop(leader))
			} else {
				c.Crash(leader)
			}
			c.AdvanceTo(due.Add(every / 2))
			c.Start(leader)
		}
		c.Advance(every)
		done := map[time.Time]int{}
		for _, r := range c.Runs() {
			if r.Outcome != idempotency.Done {
				t.Errorf("%+v", r)
			}
			done[r.Due]++
		}
		for i := range leaders + 1 {
			if due := start.Add(time.Duration(i+1) * every); done[due] != 1 {
				t.Errorf("the due at %v was done %d times", due, done[due])
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if len(terms) != leaders+1 {
			t.Errorf("%d terms: %v", len(terms), terms)
		}
		for i := range terms[1:] {
			if terms[i+1] <= terms[i] {
				t.Errorf("terms %v", terms)
			}
		}
	})
}

// sleep waits for d, unless ctx ends before: then it is the cause.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// electorate is an election by the store of schedulers, each of which has one role: what is elected.
type electorate struct {
	t      *testing.T
	gossip *gossip
	wires  *wires
	store  full
	lease  time.Duration

	mu    sync.Mutex
	doors map[string]*door
}

// Elector is a replica's part. When lead returns early its scheduler stops, which resigns, and another one stands.
func (e *electorate) Elector(name string) electortest.Elector {
	d := &door{Store: e.store}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.doors[name] = d
	return elector(func(ctx context.Context, lead func(context.Context, int64) error) error {
		var err error
		for again := true; again && err == nil; {
			again, err = e.stand(ctx, name, d, lead)
		}
		return err
	})
}

// stand is one scheduler, and reports whether lead has returned early.
func (e *electorate) stand(ctx context.Context, name string, d *door, lead func(context.Context, int64) error) (early bool, err error) {
	s, err := scheduler.New(scheduler.Config{
		Namespace: "test", Store: throne{d, e.store, e.store, e.store}, Members: wired{seat{e.gossip, name}, e.wires},
		Lease: e.lease, Sweep: e.lease / 10, Grace: e.lease / 10, Ring: smallRing, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return false, err
	}
	run, stop := context.WithCancel(ctx)
	defer stop()
	err = s.OnLeader("lead", func(ctx context.Context, term int64) error {
		if ctx.Err() != nil {
			return nil
		}
		_ = lead(ctx, term)
		if ctx.Err() == nil {
			early = true
			stop()
		}
		<-ctx.Done()
		return nil
	})
	if err == nil {
		err = s.Run(run)
	}
	return early && ctx.Err() == nil, err
}

func (e *electorate) Kill(name string) { e.Cut(name) }

func (e *electorate) Cut(name string) { e.set(name, true) }

func (e *electorate) Mend(name string) { e.set(name, false) }

func (e *electorate) set(name string, shut bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.doors[name].set(shut)
}

// The election of the store, as a scheduler's roles see it, keeps an elector's contract: in memory, and on a file in real time.
func TestStoreElectsByContract(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		electortest.Run(t, electortest.Config{Bubble: true, Open: func(t *testing.T) electortest.Election {
			return &electorate{t: t, gossip: newGossip(), wires: newWires(), store: idempotency.NewMemory(nil), lease: 10 * time.Second, doors: map[string]*door{}}
		}})
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		electortest.Run(t, electortest.Config{Changes: 6, Open: func(t *testing.T) electortest.Election {
			s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "belfry.db"), nil)
			must(t, err)
			t.Cleanup(func() { must(t, s.Close()) })
			lease := time.Second
			if strings.HasSuffix(t.Name(), "/Linger") { // in which half a lease must not pass, however slow the machine is
				lease = 10 * time.Second
			}
			return &electorate{t: t, gossip: newGossip(), wires: newWires(), store: s, lease: lease, doors: map[string]*door{}}
		}})
	})
}
