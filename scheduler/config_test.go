package scheduler_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/ring"
	"github.com/belfry-go/belfry/scheduler"
)

func TestZeroConfigIsOneReplicaAlone(t *testing.T) {
	t.Parallel()
	s, err := scheduler.New(scheduler.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Add(jobs.Job{Name: "j", Schedule: jobs.Every(time.Hour), Run: quick}); err != nil {
		t.Error(err)
	}
	if err := s.Ready(); err == nil {
		t.Error("ready before Run")
	}
}

// billing are members that meet in a namespace.
type billing struct{ scheduler.Members }

func (billing) Namespace() string { return "billing" }

// Every problem is named at once, and what to do.
func TestConfigRefused(t *testing.T) {
	t.Parallel()
	store := idempotency.NewMemory(nil)
	for name, c := range map[string]struct {
		config scheduler.Config
		want   []string
	}{
		"no namespace":          {scheduler.Config{Store: store}, []string{"Namespace is empty; set it"}},
		"bad namespace":         {scheduler.Config{Namespace: "a b"}, []string{"Namespace", `"a b"`}},
		"two namespaces":        {scheduler.Config{Namespace: "biling", Members: billing{}}, []string{`Namespace is "biling", and that of Members is "billing"; give both the same`}},
		"short lease":           {scheduler.Config{Lease: time.Millisecond}, []string{"Lease is 1ms; set it to 1s or more"}},
		"retention and horizon": {scheduler.Config{Retention: time.Hour}, []string{"Retention 1h0m0s is not above Horizon 24h0m0s"}},
		"many at once":          {scheduler.Config{Store: store, Concurrency: -1, Grace: -1, Sweep: -1}, []string{"Namespace", "Concurrency", "Grace", "Sweep"}},
		"horizon":               {scheduler.Config{Horizon: time.Second}, []string{"Horizon 1s is below MissedAfter 1m0s"}},
		"partitions":            {scheduler.Config{Ring: &ring.Options{Partitions: 7}}, []string{"Config.Ring", "power of two"}},
		"too few partitions":    {scheduler.Config{Ring: &ring.Options{Partitions: 4}}, []string{"4 partitions are too few"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := scheduler.New(c.config)
			if err == nil {
				t.Fatal("accepted")
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not say %q", err, w)
				}
			}
		})
	}
}

func TestAddRefused(t *testing.T) {
	t.Parallel()
	good := jobs.Job{Name: "good", Schedule: jobs.Every(time.Hour), Run: quick}
	members, err := scheduler.New(scheduler.Config{Namespace: "test", Members: seat{newGossip(), "a"}})
	if err != nil {
		t.Fatal(err)
	}
	alone, err := scheduler.New(scheduler.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := alone.Add(good); err != nil {
		t.Fatal(err)
	}
	old := good
	old.Name, old.Missed.MaxAge = "old", 25*time.Hour
	for name, c := range map[string]struct {
		s    *scheduler.Scheduler
		job  jobs.Job
		want string
	}{
		"duplicate":    {alone, good, `job "good" was added already`},
		"no name":      {alone, jobs.Job{Schedule: good.Schedule, Run: quick}, "name"},
		"no schedule":  {alone, jobs.Job{Name: "x", Run: quick}, "set Schedule"},
		"no handler":   {alone, jobs.Job{Name: "x", Schedule: good.Schedule}, "set Run"},
		"unknown spec": {alone, jobs.Job{Name: "x", Schedule: jobs.Cron("every night"), Run: quick}, "every night"},
		"never":        {alone, jobs.Job{Name: "x", Schedule: jobs.Cron("0 0 30 2 *"), Run: quick}, "0 0 30 2 *"},
		"zone":         {alone, jobs.Job{Name: "x", Schedule: jobs.Cron("0 0 * * *").In("Mars/Olympus"), Run: quick}, "Mars/Olympus"},
		"late spread": {alone, jobs.Job{Name: "x", Schedule: good.Schedule, Run: quick, Spread: 24 * time.Hour},
			"shorten Spread to 23h58m50s, or set Config.Horizon to 24h1m10s or more and Config.Retention above it"},
		"dense spread": {alone, jobs.Job{Name: "x", Schedule: jobs.Every(time.Second), Keys: keys(1), Run: quick, Spread: 2 * time.Minute}, "shorten Spread"},
		"wide spread":  {alone, jobs.Job{Name: "x", Schedule: good.Schedule, Run: quick, Spread: 25 * time.Hour}, "set it from 0 (no delay) to 24h"},
		"too old":      {alone, old, `job "old": Missed.MaxAge 25h0m0s is above Config.Horizon 24h0m0s, past which nothing is claimed; lower it, or raise Horizon`},
		"no store":     {members, good, "Correctness needs a store that all replicas share; set Config.Store, or Guarantee: jobs.Efficiency"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := c.s.Add(c.job, jobs.Job{Name: "also", Schedule: good.Schedule})
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), `"also"`) {
				t.Errorf("got %v, want it to say %q and name the other bad job too", err, c.want)
			}
		})
	}
	if err := alone.Remove("never-added"); !errors.Is(err, scheduler.ErrUnknown) || !strings.Contains(err.Error(), "never-added") {
		t.Errorf("Remove: %v", err)
	}
}

