package core

import (
	"context"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

// Action is what a Core wants done, or wants known. None of them may block the
// caller of Step.
type Action interface{ action() }

// Call is a call of the store, to be made by Do with a deadline of Within from now; what Do returns comes back as an
// event. Calls may be made in any order and at the same time.
type Call struct {
	Name   string
	Within time.Duration

	call interface {
		do(context.Context, idempotency.Store) *Replied
		then(*Replied)
	}
}

// Do makes the call, once. It blocks as long as the store does, and may be called from any goroutine.
func (c *Call) Do(ctx context.Context, s idempotency.Store) *Replied { return c.call.do(ctx, s) }

// Fail is the call's end where no answer came in time; the call may still have happened, or happen yet.
func (c *Call) Fail(err error) *Replied { return &Replied{Call: c, err: err} }

// reply is what a call that is answered with a T keeps its answer in: there are many calls.
type reply[T any] struct {
	Replied
	answer T
}

// put keeps an answer.
func (r *reply[T]) put(c *Call, answer T, err error) *Replied {
	r.answer, r.Replied = answer, Replied{Call: c, err: err}
	return &r.Replied
}

// get returns the answer that came in time, if one did.
func (r *reply[T]) get(end *Replied) (answer T, err error) {
	if end == &r.Replied {
		answer = r.answer
	}
	return answer, end.err
}

func newCall[T any](name string, do func(context.Context, idempotency.Store) (T, error), then func(T, error)) *Call {
	x := &callOf[T]{Call: Call{Name: name}, ask: do, take: then}
	x.call = x
	return &x.Call
}

// callOf is a call that is answered with a T.
type callOf[T any] struct {
	Call
	reply[T]
	ask  func(context.Context, idempotency.Store) (T, error)
	take func(T, error)
}

func (c *callOf[T]) do(ctx context.Context, s idempotency.Store) *Replied {
	answer, err := c.ask(ctx, s)
	return c.put(&c.Call, answer, err)
}

func (c *callOf[T]) then(r *Replied) { c.take(c.get(r)) }

// Start starts a handler. Its return is told by Ended.
type Start struct {
	Handle     int64
	Job        *jobs.Job
	Occurrence jobs.Occurrence
	Late       time.Duration // since the start: the due, and what Spread delays it by
}

// Cancel ends a handler's context. The handler's Ended follows when it returns.
type Cancel struct {
	Handle int64
	Cause  error
}

// OpenStream begins a stream of keys. It yields nothing until pulled.
type OpenStream struct {
	Stream int64
	Job    *jobs.Job
	Range  jobs.KeyRange
}

// Pull asks a stream for up to Max keys; one Streamed answers.
type Pull struct {
	Stream int64
	Max    int
}

// CloseStream ends a stream; nothing of it is awaited any more.
type CloseStream struct{ Stream int64 }

// Announce tells the other replicas this one's state. Reason is for people: why it is so, and what to do; empty while
// serving. Store is the identity of the store that this replica holds to be the right one, 64 bytes at most; empty while it
// knows of none. Fence is the highest that it has seen of it; that alone is no reason to announce. RolledBack says that this
// store has gone back behind that.
type Announce struct {
	State, Reason, Store string
	Fence                int64
	RolledBack           bool
}

// Stand asks the elector, where Config.Elector says that there is one, to elect this replica, or where On is false, to elect it no more: a
// term that it has ends then. What it says is so until the next one; before the first it is not to be elected.
type Stand struct{ On bool }

// Lead begins what the leader does beside jobs, in a term; or, where Term is 0, ends it, which Yielded then answers: no other replica is
// let lead before that, but for half a Lease at most.
type Lead struct{ Term int64 }

// Hint tells members that something lies there for them, so that they sweep at
// once and not at their next sweep. It may be lost, late or doubled.
type Hint struct{ Members []string }

// Failed ends the replica for good, with what the user has to mend.
type Failed struct{ Err error }

// Stopped says that draining is over. Cut names the runs whose handlers had
// not returned, or whose records had not been answered.
type Stopped struct{ Cut []string }

// Observations. They ask for nothing.
type (
	// Finished is an attempt whose record was answered.
	Finished struct {
		jobs.Occurrence
		Outcome    idempotency.Outcome
		Reason     string
		Late, Took time.Duration
		First      bool // it started for the first time, as the schedule asked for it
		Err        error
	}

	// Refused is a claim or finish that the store did not accept.
	Refused struct {
		jobs.Occurrence
		Cause string
	}

	// Decided is a won opening.
	Decided struct {
		Job                     string
		Dues                    []time.Time
		Missed, Paused, TooLate int64
	}

	// TakenUp is a won take-up of an orphaned run.
	TakenUp struct {
		jobs.Occurrence
		Crashes int
	}

	// Hedged is a won claim in a partition of which another replica is the owner.
	Hedged struct{ Occurrence jobs.Occurrence }

	// Stuck is a handler that has not returned after its context ended.
	Stuck struct {
		Occurrence jobs.Occurrence
		Cause      error
	}

	// Renewed is an answered opening or renewal.
	Renewed struct {
		Session int64
		Opened  bool
		Offset  time.Duration // the store's clock minus Wall
	}

	// Declared is a session that has taken our jobs: from now on they run.
	Declared struct{ Session int64 }

	// Lost is a session given up, and why.
	Lost struct {
		Session int64
		Why     string
	}

	// NoMoreDues is a job whose schedule has no due after the last one, by design or because a calendar of the user's
	// is broken: it runs no more.
	NoMoreDues struct{ Job, Schedule string }

	// WallStepped is a host whose wall clock was set, or that was suspended.
	WallStepped struct{ By time.Duration }

	// Skewed is a host whose wall clock is far from the store's, as told now and then while that lasts; or no longer is.
	Skewed struct {
		Offset time.Duration // the store's clock minus Wall
		Fine   bool
	}

	// SteppedBack is a store whose clock went back.
	SteppedBack struct{ By time.Duration }

	// Orphaned is a job that no live replica has the code of: told when that is found, each hour, and when it is retired.
	Orphaned idempotency.Orphan

	// Led is a change of who leads, as far as this replica knows: Mine where it is this one. Without a store, Leader is known of this
	// replica's own terms only.
	Led struct {
		idempotency.Leader
		Mine bool
	}

	// Problem is something that an operator has to know of.
	Problem struct {
		Job string    // empty: none
		Due time.Time // zero: none
		Err error
	}
)

func (*Call) action()       {}
func (Start) action()       {}
func (Cancel) action()      {}
func (OpenStream) action()  {}
func (Pull) action()        {}
func (CloseStream) action() {}
func (Announce) action()    {}
func (Stand) action()       {}
func (Lead) action()        {}
func (Led) action()         {}
func (Hint) action()        {}
func (Failed) action()      {}
func (Stopped) action()     {}
func (Finished) action()    {}
func (Refused) action()     {}
func (Decided) action()     {}
func (TakenUp) action()     {}
func (Hedged) action()      {}
func (Stuck) action()       {}
func (Renewed) action()     {}
func (Declared) action()    {}
func (Lost) action()        {}
func (SteppedBack) action() {}
func (NoMoreDues) action()  {}
func (WallStepped) action() {}
func (Skewed) action()      {}
func (Orphaned) action()    {}
func (Problem) action()     {}
