package jobs

import (
	"fmt"
	"time"
)

// customRule is the user's function. It is asked from a whole second, which
// gives every replica the same question.
type customRule func(time.Time) time.Time

func (r customRule) next(after int64) (next int64, ok bool) {
	// It is called on the loop that keeps a replica's lease: a panic of it there would take all replicas down.
	defer func() {
		if recover() != nil {
			next, ok = 0, false
		}
	}()
	t := r(time.Unix(after, 0).UTC())
	if t.IsZero() {
		return 0, false
	}
	sec := t.Unix()
	if t.Nanosecond() > 0 {
		sec++
	}
	return sec, sec > after && sec <= maxUnix
}

// checkedFrom is what check asks: a fixed instant, so that a job that was in order
// once is so for good, and of a year that every calendar in use should know.
var checkedFrom = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// check says what would count as never and cannot be meant so.
func (r customRule) check() (err error) {
	const advice = "return the first instant later than the one asked for, whatever that is, or the zero time for never"
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("its function panics when asked for what comes after %s (%.80q); %s", written(checkedFrom.Unix()), fmt.Sprint(p), advice)
		}
	}()
	if t := r(checkedFrom); !t.IsZero() && !t.After(checkedFrom) {
		return fmt.Errorf("its function answers %s when asked for what comes after %s; %s", t.Format(time.RFC3339Nano), written(checkedFrom.Unix()), advice)
	}
	return nil
}

// customFaults is what is wrong with the calendars of a schedule.
func (s Schedule) customFaults() (errs []error) {
	if s.fault() != nil {
		return nil
	}
	s.mapped(func(leaf Schedule) Schedule {
		if r, ok := leaf.c.rule.(customRule); ok {
			if err := r.check(); err != nil {
				errs = append(errs, broken(leaf.c.text, err).fault())
			}
		}
		return leaf
	})
	return errs
}

// prev asks forward, since a calendar can only be asked so. What follows an
// instant is before the limit exactly for the instants before the due that is
// sought, so it halves its way there: some 60 questions, however dense or far the dues.
func (r customRule) prev(before int64) (int64, bool) {
	low, last, found := before, int64(0), false
	for span := int64(1); !found; span *= 4 {
		if low < minUnix {
			return 0, false
		}
		low = max(before-1-span, minUnix-1)
		last, found = r.between(low, before)
	}
	for high := before - 1; last < high; { // the due sought is in [last, high]
		middle := last + (high-last)/2
		if t, ok := r.between(middle, before); ok {
			last = t
		} else {
			high = middle
		}
	}
	return last, true
}

// between is the first due in (after, before).
func (r customRule) between(after, before int64) (int64, bool) {
	t, ok := r.next(after)
	return t, ok && t < before
}

func (r customRule) has(t int64) bool {
	next, ok := r.next(t - 1)
	return ok && next == t
}

func (r customRule) tally(from, to int64, steps int) (n, until int64) {
	for t, ok := r.next(from); ok && t <= to; t, ok = r.next(t) {
		if n++; n >= int64(steps) {
			return n, t
		}
	}
	return n, to
}

func (r customRule) covers(t int64, _ rule) (from, to int64) { return t, t }
