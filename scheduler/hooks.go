package scheduler

import (
	"context"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/ring"
)

// Hooks observe a scheduler; nil fields are skipped. They are called one at a
// time from one goroutine of their own, in the order of what happened on this
// replica. They never delay a run: when they lag by thousands of
// observations, further ones are dropped and the number of them is logged.
type Hooks struct {
	Started  func(context.Context, jobs.Occurrence) // a handler starts
	Finished func(context.Context, Finished)        // an attempt ended and its record was answered
	Refused  func(context.Context, Refused)         // the store did not let this replica have, or end, a run
	Decided  func(context.Context, Decided)         // this replica opened dues of a job
	TakenUp  func(context.Context, TakenUp)         // this replica took an orphaned run over
	Hedged   func(context.Context, jobs.Occurrence) // this replica claimed what a rank before it did not move
	Stuck    func(context.Context, jobs.Occurrence) // a handler ignores its ended context; its worker stays taken
	Moved    func(context.Context, []ring.Move)     // the ring changed
	Called   func(context.Context, Call)            // a call of the store returned
	Renewed  func(context.Context, Renewed)         // the session was opened or renewed

	// Orphaned: no live replica has a job's code. Told by one replica, when that is found, each hour, and when it is retired.
	Orphaned func(context.Context, idempotency.Orphan)
}

// Finished is an attempt's end.
type Finished struct {
	jobs.Occurrence
	Outcome idempotency.Outcome // Wait: another attempt follows, here or elsewhere
	// Reason is exhausted, permanent, panic, timeout, stalled, canceled or abandoned where it failed; handler, deadline or overtaken where it is
	// skipped; retry, panic, timeout, stalled, released, unstarted or by hand where it waits; empty where done.
	Reason string
	Late   time.Duration // from when it should have started, which is the due and what Job.Spread delays it by, to the handler's start
	Took   time.Duration // the handler's time
	Err    error         // the handler's; it may come after the run was completed (InTx), and then the outcome is done
}

// Refused is a claim or a finish that the store refused. Cause is taken, busy,
// early, expired, closed, stale definition or fenced. Of an efficiency job it is a run that is left out on this replica: busy,
// expired, deadline or overtaken. It is an expected outcome, not an error.
type Refused struct {
	jobs.Occurrence
	Cause string
}

// Decided is an opening that this replica won.
type Decided struct {
	Job     string
	Dues    []time.Time // to run
	Missed  int64       // recorded as missed; why, each range row says (see jobs.Missed)
	Skipped int64       // recorded as skipped: paused, or past Job.StartWithin
}

// TakenUp is an orphaned run that this replica took over.
type TakenUp struct {
	jobs.Occurrence
	Crashes int // how often its holders died, this one included
}

// Call is one call of the store.
type Call struct {
	Name string // method, such as Claim
	Took time.Duration
	Err  error
}

// Renewed is an answered opening or renewal of the session.
type Renewed struct {
	Session int64
	Offset  time.Duration // the store's clock minus this host's wall clock, as far as known
}
