package rule

import (
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// Row is of a run's row what a claim looks at.
type Row struct {
	State            idempotency.State
	Fence            int64
	Attempt, Crashes int
	Payload          []byte
	Session, Nonce   int64 // of the last claim, or of who wrote the run
	Wake             time.Time
	Cancel           string // where running: why it is told to end
}

// Facts are what one claim is judged by, all as of one instant at which nobody else can change them.
type Facts struct {
	Fresh bool // the entry has the claim's hash, and the session announced it
	Open  bool // the due is open
	Row   *Row // nil: there is none
	Held  Held // what run of the job and key, but this one, is running exclusively

	// Queued says that another run of the job and key waits; an insert whose key is held and that has an OnQueued looks at it, no other does.
	Queued bool

	// Of the session under which Row is running.
	Marked    bool // marked dead
	BootLives bool // a live session of the same boot exists: its process did not crash
}

// Held is what run holds a key, by its due.
type Held int

// What holds a key. Older includes those of the same due, and another request.
const (
	Free Held = iota
	Older
	Newer
)

// HeldBy is what a run is to another of its key that finds it running exclusively.
func HeldBy(newer bool) Held {
	if newer {
		return Newer
	}
	return Older
}

// Claimer is whose claims are judged, and when.
type Claimer struct {
	Now                time.Time // the store's clock
	Session, Nonce     int64
	Horizon, Tolerance time.Duration
}

// Write is what the judgement of a claim makes the driver write.
type Write int

// The writes. Insert and TakeUp make the row run under the claimer with a new fence, which the answer still lacks.
const (
	Nothing Write = iota
	Insert
	TakeUp
	RecordBusy    // the claim's OnBusy, as the run's row; where the claim overtakes, what it overtakes is told or ended too
	RecordQueued  // the claim's OnQueued
	RecordNewer   // the claim's OnNewer
	RecordExpired // the claim's OnExpired
	EndTold       // the row, which is running, ends as Told says
)

// Judge answers a claim by the table at idempotency.Runs: the first rule that applies.
func (c Claimer) Judge(x idempotency.Claim, f Facts) (idempotency.Answer, Write) {
	switch r := f.Row; {
	case r != nil && r.State == idempotency.Running && r.Session == c.Session && r.Nonce == c.Nonce:
		return won(r, r.Crashes), Nothing
	case !f.Fresh:
		return idempotency.Answer{Verdict: idempotency.StaleDefinition}, Nothing
	case x.TakeUp:
		return c.takeUp(x, f)
	case r != nil:
		return idempotency.Answer{Verdict: idempotency.Taken}, Nothing
	}
	return c.insert(x, f)
}

func (c Claimer) insert(x idempotency.Claim, f Facts) (idempotency.Answer, Write) {
	switch wait := x.ID.Due.Sub(c.Now.Add(c.Tolerance)); {
	case wait > 0:
		return idempotency.Answer{Verdict: idempotency.Early, Retry: wait}, Nothing
	case x.ID.Due.Before(c.Now.Add(-c.Horizon)):
		// A closed due's keys may have been done and pruned: that is no miss.
		return idempotency.Answer{Verdict: idempotency.Expired}, when(x.OnExpired != nil && f.Open, RecordExpired)
	case !f.Open:
		return idempotency.Answer{Verdict: idempotency.Closed}, Nothing
	case x.Exclusive && f.Held != Free:
		record, w := Busy(x, f.Held, f.Queued)
		if w == Nothing {
			return idempotency.Answer{Verdict: idempotency.Busy}, w
		}
		return idempotency.Answer{Verdict: idempotency.Busy, Recorded: record.Outcome}, w
	}
	return idempotency.Answer{Verdict: idempotency.Won}, Insert
}

// Busy is what is recorded of an insert whose key is held.
func Busy(x idempotency.Claim, held Held, queued bool) (*idempotency.Finish, Write) {
	switch {
	case x.OnNewer != nil && held == Newer:
		return x.OnNewer, RecordNewer
	case x.OnQueued != nil && queued:
		return x.OnQueued, RecordQueued
	case x.OnBusy != nil:
		return x.OnBusy, RecordBusy
	}
	return nil, Nothing
}

func (c Claimer) takeUp(x idempotency.Claim, f Facts) (idempotency.Answer, Write) {
	r := f.Row
	switch {
	case r == nil || r.State == idempotency.Ended || r.Fence != x.Seen,
		r.State == idempotency.Running && !f.Marked:
		return idempotency.Answer{Verdict: idempotency.Taken}, Nothing
	case r.State == idempotency.Running && r.Cancel != "":
		return idempotency.Answer{Verdict: idempotency.Taken}, EndTold
	case r.State == idempotency.Waiting && r.Wake.After(c.Now):
		return idempotency.Answer{Verdict: idempotency.Early, Retry: r.Wake.Sub(c.Now)}, Nothing
	case x.Exclusive && f.Held != Free:
		return idempotency.Answer{Verdict: idempotency.Busy}, Nothing
	case r.State == idempotency.Running && !f.BootLives:
		return won(r, r.Crashes+1), TakeUp
	}
	return won(r, r.Crashes), TakeUp
}

// Told is how a run ends, and why, that is told to end and does not say how. Its attempts and text stay.
func Told(cancel string) (o idempotency.Outcome, reason string) {
	if cancel == idempotency.Overtaken {
		return idempotency.Skipped, cancel
	}
	return idempotency.Failed, cancel
}

// Heed is what becomes of a finish of a run with that Cancel: one that is told to end does not wait.
func Heed(f idempotency.Finish, cancel string) idempotency.Finish {
	if f.Outcome == idempotency.Wait && cancel != "" {
		f.Outcome, f.Reason = Told(cancel)
		f.Wake = time.Time{}
	}
	return f
}

// Late answers a finish of a run with its fence that is running no more, and became what state and outcome say. What is done by the
// record is done, and nothing else is.
func Late(f idempotency.Finish, state idempotency.State, outcome idempotency.Outcome) idempotency.FinishAnswer {
	done := state == idempotency.Ended && outcome == idempotency.Done
	switch {
	case done && f.Outcome != idempotency.Done:
		return idempotency.Completed
	case !done && f.Outcome == idempotency.Done:
		return idempotency.Fenced
	}
	return idempotency.Already
}

func won(r *Row, crashes int) idempotency.Answer {
	return idempotency.Answer{Verdict: idempotency.Won, Fence: r.Fence, Attempt: r.Attempt, Crashes: crashes, Payload: r.Payload}
}

func when(condition bool, w Write) Write {
	if condition {
		return w
	}
	return Nothing
}
