package schedulertest_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/scheduler"
	"github.com/belfry-go/belfry/scheduler/schedulertest"
)

// quiet runs a test of three replicas with an hourly efficiency job that has a posture. count is how many runs that due had, and how often
// it was refused for the posture since count was asked last.
func quiet(t *testing.T, posture jobs.Posture, f func(t *testing.T, c *schedulertest.Cluster, count func(due time.Time) (runs int, refused int64))) {
	cache := hourly(quick)
	cache.Guarantee, cache.Posture = jobs.Efficiency, posture
	var held atomic.Int64
	hooks := scheduler.Hooks{Refused: func(_ context.Context, r scheduler.Refused) {
		if r.Cause == "posture" {
			held.Add(1)
		}
	}}
	o := &schedulertest.Options{Config: scheduler.Config{Hooks: []scheduler.Hooks{hooks}}}
	schedulertest.Test(t, o, []jobs.Job{cache}, func(t *testing.T, c *schedulertest.Cluster) {
		f(t, c, func(due time.Time) (runs int, refused int64) {
			t.Helper()
			for _, r := range c.Runs() {
				if r.Outcome != idempotency.Done {
					t.Errorf("%+v", r)
				}
				if r.Due.Equal(due) {
					runs++
				}
			}
			return runs, held.Swap(0)
		})
	})
}

// step moves a cluster to a due, and tells of it.
func step(t *testing.T, c *schedulertest.Cluster, count func(time.Time) (int, int64), due time.Time, what string, runs int, refused int64) {
	t.Helper()
	c.AdvanceTo(due)
	if n, r := count(due); n != runs || r != refused {
		t.Errorf("%s: %d runs and %d refused, want %d and %d", what, n, r, runs, refused)
	}
}

// In a partition only the side of the majority runs; as long as it knows who is missing.
func TestPostureMajority(t *testing.T) {
	t.Parallel()
	quiet(t, jobs.PostureMajority, func(t *testing.T, c *schedulertest.Cluster, count func(time.Time) (int, int64)) {
		c.AdvanceTo(one.Add(-jobs.MissingFor + time.Minute))
		c.Partition([]int{0})
		step(t, c, count, one, "two of three, and one", 1, 1)
		step(t, c, count, one.Add(time.Hour), "cut for longer than MissingFor", 2, 0)
		c.Heal()
		step(t, c, count, one.Add(2*time.Hour), "healed", 1, 0)
		c.AdvanceTo(one.Add(3*time.Hour - 10*time.Minute))
		c.Partition([]int{0}, []int{1}, []int{2})
		step(t, c, count, one.Add(3*time.Hour), "three sides of one each", 0, 3)
		c.AdvanceTo(one.Add(4*time.Hour - 10*time.Minute))
		c.Partition([]int{0}) // the others see each other again, and have seen nobody vanish of late
		step(t, c, count, one.Add(4*time.Hour), "cut long ago", 2, 0)
		c.AdvanceTo(one.Add(5*time.Hour - 10*time.Minute))
		c.Heal()
		step(t, c, count, one.Add(5*time.Hour), "healed again", 1, 0)
	})
}

// After a crash nothing starts until the replica is back, or MissingFor is over; nor in a partition. One that stops is not missing.
func TestPostureHold(t *testing.T) {
	t.Parallel()
	quiet(t, jobs.PostureHold, func(t *testing.T, c *schedulertest.Cluster, count func(time.Time) (int, int64)) {
		c.AdvanceTo(one.Add(-jobs.MissingFor + time.Minute))
		c.Crash(2)
		step(t, c, count, one, "crashed", 0, 1)
		step(t, c, count, one.Add(time.Hour), "crashed longer ago than MissingFor", 1, 0)
		c.Start(2)
		c.AdvanceTo(one.Add(2*time.Hour - 10*time.Minute))
		c.Crash(1)
		c.Start(1)
		step(t, c, count, one.Add(2*time.Hour), "back", 1, 0)
		c.AdvanceTo(one.Add(3*time.Hour - 10*time.Minute))
		if err := c.Stop(0); err != nil {
			t.Error(err)
		}
		step(t, c, count, one.Add(3*time.Hour), "stopped", 1, 0)
		c.AdvanceTo(one.Add(4*time.Hour - 10*time.Minute))
		c.Partition([]int{1})
		step(t, c, count, one.Add(4*time.Hour), "cut", 0, 2)
		c.AdvanceTo(one.Add(5*time.Hour - 10*time.Minute))
		c.Heal()
		c.Partition([]int{1})
		c.Heal()
		step(t, c, count, one.Add(5*time.Hour), "cut for a moment", 1, 0)
	})
}
