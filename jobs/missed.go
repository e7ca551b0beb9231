package jobs

import (
	"fmt"
	"time"
)

// Bounds of Missed.Max.
const (
	defaultMaxMissed = 100
	maxMissed        = 10_000
)

// MissedPolicy says which of the dues that nobody opened in time still run.
type MissedPolicy int

const (
	// MissedLatest is the default: only the latest of them runs.
	MissedLatest MissedPolicy = iota
	// MissedSkip runs none of them.
	MissedSkip
	// MissedAll runs the newest Missed.Max of them, oldest first.
	MissedAll
)

// Missed is what becomes of late dues: those that were still to be opened when
// they were older than scheduler.Config.MissedAfter, since no replica ran or the
// store was away. Younger ones all run, and dues inside a pause never do. Those
// that run are runs of their own, with the dues that they had; they wait for
// workers, oldest first, and never skip each other for overlap.
//
// What does not run is recorded as missed, one row for a whole range of dues,
// with the first reason that applies:
//
//   - age: it is older than MaxAge;
//   - late: the policy is MissedSkip, or MissedLatest and this is not the latest;
//   - max: Max newer late ones run (MissedAll), or it is of an older definition, of which the newest 1,000 run at most;
//   - unknown: it is of an older definition of the job whose schedule was a Custom
//     one, and nobody can tell how many there are: the range counts as one.
//
// When a job's schedule was changed, the old one's dues up to then are decided
// too, by what Missed says now; and none of the new one from before then is due. Of
// these at most 1,000 run, whatever Missed says.
//
// Replicas that differ in Missed do no harm; whoever opens a due decides. An
// efficiency job has no record to catch up from, and never runs a late due: leave its Missed zero.
type Missed struct {
	// Policy is MissedLatest where it is not set.
	Policy MissedPolicy
	// Max bounds how many late dues MissedAll runs, the newest; at most 10,000. 0: 100. Only with MissedAll.
	Max int
	// MaxAge is how old a late due may be when it is opened, and still run. 0: scheduler.Config.Horizon,
	// which it cannot be above. Not with MissedSkip.
	MaxAge time.Duration
}

// withDefaults returns a copy in which Max holds its default; MaxAge's is the scheduler's.
func (m Missed) withDefaults() Missed {
	if m.Policy == MissedAll && m.Max == 0 {
		m.Max = defaultMaxMissed
	}
	return m
}

func (m Missed) check() (errs []error) {
	if m.Policy < MissedLatest || m.Policy > MissedAll {
		errs = append(errs, fmt.Errorf("missed policy %d is unknown; use jobs.MissedLatest, jobs.MissedSkip or jobs.MissedAll", m.Policy))
	}
	if m.Max < 0 || m.Max > maxMissed || m.Max > 0 && m.Policy != MissedAll {
		errs = append(errs, fmt.Errorf("Missed.Max is %d; set it from 1 to %d with jobs.MissedAll, or leave it 0", m.Max, maxMissed))
	}
	if m.MaxAge < 0 || m.MaxAge > 0 && m.Policy == MissedSkip {
		errs = append(errs, fmt.Errorf("Missed.MaxAge is %v; set it above 0 with a policy that runs late dues, or leave it 0", m.MaxAge))
	}
	return errs
}
