package scheduler_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/ring"
	"github.com/belfry-go/belfry/scheduler"
)

// starts has, by run, when handlers started and how late the hooks say they were.
type starts struct {
	mu   sync.Mutex
	at   map[string][]time.Time
	late map[string]time.Duration
}

// nightlySpread are two jobs with keys and two without, whose starts are spread.
func (s *starts) nightlySpread() []jobs.Job {
	run := func(_ context.Context, o jobs.Occurrence) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.at[o.ID()] = append(s.at[o.ID()], time.Now())
		return nil
	}
	j := jobs.Job{Name: "keyed", Schedule: jobs.Every(15 * time.Minute), Spread: 10 * time.Minute, Keys: keys(200), Run: run}
	list := []jobs.Job{j, j, j, j}
	list[1].Name, list[2].Name, list[3].Name = "local", "single", "local-single"
	list[1].Guarantee, list[3].Guarantee = jobs.Efficiency, jobs.Efficiency
	list[2].Keys, list[3].Keys = nil, nil
	return list
}

// start runs a replica that tells its starts.
func (s *starts) start(f *fleet, name string) *replica {
	f.t.Helper()
	x, err := scheduler.New(scheduler.Config{
		Namespace: "test", Store: f.store, Members: seat{f.gossip, name}, Lease: lease,
		Logger: slog.New(slog.DiscardHandler),
		Hooks: []scheduler.Hooks{{
			Finished: func(_ context.Context, e scheduler.Finished) {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.late[e.ID()] = e.Late
			},
			Hedged: func(context.Context, jobs.Occurrence) { f.mu.Lock(); f.hedged++; f.mu.Unlock() },
		}},
	})
	if err == nil {
		err = x.Add(s.nightlySpread()...)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(f.t.Context())
	r := &replica{Scheduler: x, stop: stop, done: make(chan error, 1)}
	f.wg.Go(func() { r.done <- x.Run(ctx) })
	return r
}

// ran demands that each run of a due started once, in its time, and was told to be as late as it was.
func (s *starts) ran(t *testing.T, due time.Time, most time.Duration) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.nightlySpread() {
		for i := range 200 {
			o := jobs.Occurrence{Namespace: "test", Job: j.Name, Key: fmt.Sprintf("c-%05d", i), Due: due}
			if j.Keys == nil {
				o.Key = j.Name
			}
			start := due.Add(j.Spread * time.Duration(ring.Slot(o.Key)%4096) / 4096)
			at, late := s.at[o.ID()], s.late[o.ID()]
			switch {
			case len(at) != 1 || at[0].Before(start) || at[0].Sub(start) > most:
				t.Errorf("%s started at %v, want once from %v on, within %v", o.ID(), at, start, most)
			case (at[0].Sub(start) - late).Abs() > 10*time.Millisecond:
				t.Errorf("%s started %v late, and is told to be %v late", o.ID(), at[0].Sub(start), late)
			}
		}
	}
}

// Starts are spread over Spread, each key at its own time, the same every night, while replicas come, leave and are
// rolled; lateness counts from the start.
func TestSpread(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		s := &starts{at: map[string][]time.Time{}, late: map[string]time.Duration{}}
		const night = 15 * time.Minute
		due := time.Now().Truncate(night).Add(night)
		a, b := s.start(f, "a"), s.start(f, "b")
		time.Sleep(time.Until(due) + 11*time.Minute)
		s.ran(t, due, 1200*time.Millisecond) // a sweep, and a little

		time.Sleep(time.Until(due.Add(night)) + 2*time.Minute)
		c := s.start(f, "c")
		time.Sleep(3 * time.Minute)
		a.stop()
		if err := <-a.done; err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		b.stop()
		if err := <-b.done; err != nil {
			t.Error(err)
		}
		time.Sleep(5 * time.Minute)
		s.ran(t, due.Add(night), 1500*time.Millisecond)
		f.end(c)
		if f.hedged > 0 {
			t.Errorf("%d claims are hedged in calm", f.hedged)
		}
		if n := len(f.runs("keyed")[idempotency.Done]); n != 400 {
			t.Errorf("%d are done, want 400", n)
		}
	})
}