// A replica with another number of partitions is refused for good, and Run says what to do.
func TestOtherPartitionsAreRefused(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		a := f.start("a", nightly(quick))
		time.Sleep(time.Second)
		s, err := scheduler.New(scheduler.Config{Namespace: "test", Store: f.store, Ring: &ring.Options{Partitions: 1024}})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Run(t.Context()); !errors.Is(err, idempotency.ErrRefused) {
			t.Errorf("Run returned %v", err)
		}
		if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "runs once") {
			t.Errorf("a second Run returned %v", err)
		}
		f.end(a)
	})
}

// Jobs come and go while the replica runs.
func TestAddAndRemoveWhileRunning(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		a := f.start("a", nightly(quick))
		time.Sleep(night + time.Second)
		late := jobs.Job{Name: "late", Schedule: jobs.Every(night), Run: quick}
		if err := errors.Join(a.Add(late), a.Remove("renewals")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * night)
		if err := a.Ready(); err != nil {
			t.Error(err)
		}
		f.end(a)
		if n, m := len(f.runs("renewals")[idempotency.Done]), len(f.runs("late")[idempotency.Done]); n != 100 || m != 2 {
			t.Errorf("%d renewals and %d late runs done, want 100 and 2", n, m)
		}
	})
}

// A hook that blocks delays no run, and not the end.
func TestHooksNeverDelay(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		block := make(chan struct{})
		defer close(block)
		var s *scheduler.Scheduler
		s, err := scheduler.New(scheduler.Config{Namespace: "test", Store: f.store,
			Hooks: []scheduler.Hooks{{Started: func(context.Context, jobs.Occurrence) { <-block }}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Add(nightly(quick)); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), 3*night+time.Second)
		defer stop()
		if err := s.Run(ctx); err != nil {
			t.Error(err)
		}
		if done := len(f.runs("renewals")[idempotency.Done]); done != 300 {
			t.Errorf("%d done, want 300", done)
		}
	})
}

// A hook that panics is logged, and takes nothing down.
func TestHookPanics(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		s, err := scheduler.New(scheduler.Config{Namespace: "test", Store: f.store, Logger: slog.New(slog.DiscardHandler),
			Hooks: []scheduler.Hooks{{Started: func(context.Context, jobs.Occurrence) { panic("hook") }}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Add(nightly(quick)); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), night+time.Second)
		defer stop()
		if err := s.Run(ctx); err != nil || len(f.runs("renewals")[idempotency.Done]) != 100 {
			t.Errorf("%d done, %v", len(f.runs("renewals")[idempotency.Done]), err)
		}
	})
}

// Efficiency jobs need no store, and retry in memory.
func TestEfficiencyWithoutStore(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		ran := make(chan string, 1000)
		s, err := scheduler.New(scheduler.Config{Namespace: "test", Members: seat{f.gossip, "a"}})
		if err != nil {
			t.Fatal(err)
		}
		cheap := func(_ context.Context, o jobs.Occurrence) error {
			ran <- o.Job
			if o.Attempt == 1 && o.Job == "flaky" {
				return errDeclined
			}
			return nil
		}
		if err := s.Add(
			jobs.Job{Name: "keyed", Schedule: jobs.Every(night), Guarantee: jobs.Efficiency, Keys: keys(50), Run: cheap},
			jobs.Job{Name: "flaky", Schedule: jobs.Every(night), Guarantee: jobs.Efficiency, Run: cheap},
		); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), 2*night+5*time.Second)
		defer stop()
		if err := s.Run(ctx); err != nil {
			t.Error(err)
		}
		close(ran)
		count := map[string]int{}
		for j := range ran {
			count[j]++
		}
		if count["keyed"] != 100 || count["flaky"] != 4 {
			t.Errorf("ran %v", count)
		}
	})
}
