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
	Moved    func(context.Context, Moved)           // the ring was built, or changed
	Called   func(context.Context, Call)            // a call of the store returned
	Renewed  func(context.Context, Renewed)         // the session was opened or renewed
	Load     func(context.Context, Load)            // the number of handlers at work changed
	Led      func(context.Context, Led)             // who leads has changed; told only where this replica has a job or a role of the leader

	// Orphaned: no live replica has a job's code. Told by one replica, when that is found, each hour, and when it is retired.
	Orphaned func(context.Context, idempotency.Orphan)
}

// Finished is an attempt's end, or the end of a run that did not start: then Took is 0.
type Finished struct {
	jobs.Occurrence
	Outcome idempotency.Outcome // Wait: another attempt follows, here or elsewhere
	// Reason is exhausted, permanent, panic, timeout, stalled, canceled or abandoned where it failed; handler, deadline or overtaken where it is
	// skipped; retry, panic, timeout, stalled, released, unstarted or by hand where it waits; empty where done.
	Reason string
	Late   time.Duration // from when it should have started, which is the due and what Job.Spread delays it by, to the handler's start
	Took   time.Duration // the handler's time
	// First says that the run started for the first time, and that the schedule asked for it: the attempts whose Late tells how late this replica
	// is. False for further attempts, runs taken up after a start, and what a person asked for; but a due of a job with keys that was
	// opened by hand for all of them passes for one of the schedule, unless Job.StartWithin is over.
	First bool
	Err   error // the handler's; it may come after the run was completed (InTx), and then the outcome is done
}

// Refused is a claim or a finish that the store refused, or a due of an efficiency job that does not run here. It is an expected
// outcome, not an error. Cause is one of
//
//	taken             another replica has it, or it has ended
//	busy              a run of its key is at work; of an efficiency job, here
//	overlap           the due was recorded as skipped, since a run of its key is at work, or waits
//	early             it is not due by the store's clock
//	expired           it is older than the horizon; of an efficiency job, it waited for a worker for longer than MissedAfter,
//	                  unless it was to wait, for a run of its key, or for its Limit where it has keys
//	closed            its due was closed meanwhile
//	stale definition  a newer schedule of the job is in force
//	fenced            another replica has taken the run over: what this one did of it does not count
//	deadline          of an efficiency job: it would start later than StartWithin
//	overtaken         of an efficiency job: a newer run of its key came (OverlapCancel)
//	posture           an efficiency job's Posture holds it, since members are missing
//	paused            an efficiency job is paused
//	leader            of an efficiency job of the leader: this replica does not lead any more
//
// What is refused for posture or pause before its keys are known is told once a due, with the job's name as the key.
type Refused struct {
	jobs.Occurrence
	Cause string
}

// Decided is an opening that this replica won.
type Decided struct {
	Job     string
	Dues    []time.Time // to run
	Missed  int64       // recorded as missed; why, each range row says (see jobs.Missed)
	Paused  int64       // recorded as skipped (paused)
	TooLate int64       // recorded as skipped (deadline): past Job.StartWithin
}

// TakenUp is an orphaned run that this replica took over.
type TakenUp struct {
	jobs.Occurrence
	Crashes int // how often its holders died, this one included
}

// Moved is a new ring. The first one of a replica moves nothing.
type Moved struct {
	Members []string    // the owners, sorted; none: nobody owns anything
	Moves   []ring.Move // the partitions that changed their owner, by partition
}

// Led is who leads, as far as this replica knows, which may be a Sweep late.
type Led struct {
	idempotency.Leader      // its Term is above 0. Without a store only this replica's own terms are known
	Mine               bool // this replica leads
}

// Load is how much of this replica is at work. What changes to and fro within a moment may go untold; the
// last state never does.
type Load struct {
	Running int // handlers that have not returned, stuck ones included
	Workers int // Config.Concurrency
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
