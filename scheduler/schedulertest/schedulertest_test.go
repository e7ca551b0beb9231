package schedulertest_test

import (
	"context"
	"errors"
	"flag"
	"slices"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/scheduler"
	"github.com/belfry-go/belfry/scheduler/schedulertest"
)

func quick(context.Context, jobs.Occurrence) error { return nil }

// slow works for ten minutes, or until its context ends.
func slow(ctx context.Context, _ jobs.Occurrence) error {
	select {
	case <-time.After(10 * time.Minute):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func nightly(run jobs.Handler) jobs.Job {
	return jobs.Job{Name: "nightly", Schedule: jobs.Cron("0 0 * * *").In("UTC"), Run: run}
}

// hourly costs less to wait for.
func hourly(run jobs.Handler) jobs.Job {
	return jobs.Job{Name: "hourly", Schedule: jobs.Cron("0 * * * *").In("UTC"), Run: run}
}

var (
	start    = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC) // of a bubble's clock
	one      = start.Add(time.Hour)
	midnight = start.AddDate(0, 0, 1)
)

// theOnly is the one run that there is.
func theOnly(t *testing.T, c *schedulertest.Cluster) schedulertest.Run {
	t.Helper()
	runs := c.Runs()
	if len(runs) != 1 {
		t.Fatalf("%d runs, want one: %+v", len(runs), runs)
	}
	return runs[0]
}

// indexOf is the replica of that name.
func indexOf(t *testing.T, name string) int {
	t.Helper()
	i := slices.Index([]string{"replica-0", "replica-1", "replica-2"}, name)
	if i < 0 {
		t.Fatalf("no replica is named %q", name)
	}
	return i
}

// A nightly job, as a user tests it.
func TestNight(t *testing.T) {
	t.Parallel()
	schedulertest.Test(t, nil, []jobs.Job{nightly(quick)}, func(t *testing.T, c *schedulertest.Cluster) {
		c.AdvanceTo(midnight.Add(-time.Second))
		if runs := c.Runs(); len(runs) != 0 {
			t.Errorf("before its time: %+v", runs)
		}
		c.AdvanceTo(midnight)
		r := theOnly(t, c)
		if r.Outcome != idempotency.Done || !r.Due.Equal(midnight) || r.Key != "nightly" || r.Attempt != 1 || r.Fence == 0 || !r.Started.Equal(midnight) {
			t.Errorf("%+v", r)
		}
		indexOf(t, r.Replica)
	})
}

var nights = flag.Int("schedulertest.nights", 30, "nights of TestManyNights; a year took 3 to 4 s of one core")

// Many nights, with the sweep that the docs advise. A year of them: go test ./scheduler/schedulertest -run TestManyNights -schedulertest.nights 366
func TestManyNights(t *testing.T) {
	t.Parallel()
	o := &schedulertest.Options{Config: scheduler.Config{Sweep: 10 * time.Minute}}
	schedulertest.Test(t, o, []jobs.Job{nightly(quick)}, func(t *testing.T, c *schedulertest.Cluster) {
		c.AdvanceTo(start.AddDate(0, 0, *nights))
		runs := c.Runs()
		if len(runs) != *nights {
			t.Errorf("%d runs in %d nights", len(runs), *nights)
		}
		for i, r := range runs {
			if !r.Due.Equal(start.AddDate(0, 0, i+1)) || r.Outcome != idempotency.Done || !r.Started.Equal(r.Due) {
				t.Errorf("run %d: %+v", i, r)
			}
		}
	})
}

// What a crashed replica had at work is taken up by another once its lease has ended, and what its handler does after the crash nobody hears of.
func TestCrash(t *testing.T) {
	t.Parallel()
	causes := map[int64]error{}
	run := func(ctx context.Context, o jobs.Occurrence) error {
		if err := slow(ctx, o); err != nil {
			causes[o.Fence] = err
		}
		return nil // also where its context has ended: a record of it would say done
	}
	schedulertest.Test(t, nil, []jobs.Job{hourly(run)}, func(t *testing.T, c *schedulertest.Cluster) {
		c.AdvanceTo(one.Add(time.Minute))
		first := theOnly(t, c)
		if first.Outcome != 0 || first.Attempt != 1 {
			t.Fatalf("at work: %+v", first)
		}
		c.Crash(indexOf(t, first.Replica))
		if r := theOnly(t, c); r.Outcome != 0 || r.Fence != first.Fence {
			t.Errorf("after the crash: %+v", r)
		}
		if err := causes[first.Fence]; err == nil || errors.Is(err, context.Canceled) {
			t.Errorf("the handler's context ended by %v", err)
		}
		c.Advance(20 * time.Minute)
		if r := theOnly(t, c); r.Outcome != idempotency.Done || r.Replica == first.Replica || r.Fence <= first.Fence || r.Attempt != 1 {
			t.Errorf("taken up: %+v", r)
		}
		if len(causes) != 1 {
			t.Errorf("%d contexts ended", len(causes))
		}
	})
}

// A replica that stops lets its handlers finish; one that is started again takes its share.
func TestStopAndStart(t *testing.T) {
	t.Parallel()
	o := &schedulertest.Options{Replicas: 2, Config: scheduler.Config{Drain: 15 * time.Minute}}
	schedulertest.Test(t, o, []jobs.Job{hourly(slow)}, func(t *testing.T, c *schedulertest.Cluster) {
		c.AdvanceTo(one.Add(time.Minute))
		owner := indexOf(t, theOnly(t, c).Replica)
		if err := c.Stop(owner); err != nil {
			t.Errorf("Stop: %v", err)
		}
		if r := theOnly(t, c); r.Outcome != idempotency.Done || !time.Now().Equal(one.Add(10*time.Minute)) {
			t.Errorf("at %v: %+v", time.Now(), r)
		}
		c.Advance(time.Hour)
		c.Start(owner)
		c.Advance(time.Hour)
		var by []int
		for _, r := range c.Runs() {
			if r.Outcome != idempotency.Done {
				t.Errorf("%+v", r)
			}
			by = append(by, indexOf(t, r.Replica))
		}
		if !slices.Equal(by, []int{owner, 1 - owner, owner}) {
			t.Errorf("run by %v; the owner, %d, was stopped at the second", by, owner)
		}
	})
}

// Stop tells what it cut off.
func TestStopCutsOff(t *testing.T) {
	t.Parallel()
	o := &schedulertest.Options{Replicas: 1, Config: scheduler.Config{Drain: -1}}
	late := func(context.Context, jobs.Occurrence) error { time.Sleep(time.Hour); return nil }
	schedulertest.Test(t, o, []jobs.Job{hourly(late)}, func(t *testing.T, c *schedulertest.Cluster) {
		c.AdvanceTo(one)
		if err := c.Stop(0); err == nil {
			t.Error("Stop says nothing of a handler that was cut off")
		}
	})
}

// In a partition both sides own a key: an efficiency job runs twice, and a correctness job once.
func TestPartition(t *testing.T) {
	t.Parallel()
	cache := hourly(quick)
	cache.Name, cache.Guarantee = "cache", jobs.Efficiency
	schedulertest.Test(t, nil, []jobs.Job{hourly(quick), cache}, func(t *testing.T, c *schedulertest.Cluster) {
		c.Partition([]int{0}, []int{1})
		c.AdvanceTo(one)
		count := func(from time.Time) map[string]int {
			n := map[string]int{}
			for _, r := range c.Runs() {
				if r.Outcome != idempotency.Done {
					t.Errorf("%+v", r)
				}
				if r.Due.Equal(from) {
					n[r.Job]++
				}
			}
			return n
		}
		if n := count(one); n["hourly"] != 1 || n["cache"] != 3 {
			t.Errorf("three sides: %v", n)
		}
		c.Partition([]int{0}) // and the others are together
		c.Advance(time.Hour)
		if n := count(one.Add(time.Hour)); n["hourly"] != 1 || n["cache"] != 2 {
			t.Errorf("two sides: %v", n)
		}
		c.Heal()
		c.Advance(time.Hour)
		if n := count(one.Add(2 * time.Hour)); n["hourly"] != 1 || n["cache"] != 1 {
			t.Errorf("healed: %v", n)
		}
	})
}

// Runs of efficiency jobs are told with their attempts and their last error.
func TestEfficiencyRuns(t *testing.T) {
	t.Parallel()
	cache := hourly(func(_ context.Context, o jobs.Occurrence) error {
		if o.Key == "bad" {
			return errors.New("out of stock")
		}
		return nil
	})
	cache.Guarantee, cache.Keys, cache.Retry = jobs.Efficiency, jobs.KeyList("good", "bad"), jobs.Retry{Attempts: 2}
	schedulertest.Test(t, nil, []jobs.Job{cache}, func(t *testing.T, c *schedulertest.Cluster) {
		c.AdvanceTo(one.Add(time.Minute))
		runs := c.Runs()
		if len(runs) != 2 || runs[0].Key != "bad" || runs[1].Key != "good" {
			t.Fatalf("%+v", runs)
		}
		if r := runs[0]; r.Outcome != idempotency.Failed || r.Reason != "exhausted" || r.Text != "out of stock" || r.Attempt != 2 {
			t.Errorf("bad: %+v", r)
		}
		if r := runs[1]; r.Outcome != idempotency.Done || r.Reason != "" || r.Attempt != 1 || r.Fence != 0 {
			t.Errorf("good: %+v", r)
		}
	})
}

// What waits is told too, with what it waits for.
func TestRunsThatWait(t *testing.T) {
	t.Parallel()
	run := func(_ context.Context, o jobs.Occurrence) error {
		if o.Attempt == 1 {
			return jobs.RetryAfter(30*time.Minute, errors.New("try again at half past"))
		}
		return nil
	}
	schedulertest.Test(t, nil, []jobs.Job{hourly(run)}, func(t *testing.T, c *schedulertest.Cluster) {
		c.AdvanceTo(one.Add(time.Minute))
		if r := theOnly(t, c); r.Outcome != idempotency.Wait || r.Text != "try again at half past" || r.Attempt != 1 {
			t.Errorf("%+v", r)
		}
		c.Advance(30 * time.Minute)
		if r := theOnly(t, c); r.Outcome != idempotency.Done || r.Attempt != 2 {
			t.Errorf("%+v", r)
		}
	})
}

// A deploy: each replica comes back with other jobs, made in the bubble.
func TestDeploy(t *testing.T) {
	t.Parallel()
	var calls int
	minute := "0"
	o := &schedulertest.Options{Start: time.Date(2026, time.May, 1, 0, 0, 0, 0, time.UTC), JobsOf: func(int) []jobs.Job {
		calls++
		return []jobs.Job{{Name: "report", Schedule: jobs.Cron(minute + " * * * *").In("UTC"), Run: quick}}
	}}
	schedulertest.Test(t, o, nil, func(t *testing.T, c *schedulertest.Cluster) {
		c.Advance(90 * time.Minute) // half past one
		minute = "45"
		for i := range 3 {
			if err := c.Stop(i); err != nil {
				t.Error(err)
			}
			c.Start(i)
		}
		c.Advance(time.Hour)
		var at []string
		for _, r := range c.Runs() {
			at = append(at, r.Due.Format("15:04"))
		}
		if !slices.Equal(at, []string{"01:00", "01:45"}) || calls != 6 {
			t.Errorf("dues %v, jobs asked for %d times", at, calls)
		}
	})
}
