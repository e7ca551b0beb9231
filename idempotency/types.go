package idempotency

import "time"

// ID names a run within its namespace. Request is empty for a scheduled run.
type ID struct {
	Job, Key, Request string
	Due               time.Time
}

// Opening is what a replica asks of a new session. All durations are above
// zero but Tolerance, which may be zero.
type Opening struct {
	Namespace string
	Replica   string // human name
	Boot      string // the process, new at each start

	Partitions int           // P, a power of two
	Lease      time.Duration // how long a session lives without renewal
	Horizon    time.Duration // no insert of an older due
	Retention  time.Duration // how long ended runs are kept; > Horizon
	Tolerance  time.Duration // how far ahead of the store's now a due may be
}

// Session names an open session.
type Session struct {
	Namespace string
	ID        int64
}

// Renewal is the store's word at an opening or a renewal.
type Renewal struct {
	Now   time.Time // the store's clock
	Store string    // the store's identity, drawn when it was created

	// Highest is not below any fence of any namespace that a call answered which
	// had returned before this one began, nor below the Highest of such a call.
	// One that is tells that the store was put back to an older state.
	Highest int64
}

// Definition is a job's schedule as one version of the code has it.
type Definition struct {
	Job      string
	Schedule string // text form
	Hash     string // of all that decides the dues, and whether they are the leader's
	Revision int64  // beats first seen
	Keyed    bool   // each due has a run for each of the job's keys
	Leader   bool   // its dues are the leader's
}

// Declaration is a definition with what a new entry starts from: every due up to Opened counts as decided, and Next is
// when to look at it: at the first one after that, or at a later second in which that one starts (zero: never). Opened is not above the store's now + tolerance, else it is lowered to the
// store's now. The zero Opened is an efficiency job's: the store decides none of its dues, and Next is zero too.
type Declaration struct {
	Definition
	Opened, Next time.Time
}

// Entry is what is scheduled.
type Entry struct {
	Definition         // as of the last decision
	Key         string // empty, but for schedules per key
	Opened      time.Time
	Next        time.Time // when to look at it; zero: never
	PausedFrom  time.Time // the last pause; zero: none
	PausedUntil time.Time // zero: not resumed yet
	InForce     string    // hash of the definition in force by what live sessions announce
	Retired     time.Time // when it was, since nobody had announced the job for long; zero: it is not
}

// Decision moves an entry from what was seen.
type Decision struct {
	Seen         Entry
	Definition   // to be the entry's from now on; Job as in Seen
	Opened, Next time.Time
	Keyed        bool
	Run          []time.Time // dues to run, ascending
	Ranges       []Range     // stretches that do not run
	Claim        int         // of Run, how many may be claimed now; without effect where Keyed
	CatchUp      bool        // runs that find their key held wait, and are not skipped
	Overlap      Overlap     // what becomes of the others that do; without effect where Keyed
	Term         int64       // of the runs that are claimed here: see Claim.Term
}

// Overlap says what becomes of a run whose key another run holds, of the same or an older due. For one of a newer due it waits,
// but for OverlapAllow.
type Overlap int

// The ways to overlap.
const (
	OverlapSkip   Overlap = iota // it is skipped (overlap)
	OverlapQueue                 // it waits, unless another run of the key waits: then it is skipped (overlap)
	OverlapAllow                 // it holds no key, and runs beside the others
	OverlapCancel                // it waits, and overtakes: see Claim.Overtake
)

// Range records an outcome of Count dues in [From, To] of one job.
type Range struct {
	Job      string
	From, To time.Time
	Count    int64
	Outcome  Outcome // Skipped or Missed
	Reason   string
}

// Decided answers a decision. Entry is the entry as it is now.
type Decided struct {
	Won   bool
	Entry Entry
	Runs  []Run
}

// LagQuery says what this replica may take. Ranks[r] is the bitmap of the
// partitions in which it has rank r: partition p is bit p%8 of byte p/8. The
// partition of a run is that of its key, of an entry that of its key or job
// name. A partition in none of the bitmaps is not this replica's business.
type LagQuery struct {
	Ranks [][]byte
	Grace time.Duration // rank r acts after r x Grace without movement
	Limit int           // of Waiting and of Orphaned each; 0: none of these
	Full  []string      // jobs of which Waiting and Orphaned are not asked for; nil: none
}

