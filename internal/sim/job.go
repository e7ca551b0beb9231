package sim

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/belfry-go/belfry/internal/sim/oracle"
	"github.com/belfry-go/belfry/jobs"
)

// attempts is how often every job is tried.
const attempts = 3

// Job is one that a world's replicas run.
type Job struct {
	Name string

	// Plans are its schedules, by the version of the code that a replica runs;
	// the last one counts for later versions too.
	Plans []Plan

	Source  *Source       // nil: no keys
	Timeout time.Duration // 0: 3 s
	Limit   jobs.Limit

	// Work decides what a handler does. Nil: it takes 5 ms.
	Work func(r *Replica, o jobs.Occurrence) Work

	Overlap    jobs.Overlap
	Crash      jobs.Crash
	Within     time.Duration // to start
	StallAfter time.Duration

	Local bool // it is an efficiency job

	Leader        bool // it is the leader's
	HandOverAfter time.Duration
}

// policy is what the oracle has to know of the job's choices.
func (j *Job) policy() oracle.Policy {
	p := oracle.Policy{Attempts: attempts, Parallel: j.Overlap == jobs.OverlapAllow, Once: j.Crash == jobs.CrashAbandon, Within: j.Within}
	if p.Once {
		p.Attempts = 1
	}
	return p
}

// choice is what the oracle has to know of a version of the job.
func (j Job) choice(version int, horizon time.Duration) oracle.Choice {
	p := j.plan(version)
	c := oracle.Choice{Keep: 1, Reason: "late", MaxAge: cmp.Or(p.Missed.MaxAge, horizon), Spread: p.Spread}
	switch p.Missed.Policy {
	case jobs.MissedSkip:
		c.Keep, c.MaxAge = 0, 0
	case jobs.MissedAll:
		c.Keep, c.Reason = cmp.Or(p.Missed.Max, 100), "max"
	}
	return c
}

// Plan is what one version of the code says of a job: its schedule, which is a
// period with its phase, minutes of the hour or instants since the world's beginning, and what becomes of late dues.
type Plan struct {
	Every, Phase time.Duration
	At           []time.Duration
	Minutes      []int // of every hour
	Missed       jobs.Missed
	Spread       time.Duration

	Gone bool // the version does not have the job
}

func (p Plan) schedule() jobs.Schedule {
	if p.Every > 0 {
		return jobs.Every(p.Every).Phase(p.Phase)
	}
	if len(p.Minutes) > 0 {
		text := fmt.Sprint(p.Minutes)
		return jobs.Cron(strings.ReplaceAll(text[1:len(text)-1], " ", ",") + " * * * *")
	}
	var at []time.Time
	for _, d := range p.At {
		at = append(at, epoch.Add(d))
	}
	return jobs.At(at...)
}

// brute is the same schedule as the oracle takes it.
func (p Plan) brute() oracle.Schedule {
	s := oracle.Schedule{Period: int64(p.Every / time.Second), Phase: int64(p.Phase / time.Second)}
	for _, d := range p.At {
		s.At = append(s.At, epoch.Add(d).Unix())
	}
	for _, m := range p.Minutes {
		s.Minutes |= 1 << m
	}
	return s
}

func (j Job) plan(version int) Plan { return j.Plans[min(version, len(j.Plans)-1)] }

// spec is the job as version of the code declares it.
func (j Job) spec(version int) jobs.Job {
	timeout := j.Timeout
	if timeout == 0 {
		timeout = 3 * time.Second
	}
	plan := j.plan(version)
	spec := jobs.Job{
		Name: j.Name, Schedule: plan.schedule(), Missed: plan.Missed, Spread: plan.Spread, Timeout: timeout, Limit: j.Limit,
		Retry:   jobs.Retry{Attempts: attempts, First: 200 * time.Millisecond, Max: time.Second},
		Overlap: j.Overlap, Crash: j.Crash, StartWithin: j.Within, StallAfter: j.StallAfter,
		Run: func(context.Context, jobs.Occurrence) error { panic("sim: handlers are played, not run") },
	}
	if j.Local {
		spec.Guarantee = jobs.Efficiency
	}
	if j.Leader {
		spec.Placement, spec.HandOverAfter = jobs.Leader, j.HandOverAfter
	}
	if j.Crash == jobs.CrashAbandon {
		spec.Retry.Attempts = 0
	}
	if j.Source != nil {
		spec.Keys = j.Source
	}
	return spec.WithDefaults()
}

// Add makes a job one of the code's, for the processes that start from now on.
func (w *World) Add(j Job) {
	w.cfg.Jobs = append(w.cfg.Jobs, j)
	w.jobs[j.Name] = &j
	least := j.Plans[0].Spread
	for v, p := range j.Plans {
		if p.Gone {
			continue
		}
		spec := j.spec(v)
		if err := spec.Validate(); err != nil {
			w.fail("job %q: %w", j.Name, err)
		}
		w.Oracle.Define(spec.Definition(), p.brute())
		least = min(least, p.Spread)
	}
	w.Oracle.Spread(j.Name, least)
	if j.Source != nil {
		j.Source.begin(w, j.Name)
	}
}

func (w *World) job(name string) *Job {
	j := w.jobs[name]
	if j == nil {
		panic("sim: unknown job " + name)
	}
	return j
}
