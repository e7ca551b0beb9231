package scheduler_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/scheduler"
)

// Load tells how many handlers are at work, and Moved who owns what: from the first ring on, and also where a member goes.
func TestLoadAndMoved(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		var mu sync.Mutex
		var running []int
		var moves []int
		var members [][]string
		s, err := scheduler.New(scheduler.Config{Namespace: "test", Store: f.store, Members: seat{f.gossip, "a"}, Lease: lease, Concurrency: 4,
			Hooks: []scheduler.Hooks{{
				Load: func(_ context.Context, l scheduler.Load) {
					mu.Lock()
					defer mu.Unlock()
					if running = append(running, l.Running); l.Workers != 4 {
						t.Errorf("%d workers", l.Workers)
					}
				},
				Moved: func(_ context.Context, m scheduler.Moved) {
					mu.Lock()
					defer mu.Unlock()
					members, moves = append(members, m.Members), append(moves, len(m.Moves))
				},
			}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Add(jobs.Job{Name: "j", Schedule: jobs.Every(time.Minute), Keys: keys(6), Run: func(context.Context, jobs.Occurrence) error {
			time.Sleep(time.Second)
			return nil
		}}); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), 90*time.Second)
		defer stop()
		f.wg.Go(func() {
			if err := s.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(10 * time.Second)
		f.gossip.set("b", "serving")
		time.Sleep(10 * time.Second)
		f.gossip.set("b", "")
		f.wg.Wait()
		synctest.Wait()
		if len(running) < 3 || running[0] != 0 || slices.Max(running) != 4 || running[len(running)-1] != 0 {
			t.Errorf("handlers at work, as told: %v", running)
		}
		members = slices.CompactFunc(members, slices.Equal)
		want := [][]string{nil, {"a"}, {"a", "b"}, {"a"}, nil}
		if !slices.EqualFunc(members, want, slices.Equal) {
			t.Errorf("members, as told: %q", members)
		}
		if moves[0] != 0 || slices.Max(moves) < 1000 {
			t.Errorf("partitions that moved, as told: %v", moves)
		}
	})
}