// Lag is what a replica may take, all of jobs whose entry has the hash that its
// session announced; oldest due first.
type Lag struct {
	Now time.Time

	// Entries whose Next has come r x Grace ago, r being the rank; and, whatever
	// the rank, those whose hash is not in force while the session announced the one that is.
	Entries []Entry

	// Open are all open dues.
	Open []OpenDue

	// Waiting are runs whose wake time came r x Grace ago and whose (job, key) no
	// run holds exclusively; at most one of them has crashes >= 2.
	Waiting []Run

	// Orphaned are runs whose session stopped being live (its lease's end, or
	// the mark if earlier) r x Grace ago; at most one has crashes >= 1.
	Orphaned []Run

	// Controls rises with each command that changed something, and each time that a run was told to end: then Declare and
	// Mine have news.
	Controls int64
}

// OpenDue is a due of a job with keys that is not closed.
type OpenDue struct {
	Job         string
	Due, Opened time.Time
	CatchUp     bool   // as its decision said
	ByHand      bool   // a person asked for it: see Control
	Finished    []byte // union over all passes
	Passes      []Pass // of live sessions
}

// Claim asks for one run.
type Claim struct {
	ID        ID
	Hash      string // the claimer's definition
	Exclusive bool   // at most one such run of (job, key) is running
	TakeUp    bool   // of a waiting or orphaned run; else an insert
	Seen      int64  // the fence that the run to take up had
	Term      int64  // the leader's, where it claims as such: it becomes the run's where Won; else 0

	// What an insert records instead, in the same transaction, as the run's
	// ended or waiting row; nil: nothing. ID and Fence are not used. OnQueued, which needs an OnBusy that waits, is recorded
	// instead of that where another run of (job, key) waits. OnNewer, which waits and needs an OnBusy, is recorded instead of both,
	// and nothing is overtaken, where the run that holds the key has a newer due: who comes late is not skipped for that.
	OnBusy, OnQueued, OnNewer, OnExpired *Finish

	// Overtake says that an insert which is Busy tells the run that holds the key to end: its Cancel becomes Overtaken,
	// unless it is set, or its due is newer; and that runs of (job, key) with older dues which wait are ended as skipped (overtaken), their
	// attempts and text as they were. It needs an OnBusy that waits, and no OnQueued.
	Overtake bool
}

// What Run.Cancel says.
const (
	Canceled  = "canceled"  // by a person: it ends failed (canceled), unless it is done
	Overtaken = "overtaken" // by a newer run of its key: it ends skipped (overtaken), unless it is done
)

// Verdict answers a claim or a pass.
type Verdict int

// The verdicts. Only Won and Taken settle a key, besides what OnBusy, OnQueued, OnNewer and
// OnExpired recorded.
const (
	Won Verdict = iota + 1
	Taken
	Busy
	Early
	Expired
	Closed
	StaleDefinition
)

// Answer is a claim's. Fence, Attempt and Crashes are set where Won; Retry
// where Early: when to ask again; Recorded where Busy: the outcome of what was recorded, none for nothing.
type Answer struct {
	Verdict  Verdict
	Fence    int64
	Attempt  int // attempts that ended
	Crashes  int
	Retry    time.Duration
	Payload  []byte // of a run by hand
	Recorded Outcome
}

// Outcome is how a run ended, or that it waits.
type Outcome int

// The outcomes.
const (
	Done Outcome = iota + 1
	Failed
	Skipped
	Missed
	Wait // not an end: to be taken up from Finish.Wake on
)

// String is the outcome's word: done, failed, skipped, missed or wait; empty for none of them.
func (o Outcome) String() string {
	return word(int(o), "", "done", "failed", "skipped", "missed", "wait")
}

// word is words[i], or empty.
func word(i int, words ...string) string {
	if i < 0 || i >= len(words) {
		return ""
	}
	return words[i]
}

// Finish ends a run, or lets it wait.
type Finish struct {
	ID      ID
	Fence   int64
	Outcome Outcome
	Attempt int       // attempts that ended, this one included if it did
	Wake    time.Time // where Outcome is Wait
	Reason  string    // short word: overlap, exhausted, panic, …
	Text    string    // for people; valid UTF-8, at most 64 KiB, kept as is
}

// FinishAnswer answers a finish.
type FinishAnswer int

