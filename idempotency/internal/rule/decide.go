package rule

import (
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// Wins reports whether a decision is won of the entry as it is now, provided that the session announced its hash. The
// limit is the store's now + tolerance.
func Wins(e idempotency.Entry, d idempotency.Decision, limit time.Time) bool {
	return e.Key == d.Seen.Key && e.Hash == d.Seen.Hash &&
		e.Opened.Equal(Instant(d.Seen.Opened)) &&
		e.PausedFrom.Equal(Instant(d.Seen.PausedFrom)) && e.PausedUntil.Equal(Instant(d.Seen.PausedUntil)) &&
		(Instant(d.Opened).Equal(e.Opened) || d.Opened.After(e.Opened) && !d.Opened.After(limit)) &&
		(d.Hash == e.Hash || d.Hash == e.InForce)
}

// Overlap is what a decision makes of its runs that have no row yet, oldest due first.
type Overlap struct {
	Claim     int  // so many of the first run
	Exclusive bool // those hold their key

	holder     time.Time // due of the run that holds the key; zero: none
	wait, idle idempotency.Finish
	overtake   bool
}

// Idle is what is written of a run that is not claimed: it waits, or is skipped. One that waits may overtake, as Claim.Overtake
// does; but nothing that its decision wrote, and no run of a newer due, for which it only waits.
func (o Overlap) Idle(due time.Time) (f idempotency.Finish, overtakes bool) {
	if due.Before(o.holder) {
		return o.wait, false
	}
	return o.idle, o.overtake
}

// Overlapping is for a decision about a job without keys. Holder is the due of the run of the key that is running exclusively, zero
// for none; queued says that one waits; neither was written by this decision. Queued is looked at where the key is held and the decision is OverlapQueue.
func Overlapping(d idempotency.Decision, holder time.Time, queued bool, now time.Time) Overlap {
	held := !holder.IsZero()
	wait := idempotency.Finish{Outcome: idempotency.Wait, Wake: now}
	o := Overlap{Claim: min(d.Claim, 1), Exclusive: true, holder: holder, wait: wait, idle: wait}
	switch {
	case held && d.CatchUp:
		o.Claim = 0
	case d.Overlap == idempotency.OverlapAllow:
		o.Claim, o.Exclusive = d.Claim, false
	case !held:
	case d.Overlap == idempotency.OverlapCancel:
		o.Claim, o.overtake = 0, true
	case d.Overlap == idempotency.OverlapQueue && !queued:
		o.Claim = 0
	default:
		o.Claim = 0
		o.idle = idempotency.Finish{Outcome: idempotency.Skipped, Reason: "overlap"}
	}
	return o
}

// Opened is up to where a declaration's entry is opened, by its own word; the limit is the store's now + tolerance.
func Opened(d idempotency.Declaration, now, limit time.Time) time.Time {
	if d.Opened.After(limit) {
		return now
	}
	return Instant(d.Opened)
}

// Redeclare is what a declaration makes of an entry that is there, with a range to record if missed is not nil. It
// changes nothing where the entry is returned as it was.
func Redeclare(e idempotency.Entry, d idempotency.Declaration, now, limit time.Time) (_ idempotency.Entry, missed *idempotency.Range) {
	was := e.Opened
	if opened := Opened(d, now, limit); (was.IsZero() || !e.Retired.IsZero()) && opened.After(was) {
		e.Opened, e.Next = opened, Instant(d.Next)
	}
	from := was.Add(time.Second).Truncate(time.Second) // a due at its old Opened was decided
	if !e.Retired.IsZero() && !was.IsZero() && !from.After(e.Opened) {
		missed = &idempotency.Range{Job: e.Job, From: from, To: e.Opened, Count: 1, Outcome: idempotency.Missed, Reason: Retired}
	}
	e.Retired = time.Time{}
	return e, missed
}

// RunKey is the key of the entry's runs, and what its partition comes from.
func RunKey(e idempotency.Entry) string {
	if e.Key != "" {
		return e.Key
	}
	return e.Job
}

// Instant is t as stores keep it: UTC, in whole microseconds.
func Instant(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC().Truncate(time.Microsecond)
}

// Ceil is the first whole second that is not before t: the first due at t or later.
func Ceil(t time.Time) time.Time {
	if s := t.Truncate(time.Second); !s.Before(t) {
		return s
	}
	return t.Truncate(time.Second).Add(time.Second)
}
