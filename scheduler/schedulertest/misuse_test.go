package schedulertest_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/scheduler"
	"github.com/belfry-go/belfry/scheduler/schedulertest"
)

// A test that fails on purpose runs in a process of its own, which this variable tells.
const failing = "BELFRY_SCHEDULERTEST_FAILING"

// misuses are what a user may get wrong, and what the failure must say.
var misuses = map[string]struct {
	options *schedulertest.Options
	list    []jobs.Job
	f       func(t *testing.T, c *schedulertest.Cluster)
	says    string
}{
	"replicas": {options: &schedulertest.Options{Replicas: -1}, says: "Options.Replicas is -1; set it above 0"},
	"start":    {options: &schedulertest.Options{Start: start.Add(-1)}, says: "never goes back, so set it later"},
	"store":    {options: &schedulertest.Options{Config: scheduler.Config{Store: idempotency.NewMemory(nil)}}, says: "leave both nil"},
	"config":   {options: &schedulertest.Options{Config: scheduler.Config{Lease: 1}}, says: "Lease is 1ns; set it to 1s or more"},
	"twojobs":  {options: &schedulertest.Options{JobsOf: func(int) []jobs.Job { return nil }}, list: []jobs.Job{nightly(quick)}, says: "leave JobsOf nil"},
	"job":      {list: []jobs.Job{{Name: "renewals", Run: quick}}, says: `job "renewals": no schedule; set Schedule`},
	"back":     {f: func(_ *testing.T, c *schedulertest.Cluster) { c.Advance(-1) }, says: "time does not go back"},
	"backto":   {f: func(_ *testing.T, c *schedulertest.Cluster) { c.AdvanceTo(start.Add(-1)) }, says: "or set Options.Start to an earlier one"},
	"index":    {f: func(_ *testing.T, c *schedulertest.Cluster) { c.Crash(3) }, says: "Crash(3): there are replicas 0 to 2; raise Options.Replicas"},
	"twice":    {f: func(_ *testing.T, c *schedulertest.Cluster) { c.Crash(1); c.Crash(1) }, says: "Crash(1): replica 1 is not running; Start it first"},
	"running":  {f: func(_ *testing.T, c *schedulertest.Cluster) { c.Start(1) }, says: "Start(1): replica 1 is running; Stop or Crash it first"},
	"groups":   {f: func(_ *testing.T, c *schedulertest.Cluster) { c.Partition([]int{0}, []int{1, 0}) }, says: "replica 0 is in two groups"},
	"atwork": {list: []jobs.Job{hourly(slow)}, says: "the test's own failure", f: func(t *testing.T, c *schedulertest.Cluster) {
		c.AdvanceTo(one) // a handler is at work
		t.Fatal("the test's own failure")
	}},
	"never": {says: "do not return, so that the test cannot end; let a handler return when its context ends: test:hourly/hourly@2000-01-01T01:00:00Z",
		list: []jobs.Job{hourly(func(context.Context, jobs.Occurrence) error { select {} })},
		f:    func(_ *testing.T, c *schedulertest.Cluster) { c.AdvanceTo(one) }},
}

// TestFailing is what TestMisuse runs.
func TestFailing(t *testing.T) {
	m, ok := misuses[os.Getenv(failing)]
	if !ok {
		t.Skip("run by TestMisuse, in a process of its own")
	}
	schedulertest.Test(t, m.options, m.list, func(t *testing.T, c *schedulertest.Cluster) {
		if m.f != nil {
			m.f(t, c)
		}
	})
}

// A mistake fails the test with what to do, and the test ends all the same.
func TestMisuse(t *testing.T) {
	t.Parallel()
	for name, m := range misuses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestFailing$", "-test.count=1")
			cmd.Env = append(os.Environ(), failing+"="+name)
			out, err := cmd.CombinedOutput()
			if err == nil || ctx.Err() != nil || !strings.Contains(string(out), m.says) {
				t.Errorf("%v; want a failure that says %q:\n%s", err, m.says, out)
			}
			if deadlock := strings.Contains(string(out), "deadlock"); deadlock != (name == "never") {
				t.Errorf("deadlock %t:\n%s", deadlock, out)
			}
		})
	}
}
