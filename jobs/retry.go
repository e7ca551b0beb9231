package jobs

import (
	"errors"
	"fmt"
	"time"
)

// Defaults of Retry.
const (
	DefaultAttempts = 3
	DefaultFirst    = time.Second
	DefaultMax      = 5 * time.Minute
)

// Retry says how often a failed attempt is repeated and how long to wait before:
// exponential back-off with full jitter (a uniform share of a limit that doubles
// with each attempt), so that keys which failed together do not return together.
type Retry struct {
	// Attempts counts tries in all, the first one included. 0: DefaultAttempts;
	// negative: one attempt, no retry.
	Attempts int
	// First is the limit of the first wait. 0: DefaultFirst.
	First time.Duration
	// Max caps the limit. 0: DefaultMax, or First where that is longer.
	Max time.Duration
}

// WithDefaults returns a copy with the defaults filled in and a negative
// Attempts made 1.
func (r Retry) WithDefaults() Retry {
	if r.Attempts == 0 {
		r.Attempts = DefaultAttempts
	}
	r.Attempts = max(r.Attempts, 1)
	if r.First == 0 {
		r.First = DefaultFirst
	}
	if r.Max == 0 {
		r.Max = max(DefaultMax, r.First)
	}
	return r
}

// Delay is the wait after the attempt-th try has failed (1 for the first one):
// u x min(Max, First x 2^(attempt-1)), with defaults applied. u is the caller's
// random number in [0, 1), which keeps the function pure.
func (r Retry) Delay(attempt int, u float64) time.Duration {
	r = r.WithDefaults()
	limit := r.First
	for i := 1; i < attempt && limit < r.Max; i++ {
		// Doubling past Max/2 would overflow for a huge Max.
		if limit > r.Max/2 {
			limit = r.Max
			break
		}
		limit *= 2
	}
	return time.Duration(u * float64(min(limit, r.Max)))
}

func (r Retry) check() error {
	switch {
	case r.First < 0:
		return fmt.Errorf("retry: first wait %v is negative; for no retry set Attempts to -1", r.First)
	case r.Max < 0:
		return fmt.Errorf("retry: longest wait %v is negative; leave Max 0 for %v", r.Max, DefaultMax)
	case r.Max > 0 && r.Max < r.WithDefaults().First:
		return fmt.Errorf("retry: longest wait %v is shorter than the first, %v; raise Max or lower First",
			r.Max, r.WithDefaults().First)
	}
	return nil
}

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

// Permanent marks an error that trying again cannot mend: the run fails at once,
// whatever Retry says. The text stays err's own, and errors.Is and errors.As
// see through it. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

// IsPermanent reports whether err, or any error it wraps, came from Permanent.
func IsPermanent(err error) bool {
	var p *permanentError
	return errors.As(err, &p)
}

type retryAfterError struct {
	err   error
	after time.Duration
}

func (e *retryAfterError) Error() string { return e.err.Error() }
func (e *retryAfterError) Unwrap() error { return e.err }

// RetryAfter marks an error with when to try again, such as what a receiver asked for by Retry-After: the next attempt, if
// one is left, starts d later instead of after Retry's wait. A negative d is 0. The text stays err's own, and
// errors.Is and errors.As see through it. RetryAfter(d, nil) is nil.
func RetryAfter(d time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return &retryAfterError{err, max(d, 0)}
}

// RetryDelay is the wait that err asks for, if it or any error it wraps came from RetryAfter.
func RetryDelay(err error) (d time.Duration, ok bool) {
	var r *retryAfterError
	if !errors.As(err, &r) {
		return 0, false
	}
	return r.after, true
}

type skipError struct{ reason string }

func (e *skipError) Error() string { return "skipped: " + e.reason }

// Skip is returned by a handler that found nothing to do, such as a customer who has left: the run is recorded
// as skipped (handler), with the reason as its text, and not tried again.
func Skip(reason string) error { return &skipError{reason} }

// SkipReason is the reason of err, if it or any error it wraps came from Skip.
func SkipReason(err error) (reason string, ok bool) {
	var s *skipError
	if !errors.As(err, &s) {
		return "", false
	}
	return s.reason, true
}
