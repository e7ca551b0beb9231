package jobs

import "errors"

// Causes of a handler's ended context, by context.Cause.
var (
	// ErrTimeout: the attempt took longer than Job.Timeout. It counts as failed.
	ErrTimeout = errors.New("jobs: attempt timed out")
	// ErrStalled: the attempt did not call Progress for Job.StallAfter. It counts as failed.
	ErrStalled = errors.New("jobs: no progress")
	// ErrCanceled: a person asked for the run to end. What does not return nil is recorded as failed (canceled).
	ErrCanceled = errors.New("jobs: canceled by a person")
	// ErrSessionLost: the replica could not renew its lease in time, so others
	// may take the run up. What the handler still does may be done twice.
	ErrSessionLost = errors.New("jobs: session lost")
	// ErrDraining: the replica is shutting down and its time to finish is over.
	// The run is released to another replica, and the attempt is not counted.
	ErrDraining = errors.New("jobs: replica is draining")
)

// ErrOvertaken is wrapped by the error of a write that was refused because the
// run is not this attempt's any more: another replica has taken it up with a
// higher fence, or its end was recorded meanwhile. Whoever gets it rolls back,
// and returns: what is left to do is the other's. It is also the cause of a context that was
// ended because a newer run of the key waits for it to return (OverlapCancel).
var ErrOvertaken = errors.New("jobs: the run was overtaken")
