package rule

import (
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// MaxWhy is the most bytes that a leader's Why has: a replica's name, and how that one resigned.
const MaxWhy = 255 + len(": ") + len(resigned) + len(": ") + 255

const (
	nobodyLed    = "nobody led before"
	sessionEnded = "its session ended"
	higherTerm   = "a higher term"
	resigned     = "resigned"
)

// Leading is a namespace's row of who leads, with the session that it names; the zero Leading is that of one without.
type Leading struct {
	Term    int64
	Session int64
	Since   time.Time
	Until   time.Time // when it resigned; zero: it has not
	Why     string    // of the beginning, or where it resigned, of that

	// Of the session.
	Replica         string
	Expires, Marked time.Time
}

// ended reports whether the leader has not resigned, but its session is not live.
func (l Leading) ended(now time.Time) bool {
	return l.Term > 0 && l.Until.IsZero() && (!l.Marked.IsZero() || !now.Before(l.Expires))
}

// Leader is who leads or led last, to those who ask at the store's now.
func (l Leading) Leader(now time.Time) idempotency.Leader {
	x := idempotency.Leader{Term: l.Term, Session: l.Session, Replica: l.Replica, Since: l.Since, Until: l.Until, Why: l.Why}
	if l.ended(now) {
		x.Until, x.Why = l.Expires, sessionEnded
		if !l.Marked.IsZero() && l.Marked.Before(l.Expires) {
			x.Until = l.Marked
		}
	}
	return x
}

// Resigns reports whether a session's resignation of a term ends anything.
func (l Leading) Resigns(session, term int64, now time.Time) bool {
	return l.Session == session && l.Term == term && l.Until.IsZero() && !l.ended(now)
}

// Resigned is the Why of a leader that resigned.
func Resigned(why string) string {
	if why == "" {
		return resigned
	}
	return resigned + ": " + why
}

// Succession is what a call of Lead writes.
type Succession struct {
	Leads bool   // the caller's session, from now on, in the call's term or a new fence; else nothing is written
	Why   string // of the new leader
	Mark  bool   // the session of the one before is marked dead
}

// Succeed judges a call of Lead, with its term, by the row.
func (l Leading) Succeed(term int64, now time.Time) Succession {
	last := l.Leader(now)
	switch {
	case l.Term == 0:
		return Succession{Leads: true, Why: nobodyLed}
	case !last.Until.IsZero():
		return Succession{Leads: true, Why: l.Replica + ": " + last.Why, Mark: l.Until.IsZero() && l.Marked.IsZero()}
	case term > l.Term:
		return Succession{Leads: true, Why: l.Replica + ": " + higherTerm}
	}
	return Succession{}
}
