package jobs

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Every refusal of a policy names the job and says what to do.
func TestPoliciesRefused(t *testing.T) {
	t.Parallel()
	correct := Job{Name: "renewals", Schedule: Cron("0 2 * * *"), Run: nothing}
	efficient := correct
	efficient.Guarantee = Efficiency
	for _, c := range []struct {
		of    Job
		spoil func(*Job)
		says  string
	}{
		{correct, func(j *Job) { j.Overlap = 4 }, "overlap policy 4 is unknown; use jobs.OverlapSkip"},
		{correct, func(j *Job) { j.Overlap = -1 }, "overlap policy -1 is unknown"},
		{correct, func(j *Job) { j.Crash = 2 }, "crash policy 2 is unknown; use jobs.CrashRerun or jobs.CrashAbandon"},
		{correct, func(j *Job) { j.Crash = -1 }, "crash policy -1 is unknown"},
		{efficient, func(j *Job) { j.Posture = 3 }, "posture 3 is unknown; use jobs.PostureRun"},
		{efficient, func(j *Job) { j.Posture = -1 }, "posture -1 is unknown"},
		{efficient, func(j *Job) { j.Placement = 3 }, "placement 3 is unknown; use jobs.OneOwner, Leader or EveryReplica"},
		{efficient, func(j *Job) { j.Placement = -1 }, "placement -1 is unknown"},
		{efficient, func(j *Job) { j.Crash = CrashAbandon }, "CrashAbandon needs a store that remembers what was started; use jobs.Correctness"},
		{correct, func(j *Job) { j.Crash, j.Retry.Attempts = CrashAbandon, 2 }, "Retry.Attempts is 2; leave Retry zero"},
		{correct, func(j *Job) { j.Posture = PostureHold }, "a posture is only for efficiency jobs"},
		{correct, func(j *Job) { j.Posture = PostureMajority }, "a posture is only for efficiency jobs"},
		{efficient, func(j *Job) { j.Posture, j.Placement = PostureHold, EveryReplica }, "a posture is only for jobs of one owner"},
		{efficient, func(j *Job) { j.Posture, j.Placement = PostureMajority, Leader }, "a posture is only for jobs of one owner; the leader is elected"},
		{correct, func(j *Job) { j.HandOverAfter, j.Placement = -1, Leader }, "HandOverAfter is -1ns; set it above 0, or leave it 0 to wait for a leader"},
		{correct, func(j *Job) { j.HandOverAfter = time.Minute }, "HandOverAfter is only for jobs of the leader; set Placement: jobs.Leader"},
		{correct, func(j *Job) { j.Limit.Cluster, j.Placement = 1, Leader }, "Limit.Cluster is 1; set it above 0 for a job of one owner"},
		{correct, func(j *Job) { j.Placement = EveryReplica }, "EveryReplica is only for efficiency jobs; set Guarantee: jobs.Efficiency"},
		{correct, func(j *Job) { j.StartWithin = -1 }, "StartWithin is -1ns; set it above 0, or leave it 0 for no bound"},
		{correct, func(j *Job) { j.StallAfter = -1 }, "StallAfter is -1ns; set it above 0, or leave it 0 for no watch"},
		{correct, func(j *Job) { j.StallAfter = DefaultTimeout }, "StallAfter 1h0m0s is not below Timeout 1h0m0s"},
		{correct, func(j *Job) { j.StallAfter, j.Timeout = time.Minute, time.Second }, "StallAfter 1m0s is not below Timeout 1s"},
		{correct, func(j *Job) { j.Limit.Cluster = -1 }, "Limit.Cluster is -1; set it above 0 for a job of one owner, or leave it 0"},
		{efficient, func(j *Job) { j.Limit.Cluster, j.Placement = 1, EveryReplica }, "Limit.Cluster is 1; set it above 0 for a job of one owner"},
		{correct, func(j *Job) { j.Limit.PerSecond = -0.5 }, "Limit.PerSecond is -0.5; set it from above 0 to 1000000"},
		{correct, func(j *Job) { j.Limit.PerSecond = math.NaN() }, "Limit.PerSecond is NaN"},
		{correct, func(j *Job) { j.Limit.PerSecond = math.Inf(1) }, "Limit.PerSecond is +Inf"},
		{correct, func(j *Job) { j.Limit.PerSecond = maxPerSecond + 1 }, "Limit.PerSecond is 1.000001e+06"},
	} {
		for _, defaults := range []bool{false, true} {
			j := c.of
			if err := j.Validate(); err != nil {
				t.Fatal(err)
			}
			if c.spoil(&j); defaults {
				j = j.WithDefaults()
			}
			err := j.Validate()
			if err == nil || !strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(), `jobs: job "renewals": `) {
				t.Errorf("%v, with defaults %t; want it to say %q", err, defaults, c.says)
			}
		}
	}
}

