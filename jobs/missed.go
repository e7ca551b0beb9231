package jobs

import (
	"errors"
	"fmt"
	"time"
)

// DefaultMaxMissed is how many late dues MissedAll runs at most where Missed.Max is 0.
const DefaultMaxMissed = 100

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
// store was away. Younger ones all run. What does not run is recorded as missed,
// with its reason, one row for a whole range. An efficiency job has no record to
// catch up from, and never runs a late due: leave its Missed zero.
type Missed struct {
	// Policy is MissedLatest where it is not set.
	Policy MissedPolicy
	// Max bounds how many late dues MissedAll runs. 0: DefaultMaxMissed. Only with MissedAll.
	Max int
	// MaxAge is how old a due may be and still run by this policy. 0: scheduler.Config.Horizon,
	// which bounds it. Not with MissedSkip.
	MaxAge time.Duration
}

// WithDefaults returns a copy in which Max holds its default; MaxAge's is the scheduler's.
func (m Missed) WithDefaults() Missed {
	if m.Policy == MissedAll && m.Max == 0 {
		m.Max = DefaultMaxMissed
	}
	return m
}

func (m Missed) check() error {
	var errs []error
	if m.Policy < MissedLatest || m.Policy > MissedAll {
		errs = append(errs, fmt.Errorf("missed policy %d is unknown; use jobs.MissedLatest, jobs.MissedSkip or jobs.MissedAll", m.Policy))
	}
	if m.Max < 0 || m.Max > 0 && m.Policy != MissedAll {
		errs = append(errs, fmt.Errorf("Missed.Max is %d; set it above 0 with jobs.MissedAll, or leave it 0", m.Max))
	}
	if m.MaxAge < 0 || m.MaxAge > 0 && m.Policy == MissedSkip {
		errs = append(errs, fmt.Errorf("Missed.MaxAge is %v; set it above 0 with a policy that runs late dues, or leave it 0", m.MaxAge))
	}
	return errors.Join(errs...)
}
