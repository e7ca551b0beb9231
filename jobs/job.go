package jobs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"
)

// DefaultTimeout bounds one attempt of a job whose Timeout is 0.
const DefaultTimeout = time.Hour

// maxSpread bounds Job.Spread.
const maxSpread = 24 * time.Hour

// Handler does the work of one occurrence. It returns nil when the work is
// done; an error is tried again as Job.Retry says, one wrapped by Permanent is
// not. It may be called at the same time for different occurrences. Its context
// ends on timeout, a stall, loss of the session, shutdown, or because a person or a newer run of the
// key wants it to; context.Cause then tells which (ErrTimeout, ErrStalled, ErrSessionLost, ErrDraining,
// ErrCanceled, ErrOvertaken). Progress and Logger work on its context.
type Handler func(ctx context.Context, o Occurrence) error

// Guarantee is the first choice for a job, because it picks everything else.
type Guarantee int

const (
	// Correctness is the default: the store decides each occurrence, so at most
	// one completion of it is ever committed, and a crashed run is taken up.
	Correctness Guarantee = iota
	// Efficiency never touches the store: the key's owner runs it. During a
	// hand-over it may rarely run twice, and after a crash the next due runs.
	Efficiency
)

// Job is one scheduled function. Name, Schedule and Run are required; every
// other field's zero value is its default. It is plain configuration: copy it
// freely, and do not change Payload after handing it over.
type Job struct {
	// Name identifies the job within its namespace: [A-Za-z0-9._-], 1 to 64
	// bytes. A renamed job is a new job.
	Name string
	// Schedule decides the dues.
	Schedule Schedule
	// Run does the work.
	Run Handler
	// Keys yields one run per key and due. nil: one run per due, keyed by Name.
	Keys KeySource
	// Payload is given to every run as it is. nil: none.
	Payload []byte
	// Guarantee is Correctness where it is not set.
	Guarantee Guarantee
	// Placement is OneOwner where it is not set.
	Placement Placement
	// Missed says which late dues still run. Zero: the latest.
	Missed Missed
	// Spread delays the starts of a due by up to this much, a partition at a time:
	// a key starts at due + Spread x partition / partitions, so it keeps its minute
	// every night; without Keys the job's name is the key. Starts that lie closer
	// together than a sweep, or a thousandth of Spread, wait for the last of them. The
	// due, and with it the run's identity, stays; lateness counts from the start. What
	// has not started when the schedule is edited starts then, where the job has no
	// keys. 0: no delay. At most 24 h; and Scheduler.Add refuses one that leaves less
	// than MissedAfter + Lease of the Horizon until a due is too old to run (correctness
	// jobs), or that covers 100 dues or more, all of which would be open at once (jobs with Keys).
	Spread time.Duration
	// Overlap says what becomes of a due whose key has a run at work. Zero: it is skipped.
	Overlap Overlap
	// Retry says how often and how soon a failed attempt is repeated.
	Retry Retry
	// Crash says whether a run whose replica died is repeated. Zero: it is.
	Crash Crash
	// Posture says what an efficiency job does while members are missing. Zero: it runs.
	Posture Posture
	// Timeout bounds one attempt. 0: DefaultTimeout; negative: no bound.
	Timeout time.Duration
	// StartWithin bounds how late an occurrence may start for the first time, after its start: the due, plus
	// what Spread delays it by. That is by the store's time, of which a replica may be behind by what a call takes: a fifth of
	// a Lease at most. One that comes later, since all workers were busy or no replica ran, is recorded as
	// skipped (deadline). Runs that a person asked for always start. A run whose replica died after claiming it counts
	// as started, and is taken up however late. 0: no bound.
	StartWithin time.Duration
	// StallAfter ends an attempt that has not called Progress for so long, since its start or its last call,
	// with the cause ErrStalled; it counts as failed. Below Timeout. 0: no watch.
	StallAfter time.Duration
	// Limit bounds how many runs are at work, and how fast they start.
	Limit Limit
	// HandOverAfter is for jobs of the Leader: when nobody has led for so long, as far as a replica has seen, the owners of the
	// job's keys run it until somebody leads. It needs a store. 0: they wait for a leader.
	HandOverAfter time.Duration
	// Priority says who gets a free worker first where runs of several jobs wait: those of the higher one. Of equal
	// ones, those come first whose job has nothing at work on the replica, then the older dues. It interrupts nothing.
	Priority int
	// Revision decides between two definitions of the job that are live at once
	// during a rolling deploy: the higher wins. 0: the one first seen last wins.
	Revision int64
}

// WithDefaults returns a copy in which every zero field that has a default holds
// it. Applying it twice changes nothing more. A negative Timeout stays negative.
func (j Job) WithDefaults() Job {
	if j.Timeout == 0 {
		j.Timeout = DefaultTimeout
	}
	if j.Crash == CrashAbandon && j.Retry.Attempts == 0 {
		j.Retry.Attempts = 1
	}
	j.Retry = j.Retry.WithDefaults()
	j.Missed = j.Missed.withDefaults()
	j.Schedule = j.Schedule.For(j.Name)
	j.Payload = slices.Clone(j.Payload)
	return j
}

// Validate reports everything that is wrong with the job, joined, each problem
// naming the job and what to do. It takes the job with or without its defaults.
// Each Custom is asked once.
func (j Job) Validate() error {
	var errs []error
	add := func(err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("jobs: job %.80q: %w", j.Name, err))
		}
	}
	add(checkName("name", j.Name, MaxName))
	add(j.Schedule.For(j.Name).fault())
	for _, err := range j.Schedule.customFaults() {
		add(err)
	}
	if j.Run == nil {
		add(errors.New("no handler; set Run"))
	}
	add(checkSource(j.Keys))
	if j.Guarantee != Correctness && j.Guarantee != Efficiency {
		add(fmt.Errorf("guarantee %d is unknown; use jobs.Correctness or jobs.Efficiency", j.Guarantee))
	}
	for _, err := range j.Missed.check() {
		add(err)
	}
	if j.Missed != (Missed{}) && j.Guarantee == Efficiency {
		add(errors.New("Missed is set, but an efficiency job never runs a late due; leave it zero, or use jobs.Correctness"))
	}
	if j.Spread < 0 || j.Spread > maxSpread {
		add(fmt.Errorf("spread is %v; set it from 0 (no delay) to %s", j.Spread, shortDuration(maxSpread)))
	}
	add(j.Retry.check())
	for _, err := range j.checkPolicies() {
		add(err)
	}
	if j.Revision < 0 {
		add(fmt.Errorf("revision %d is negative; count up from 1, or leave it 0", j.Revision))
	}
	return errors.Join(errs...)
}

// Definition is a short stable hash of what decides the job's dues: the text of
// its schedule, with each H replaced by what the job's name hashes to, and whether
// it has keys; and of whether they are the leader's. Two versions of a program that declare a job with the same
// Definition agree on every occurrence of it, and on whether the leader alone runs it. A Custom schedule counts by its name
// alone. It is the same with and without the job's defaults.
func (j Job) Definition() string {
	h := sha256.New()
	fmt.Fprintf(h, "belfry definition 1\nschedule %s\nkeys %t\n", j.Schedule.For(j.Name), j.Keys != nil)
	if j.Placement == Leader { // elsewhere there is no such line: versions that know no leader hash these alike
		fmt.Fprint(h, "placement leader\n")
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
