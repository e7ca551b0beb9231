package jobs

import (
	"fmt"
	"time"
)

// Overlap says what becomes of a due whose key still has a run at work, anywhere in the
// cluster. A run that waits for its next attempt is not at work. Dues that were opened
// together, or more than a lease late, never skip each other: the later ones wait. A due
// that comes late, when a run of a newer one is at work, is neither skipped for that nor
// ends it, but waits.
type Overlap int

const (
	// OverlapSkip is the default: the new due is recorded as skipped (overlap).
	OverlapSkip Overlap = iota
	// OverlapQueue lets the new due wait until the run has ended, unless another run of
	// the key waits already, for its turn or for its next attempt: then it is skipped (overlap).
	// A due that comes while nothing of its key is at work runs at once, also before one that
	// waits, which then may wait longer; StartWithin bounds how long one waits for its start.
	OverlapQueue
	// OverlapAllow runs them at the same time. Fences then rise per occurrence, and no
	// more per key.
	OverlapAllow
	// OverlapCancel ends the context of the run at work, with the cause ErrOvertaken, and
	// starts the new one when that has returned. The old run is recorded as skipped
	// (overtaken), unless it returned nil; older ones of the key that wait are too.
	OverlapCancel
)

// Crash says what becomes of a run whose replica died, or lost its lease, while its handler was at work.
type Crash int

const (
	// CrashRerun is the default: another replica takes the run up, with a higher fence.
	CrashRerun Crash = iota
	// CrashAbandon starts a run once at most: what was started and did not end is recorded
	// as failed (abandoned). Retry.Attempts above 1 is refused; 0 means one attempt. A person can still retry it.
	CrashAbandon
)

// Posture says what an efficiency job does while members of the cluster are missing: they
// vanished without saying goodbye, so that they crashed, or a partition lies between. Those that
// left do not count, nor those that have been back since, nor any after MissingFor.
type Posture int

const (
	// PostureRun is the default: each side runs what it owns, so that both sides of a partition run every key.
	PostureRun Posture = iota
	// PostureHold starts nothing while a member is missing.
	PostureHold
	// PostureMajority starts only where more than half of all members, the missing ones included, are in sight.
	PostureMajority
)

// MissingFor is how long a member that vanished counts as missing.
const MissingFor = 15 * time.Minute

// Placement says which replicas run a due.
type Placement int

const (
	// OneOwner is the default: the owner of the key.
	OneOwner Placement = iota
	// Leader runs each due, or all keys of it, on the replica that leads the cluster. While nobody leads, dues wait: a new leader
	// decides those that came meanwhile as a replica does that was away, by Missed; see Job.HandOverAfter. Those of efficiency jobs are left out. A run whose
	// replica stops leading runs on: its claim is what protects it. Correctness jobs are claimed all the same, so that two
	// leaders for a moment run a due once. Where the leader has not the job's code, which a due that it
	// does not open shows, the owners of its keys run it, a Lease after that; docs/leader.md has what efficiency jobs may lose meanwhile.
	Leader
	// EveryReplica runs each due, or each key of it, on every replica that has the job, such as to refresh a
	// cache. Only for efficiency jobs. A run by hand is one run, on one replica.
	EveryReplica
)

// Limit bounds how many runs of a job are at work, and how fast they start. What exceeds it waits; it is not skipped.
type Limit struct {
	// PerReplica is how many run at once on one replica. 0: all workers but one in eight, at least one, which stay for other
	// jobs where there are any; negative: all workers.
	PerReplica int
	// Cluster is how many run at once on all replicas together, as far as they agree about who is alive: each owner
	// has its share, and where it is below the number of owners only that many members own the job. What an owner has no
	// free worker for waits, though others be idle: leave it one by the PerReplica of the other jobs, or by Priority. 0: no bound.
	// Only for jobs whose Placement is OneOwner.
	Cluster int
	// PerSecond is how many start in a second on one replica, in bursts of a second's worth at most. 0: no bound.
	PerSecond float64
}

func (l Limit) check(p Placement) (errs []error) {
	if l.Cluster < 0 || l.Cluster > 0 && p != OneOwner {
		errs = append(errs, fmt.Errorf("Limit.Cluster is %d; set it above 0 for a job of one owner, or leave it 0", l.Cluster))
	}
	if !(l.PerSecond >= 0 && l.PerSecond <= maxPerSecond) { // NaN is neither
		errs = append(errs, fmt.Errorf("Limit.PerSecond is %v; set it from above 0 to %d, or leave it 0", l.PerSecond, maxPerSecond))
	}
	return errs
}

const maxPerSecond = 1_000_000

// checkPolicies returns what is wrong with the choices of a job, and with those that do not go together.
func (j Job) checkPolicies() (errs []error) {
	add := func(wrong bool, format string, a ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf(format, a...))
		}
	}
	efficient := j.Guarantee == Efficiency
	add(j.Overlap < OverlapSkip || j.Overlap > OverlapCancel, "overlap policy %d is unknown; use jobs.OverlapSkip, OverlapQueue, OverlapAllow or OverlapCancel", j.Overlap)
	add(j.Crash < CrashRerun || j.Crash > CrashAbandon, "crash policy %d is unknown; use jobs.CrashRerun or jobs.CrashAbandon", j.Crash)
	add(j.Posture < PostureRun || j.Posture > PostureMajority, "posture %d is unknown; use jobs.PostureRun, PostureHold or PostureMajority", j.Posture)
	add(j.Placement < OneOwner || j.Placement > EveryReplica, "placement %d is unknown; use jobs.OneOwner, Leader or EveryReplica", j.Placement)
	add(j.Crash == CrashAbandon && efficient, "CrashAbandon needs a store that remembers what was started; use jobs.Correctness")
	add(j.Crash == CrashAbandon && j.Retry.Attempts > 1, "CrashAbandon starts a run once at most, but Retry.Attempts is %d; leave Retry zero", j.Retry.Attempts)
	add(j.Posture != PostureRun && !efficient, "a posture is only for efficiency jobs; the store keeps a correctness job from running twice in a partition")
	add(j.Posture != PostureRun && j.Placement == EveryReplica, "a posture is only for jobs of one owner; on every replica a run is meant to be made many times")
	add(j.Posture != PostureRun && j.Placement == Leader, "a posture is only for jobs of one owner; the leader is elected, which needs a majority already, or one store")
	add(j.HandOverAfter < 0, "HandOverAfter is %v; set it above 0, or leave it 0 to wait for a leader", j.HandOverAfter)
	add(j.HandOverAfter > 0 && j.Placement != Leader, "HandOverAfter is only for jobs of the leader; set Placement: jobs.Leader, or leave it 0")
	add(j.Placement == EveryReplica && !efficient, "EveryReplica is only for efficiency jobs; set Guarantee: jobs.Efficiency")
	add(j.StartWithin < 0, "StartWithin is %v; set it above 0, or leave it 0 for no bound", j.StartWithin)
	add(j.StallAfter < 0, "StallAfter is %v; set it above 0, or leave it 0 for no watch", j.StallAfter)
	if j.Timeout >= 0 && j.StallAfter > 0 {
		limit := j.Timeout
		if limit == 0 {
			limit = DefaultTimeout
		}
		add(j.StallAfter >= limit, "StallAfter %v is not below Timeout %v, so that it would have no effect; lower it", j.StallAfter, limit)
	}
	return append(errs, j.Limit.check(j.Placement)...)
}