// The answers of Finish. Already and Completed are successes.
const (
	Finished FinishAnswer = iota + 1
	Already
	Fenced
	Completed // done, whatever the finish says
)

// State is a run's.
type State int

// The states of a run.
const (
	Waiting State = iota + 1
	Running
	Ended
)

// String is the state's word: waiting, running or ended; empty for none of them.
func (s State) String() string { return word(int(s), "", "waiting", "running", "ended") }

// Run is a run's row.
type Run struct {
	ID       ID
	State    State
	Outcome  Outcome // where Ended
	Reason   string
	Text     string
	Payload  []byte
	Fence    int64 // of its last claim; 0: never claimed
	Term     int64 // of the leader that made the last claim; 0: it was none
	Attempt  int   // attempts that ended
	Crashes  int
	Cancel   string    // where Running: why it is told to end; empty: it is not
	Session  int64     // of its last claim
	Replica  string    // human name of that session's replica
	Wake     time.Time // where Waiting
	Started  time.Time // of its last claim
	Finished time.Time // when it ended
}

// Pass is one session's progress through an open due. Bitmaps are as in LagQuery.
type Pass struct {
	Job            string
	Due            time.Time
	Mine, Finished []byte
	Keys           int64     // so far settled by the session's streams that finished
	MovedAt        time.Time // set by the store
	Session        int64     // set by the store
}

// Filter chooses runs of one namespace; zero fields choose all.
type Filter struct {
	Namespace string
	Job, Key  string
	State     State
	Outcome   Outcome
	From, To  time.Time // dues in [From, To)
	Newest    bool      // in the reverse order
	Limit     int
}

// CommandKind is what a person asks for.
type CommandKind int

// The kinds of commands; see Control.
const (
	Pause CommandKind = iota + 1
	Resume
	Trigger
	Skip
	Backfill
	Cancel
	Retry
)

// String is the kind's word: pause, resume, trigger, skip, backfill, cancel or retry; empty for none of them.
func (k CommandKind) String() string {
	return word(int(k), "", "pause", "resume", "trigger", "skip", "backfill", "cancel", "retry")
}

// Command is what a person asks of a namespace, and its record.
type Command struct {
	Request string // names the command within its namespace, and the run that a Trigger asks for (not of all keys): 1 to 36 of A-Z a-z 0-9 . _ -
	Kind    CommandKind
	ID      ID          // what it is about; see Control for which fields are used
	Dues    []time.Time // of a Backfill: ascending, at most MaxBatch
	Payload []byte      // of a Trigger; nil: the job's; at most 64 KiB
	Actor   string      // who asks; 1 to 255 bytes
	Reason  string      // why, for people; at most 64 KiB of valid UTF-8

	// What the store records. A record holds neither Dues nor Payload, and of ID only what its kind uses; the ID.Due of a Backfill
	// is the first of its dues.
	Last    time.Time // of a Backfill: the last of its dues; zero for others
	At      time.Time
	Changed int // how many dues, runs or entries it changed; 0: all was so already
}

// Overview is a namespace as of one instant.
type Overview struct {
	Now        time.Time
	Partitions int
	Entries    []Entry         // by job
	Open       []OpenDue       // all open dues, oldest first, with the passes of all sessions, dead ones too
	Sessions   []SessionStatus // live ones, by Replica, then ID
}

// Due is a due of a job with keys.
type Due struct {
	Job         string
	Due, Opened time.Time
	Closed      time.Time // zero: it is open
	Keys        int64     // where closed: how many its finishing passes settled
}

// SessionStatus is a session, for people.
type SessionStatus struct {
	ID            int64
	Replica, Boot string
	Expires       time.Time         // the end of its lease
	Announced     map[string]string // hashes of what it announced, by job
}

// Orphan is a job that no live session announces.
type Orphan struct {
	Job     string
	For     time.Duration // for so long, not counted while no session was live
	Retired bool          // by this call
}

// Leader is who leads a namespace, or who led it last.
type Leader struct {
	Term    int64     // rises with each leader, as far as one elector numbers them; 0: nobody has ever led, and all else is zero too
	Session int64     // of the replica
	Replica string    // its human name
	Since   time.Time // when it began to lead
	Until   time.Time // when it resigned, or its session stopped being live (the lease's end, or the mark if earlier); zero: it leads
	Why     string    // why the last change was, for people: of a leader how the one before it ended, else how it ended itself
}
