package jobs

import "time"

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
