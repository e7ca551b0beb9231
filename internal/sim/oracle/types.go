package oracle

import (
	"fmt"
	"time"
)

// ID names a run. Due is in Unix seconds.
type ID struct {
	Job, Key string
	Due      int64
	Request  string // of a run by hand
}

// String is job/key@due, and #request of a run by hand.
func (id ID) String() string {
	s := fmt.Sprintf("%s/%s@%d", id.Job, id.Key, id.Due)
	if id.Request != "" {
		s += "#" + id.Request
	}
	return s
}

// State is a run's.
type State int

// The states of a run.
const (
	Waiting State = iota + 1
	Running
	Ended
)

// Outcome is how a run or a due ended.
type Outcome int

// The outcomes. None is that of a run that has not ended.
const (
	None Outcome = iota
	Done
	Failed
	Skipped
	Missed
)

// String is the outcome's name.
func (o Outcome) String() string {
	return [...]string{"none", "done", "failed", "skipped", "missed"}[o]
}

// Rules are the settings that the laws depend on.
type Rules struct {
	Tolerance, Horizon, MissedAfter, Retention time.Duration

	Lease, Sweep time.Duration // of every replica, where contexts of handlers are told

	Attempts int // after so many ended attempts a run may fail
	Policy   func(job string) Policy
	Crashes  int // or after so many crashes

	Partitions int

	// Fatal tells of a run that its handler kills processes. Runs of which it
	// is false may not fail for their crashes while fewer than Spare processes were
	// killed or paused by others in their time. Nil: any run may.
	Fatal func(ID) bool
	Spare int
}

// Range is a record that speaks for the dues in [From, To] of one job.
type Range struct {
	From, To int64
	Count    int64
	Outcome  Outcome
	Reason   string
}

// Row is a run's row as a store tells it.
type Row struct {
	ID       ID
	State    State
	Outcome  Outcome // where Ended
	Fence    int64
	Term     int64 // of its last claim
	Attempt  int
	Crashes  int
	Overlap  bool      // skipped for that reason
	Wake     time.Time // where Waiting
	Recorded bool      // by a claim that was answered busy or expired
}

// Decision is one that a store accepted.
type Decision struct {
	Session, Nonce   int64
	Job              string
	SeenHash, Hash   string
	SeenOpened, Open time.Time
	Next             time.Time
	Keyed            bool
	Parallel         bool  // its runs hold no key
	Term             int64 // of the runs that it claims
	Overtakes        bool  // those that find their key held tell the holder to end
	Run              []int64
	Ranges           []Range
	Rows             []Row // of the dues of Run, where not Keyed
}

// Claim is one that was won.
type Claim struct {
	Session, Nonce int64
	ID             ID
	Hash           string // the definition by which it is made
	Exclusive      bool
	TakeUp, Keyed  bool
	Seen           int64 // where TakeUp
	Fence, Term    int64
	Attempt        int
	Crashes        int
}

// Finish is one that was answered.
type Finish struct {
	ID      ID
	Fence   int64
	Outcome Outcome // None: it waits until Wake
	Wake    time.Time
	Attempt int
	Reason  string
	Answer  Answer
}

// Answer is a store's to a finish.
type Answer int

// The answers to a finish.
const (
	Finished Answer = iota + 1
	Already
	Fenced
	Completed
)

// Violation is a law that was broken.
type Violation struct {
	Law, Text string
	At        time.Time // the store's clock
}

// Error tells the law, what broke it and when.
func (v Violation) Error() string {
	return fmt.Sprintf("%s: %s (store's clock %s)", v.Law, v.Text, v.At.UTC().Format("15:04:05.000000"))
}
