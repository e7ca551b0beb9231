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
