package schedulertest_test

import (
	"context"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/scheduler"
	"github.com/belfry-go/belfry/scheduler/schedulertest"
)

func quick(context.Context, jobs.Occurrence) error { return nil }

func nightly(run jobs.Handler) jobs.Job {
	return jobs.Job{Name: "nightly", Schedule: jobs.Cron("0 0 * * *").In("UTC"), Run: run}
}

// midnight is the first one after a bubble's clock starts.
var midnight = time.Date(2000, time.January, 2, 0, 0, 0, 0, time.UTC)

func TestNight(t *testing.T) {
	t.Parallel()
	schedulertest.Test(t, nil, []jobs.Job{nightly(quick)}, func(t *testing.T, c *schedulertest.Cluster) {
		c.AdvanceTo(midnight.Add(time.Minute))
		if runs := c.Runs(); len(runs) != 1 || runs[0].Outcome != idempotency.Done || !runs[0].Due.Equal(midnight) {
			t.Errorf("%+v", runs)
		}
	})
}

// A year of nights costs about as much as its sweeps and renewals do.
func TestYear(t *testing.T) {
	t.Parallel()
	o := &schedulertest.Options{Config: scheduler.Config{Sweep: 10 * time.Minute}}
	schedulertest.Test(t, o, []jobs.Job{nightly(quick)}, func(t *testing.T, c *schedulertest.Cluster) {
		c.AdvanceTo(midnight.AddDate(1, 0, 0))
		if runs := c.Runs(); len(runs) != 367 {
			t.Errorf("%d runs", len(runs))
		}
	})
}
