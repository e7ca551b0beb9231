package core

import (
	"time"

	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/ring"
)

// Instant is one reading of a host's two clocks.
type Instant struct {
	Mono time.Duration // monotonic, since any fixed moment
	Wall time.Time
}

// Reached says that either clock shows this instant, or a later one.
func (i Instant) Reached(now Instant) bool { return now.Mono >= i.Mono || !now.Wall.Before(i.Wall) }

// Event is what a Core is told.
type Event interface{ event() }

// JobsChanged tells the whole set of jobs, valid and with defaults applied, and whether the leader has something to do beside them.
type JobsChanged struct {
	Jobs  []jobs.Job
	Roles bool
}

// RingChanged tells the ring; nil while nobody owns anything.
type RingChanged struct{ Ring *ring.Ring }

// Replied tells how a Call ended. Call.Do makes it.
type Replied struct {
	Call *Call
	err  error
}

// Err is the call's error.
func (r *Replied) Err() error { return r.err }

// Ended tells that a started handler returned.
type Ended struct {
	Handle    int64
	Err       error
	Text      string         // Err's, read where a panic of Error harms nobody
	Permanent bool           // Err is marked so
	Skipped   bool           // Err came from Skip; Text is its reason
	Asks      *time.Duration // how long Err asks to wait before the next attempt; nil: it does not
	Panic     bool           // Err tells the panic, or that the handler ended its goroutine
	Completed bool           // the handler has committed the run's completion itself: it is done, whatever Err says
}

// Return is the Ended of a handler that returned err. It calls err's methods.
func Return(handle int64, err error) Ended {
	e := Ended{Handle: handle, Err: err}
	if err != nil {
		e.Text, e.Permanent = err.Error(), jobs.IsPermanent(err)
		if reason, ok := jobs.SkipReason(err); ok {
			e.Text, e.Skipped = reason, true
		}
		if d, ok := jobs.RetryDelay(err); ok {
			e.Asks = &d
		}
	}
	return e
}

// Progressed tells that a handler gets on, and what it said of that last.
type Progressed struct {
	Handle int64
	Note   string
}

// Streamed brings keys of a stream, in answer to one Pull. End says that no
// more follow: because the source ended, or because of Err.
type Streamed struct {
	Stream int64
	Keys   []string
	End    bool
	Err    error
}

// MissingChanged tells how many members vanished without leaving and are not back, and how many are in sight, this
// replica included. It is told before the ring in which they are not.
type MissingChanged struct{ Missing, InSight int }

// Elected tells that the elector, where Config.Elector says that there is one, has elected this replica: it comes after a Stand, and
// Deposed follows once the term is not trusted any more, which is before another replica may be elected.
type Elected struct{ Term int64 }

// Deposed tells that a term of the elector is over, and why: the rest of a sentence that begins with the replica's name and a colon.
type Deposed struct {
	Term int64
	Why  string
}

// Yielded tells that what the leader does beside jobs has ended, after a Lead that said so.
type Yielded struct{}

// Hinted tells that another replica says: something lies here for you. It may come at any time and as
// often as it likes; all it does is to make the next sweep come sooner.
type Hinted struct{}

// Heard tells what the members have announced of stores, by their identity as an Announce has it: the highest fence that
// any has seen, and those that one has seen rolled back. It may come at any time; what was told before stays known.
type Heard struct {
	Fences     map[string]int64
	RolledBack map[string]bool
}

// Stop tells the replica to drain, and why: the rest of a sentence that begins with "stopping:". It may be told
// again; that changes nothing.
type Stop struct{ Why string }

// Hurry tells that a replica which drains, or comes to, shall not wait for its handlers.
type Hurry struct{}

func (JobsChanged) event()    {}
func (RingChanged) event()    {}
func (*Replied) event()       {}
func (Ended) event()          {}
func (Progressed) event()     {}
func (Streamed) event()       {}
func (MissingChanged) event() {}
func (Elected) event()        {}
func (Deposed) event()        {}
func (Yielded) event()        {}
func (Hinted) event()         {}
func (Heard) event()          {}
func (Stop) event()           {}
func (Hurry) event()          {}
