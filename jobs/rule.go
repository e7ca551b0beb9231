package jobs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// everyRule fires at every instant that is phase modulo step.
type everyRule struct{ step, phase int64 } // seconds; 0 <= phase < step

func newEvery(d, phase time.Duration) Schedule {
	text := "@every " + shortDuration(d)
	if d < time.Second || d%time.Second != 0 {
		return broken(text, errors.New("the interval must be whole seconds, at least 1s"))
	}
	if phase%time.Second != 0 {
		return broken(text, fmt.Errorf("phase %v must be whole seconds", phase))
	}
	r := everyRule{step: int64(d / time.Second)}
	if r.phase = int64(phase/time.Second) % r.step; r.phase < 0 {
		r.phase += r.step
	}
	if r.phase > 0 {
		text += " phase " + shortDuration(time.Duration(r.phase)*time.Second)
	}
	return intern(text, func() rule { return r })
}

func (r everyRule) next(after int64) (int64, bool) {
	return (floorDiv(after-r.phase, r.step)+1)*r.step + r.phase, true
}

func (r everyRule) prev(before int64) (int64, bool) {
	return floorDiv(before-1-r.phase, r.step)*r.step + r.phase, true
}

// count is the number of instants in (from, to], by the same bounds as next.
func (r everyRule) count(from, to int64) int64 {
	from, to = min(max(from, minUnix-1), maxUnix), min(max(to, minUnix-1), maxUnix)
	return max(0, floorDiv(to-r.phase, r.step)-floorDiv(from-r.phase, r.step))
}

// atRule is a sorted list of instants.
type atRule []int64

func (r atRule) next(after int64) (int64, bool) {
	i, _ := slices.BinarySearch(r, after+1)
	if i == len(r) {
		return 0, false
	}
	return r[i], true
}

func (r atRule) prev(before int64) (int64, bool) {
	i, _ := slices.BinarySearch(r, before)
	if i == 0 {
		return 0, false
	}
	return r[i-1], true
}

func (r atRule) String() string {
	text := make([]string, len(r))
	for i, sec := range r {
		text[i] = time.Unix(sec, 0).UTC().Format(time.RFC3339)
	}
	return strings.Join(text, ",")
}

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
	return sec, true // not later than after: refused by the caller
}

// prev walks: a calendar can only be asked for what follows.
func (r customRule) prev(before int64) (int64, bool) {
	for span := int64(24 * 60 * 60); ; span *= 4 {
		from := max(before-span, minUnix-1)
		last, found := int64(0), false
		for t, ok := r.next(from); ok && t > last && t < before; t, ok = r.next(t) {
			last, found = t, true
		}
		if found || from < minUnix {
			return last, found
		}
	}
}

// shortDuration writes 1h30m where time.Duration writes 1h30m0s.
func shortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// floorDiv rounds towards the past, also before 1970.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
