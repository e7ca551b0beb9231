package scheduler_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/scheduler"
)

// A job that one replica forgets must not run twice at once: what runs of it there runs on.
func TestRemoveWhileRunning(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		var now, most atomic.Int64
		j := jobs.Job{Name: "j", Schedule: jobs.At(time.Now().Add(5 * time.Second)), Run: func(context.Context, jobs.Occurrence) error {
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			defer now.Add(-1)
			time.Sleep(20 * time.Second)
			return nil
		}}
		a, b := f.start("a", j), f.start("b", j)
		time.Sleep(7 * time.Second)
		f.mu.Lock()
		owner := map[string]*replica{"a": a, "b": b}[f.ran["test:j/j@"+j.Schedule.String()[4:]][0]]
		f.mu.Unlock()
		if err := owner.Remove("j"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		f.end(a, b)
		_, twice := f.count()
		if most.Load() != 1 || twice != 0 {
			t.Errorf("%d handlers of one occurrence at once, %d occurrences ran more than once; ran %v", most.Load(), twice, f.ran)
		}
	})
}

// slowSeat needs a moment for each announcement, as gossip does.
type slowSeat struct{ seat }

func (s slowSeat) Announce(ctx context.Context, state, layout, reason string, facts map[string]string) error {
	select {
	case <-time.After(200 * time.Millisecond):
		return s.seat.Announce(ctx, state, layout, reason, facts)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A replica whose Run has returned must not be an owner in the eyes of the others,
// also where it had nothing to drain and its process lives on.
func TestDrainIsAnnounced(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		s, err := scheduler.New(scheduler.Config{Namespace: "test", Store: f.store, Members: slowSeat{seat{f.gossip, "a"}}})
		if err == nil {
			err = s.Add(jobs.Job{Name: "j", Schedule: jobs.Every(time.Hour), Run: quick})
		}
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
		defer stop()
		if err := s.Run(ctx); err != nil {
			t.Fatal(err)
		}
		f.gossip.mu.Lock()
		defer f.gossip.mu.Unlock()
		if got := f.gossip.states["a"]; got != "draining" {
			t.Errorf("Run has returned, and the others know this replica as %q; want draining", got)
		}
	})
}