// What is allowed, up to its bounds, stays so with its defaults.
func TestPoliciesAllowed(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*Job){
		"queue":           func(j *Job) { j.Overlap = OverlapQueue },
		"allow":           func(j *Job) { j.Overlap = OverlapAllow },
		"cancel":          func(j *Job) { j.Overlap = OverlapCancel },
		"abandon":         func(j *Job) { j.Crash = CrashAbandon },
		"abandon, once":   func(j *Job) { j.Crash, j.Retry.Attempts = CrashAbandon, 1 },
		"abandon, no try": func(j *Job) { j.Crash, j.Retry.Attempts = CrashAbandon, -1 },
		"hold":            func(j *Job) { j.Guarantee, j.Posture = Efficiency, PostureHold },
		"majority":        func(j *Job) { j.Guarantee, j.Posture = Efficiency, PostureMajority },
		"leader":          func(j *Job) { j.Placement, j.HandOverAfter = Leader, time.Nanosecond },
		"leader, fast":    func(j *Job) { j.Guarantee, j.Placement = Efficiency, Leader },
		"every replica":   func(j *Job) { j.Guarantee, j.Placement = Efficiency, EveryReplica },
		"start within":    func(j *Job) { j.StartWithin = time.Nanosecond },
		"stall":           func(j *Job) { j.StallAfter = DefaultTimeout - 1 },
		"stall, no bound": func(j *Job) { j.StallAfter, j.Timeout = 48*time.Hour, -1 },
		"limits":          func(j *Job) { j.Limit = Limit{PerReplica: 1, Cluster: 1, PerSecond: maxPerSecond} },
		"all workers":     func(j *Job) { j.Limit.PerReplica = -1 },
		"priority":        func(j *Job) { j.Priority = -5 },
	} {
		j := Job{Name: "j", Schedule: Every(time.Hour), Run: nothing}
		set(&j)
		if err := j.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := j.WithDefaults().Validate(); err != nil {
			t.Errorf("%s, with defaults: %v", name, err)
		}
	}
}

// Defaults do not touch what was chosen, twice is once, and they move no due.
func TestDefaultsOfPolicies(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		j := Job{
			Name: "j", Schedule: Every(time.Hour), Run: nothing,
			Overlap:    Overlap(rapid.IntRange(0, 3).Draw(t, "overlap")),
			Crash:      Crash(rapid.IntRange(0, 1).Draw(t, "crash")),
			Retry:      Retry{Attempts: rapid.IntRange(-1, 3).Draw(t, "attempts")},
			Timeout:    time.Duration(rapid.IntRange(-1, 1).Draw(t, "timeout")),
			StallAfter: time.Duration(rapid.IntRange(0, 1).Draw(t, "stall")),
			Limit:      Limit{PerReplica: rapid.IntRange(-1, 2).Draw(t, "per replica")},
		}
		once := j.WithDefaults()
		twice := once.WithDefaults()
		if once.Retry != twice.Retry || once.Timeout != twice.Timeout || once.Limit != twice.Limit || once.Missed != twice.Missed ||
			once.Definition() != twice.Definition() || once.Definition() != j.Definition() {
			t.Fatalf("once %+v, twice %+v", once, twice)
		}
		if once.Overlap != j.Overlap || once.Crash != j.Crash || once.StallAfter != j.StallAfter || once.Limit != j.Limit {
			t.Fatalf("%+v of %+v", once, j)
		}
		if j.Crash == CrashAbandon && j.Retry.Attempts == 0 && once.Retry.Attempts != 1 {
			t.Fatalf("at most once, and %d attempts", once.Retry.Attempts)
		}
	})
}
