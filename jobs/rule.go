package jobs

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/belfry-go/belfry/jobs/internal/crontab"
)

// rule computes in Unix seconds, so that every due is a whole second of UTC. It
// is immutable. It is given instants within minUnix-1 and maxUnix+1, and may
// return others: those it passes on hold them to their bounds.
type rule interface {
	// next returns the first due later than after, or false for never.
	next(after int64) (int64, bool)
	// prev returns the last due earlier than before, or false for none.
	prev(before int64) (int64, bool)
	// has says whether t is a due. It never loops.
	has(t int64) bool
	// tally counts the dues in (from, to]. One that has to walk gives up after
	// about steps of them; until is how far it came, always later than from.
	tally(from, to int64, steps int) (n, until int64)
	// covers is told a due t of its own, and returns a span round it in which
	// every due of leaf is one of its own too; t alone where it knows none. It
	// never loops.
	covers(t int64, leaf rule) (from, to int64)
}

const aDay = 24 * 60 * 60

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
	r.phase = floorMod(int64(phase/time.Second), r.step)
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

func (r everyRule) has(t int64) bool { return floorMod(t-r.phase, r.step) == 0 }

func (r everyRule) tally(from, to int64, _ int) (n, until int64) {
	return floorDiv(to-r.phase, r.step) - floorDiv(from-r.phase, r.step), to
}

func (r everyRule) covers(t int64, leaf rule) (from, to int64) {
	if r.step == 1 {
		return minUnix, maxUnix
	}
	switch leaf := leaf.(type) {
	case everyRule:
		if leaf.step%r.step == 0 && r.has(leaf.phase) {
			return minUnix, maxUnix
		}
	case cronRule:
		if c, from, to := leaf.Clock(t, 0); r.shows(c) {
			return from, to
		}
	}
	return t, t
}

// shows says whether each of the times of day in UTC is a due on every day: one
// is, and all lie a multiple of the interval apart.
func (r everyRule) shows(c crontab.Clock) bool {
	second, minute, hour := bits.TrailingZeros64(c.Second), bits.TrailingZeros64(c.Minute), bits.TrailingZeros64(c.Hour)
	return aDay%r.step == 0 && r.has(int64(hour)*3600+int64(minute)*60+int64(second)) &&
		apartBy(r.step, c.Second, 1) && apartBy(r.step, c.Minute, 60) && apartBy(r.step, c.Hour, 3600)
}

// apartBy says whether all bits of a set are a multiple of step apart, where one bit is unit.
func apartBy(step int64, set uint64, unit int64) bool {
	first := int64(bits.TrailingZeros64(set))
	for ; set != 0; set &= set - 1 {
		if (int64(bits.TrailingZeros64(set))-first)*unit%step != 0 {
			return false
		}
	}
	return true
}

// clock is the times of day that a wall clock of this offset can show at the dues.
func (r everyRule) clock(offset int64) crontab.Clock {
	c, at := crontab.AnyClock, floorMod(r.phase+offset, aDay)
	c.Second = each(at%60, gcd(r.step, 60), 60)
	if r.step%60 == 0 {
		c.Minute = each(at/60%60, gcd(r.step/60, 60), 60)
	}
	if r.step%(60*60) == 0 {
		c.Hour = each(at/(60*60), gcd(r.step/(60*60), 24), 24)
	}
	return c
}

// each is the numbers below width that are at modulo step, as bits.
func each(at, step, width int64) (set uint64) {
	for n := at % step; n < width; n += step {
		set |= 1 << n
	}
	return set
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

func (r atRule) has(t int64) bool {
	_, found := slices.BinarySearch(r, t)
	return found
}

func (r atRule) tally(from, to int64, _ int) (n, until int64) {
	i, _ := slices.BinarySearch(r, from+1)
	j, _ := slices.BinarySearch(r, to+1)
	return int64(j - i), to
}

func (r atRule) covers(t int64, _ rule) (from, to int64) { return t, t }

func (r atRule) String() string {
	text := make([]string, len(r))
	for i, sec := range r {
		text[i] = written(sec)
	}
	return strings.Join(text, ",")
}

// noRule has no dues.
type noRule struct{}

func (noRule) next(int64) (int64, bool)                  { return 0, false }
func (noRule) prev(int64) (int64, bool)                  { return 0, false }
func (noRule) has(int64) bool                            { return false }
func (noRule) tally(_, to int64, _ int) (n, until int64) { return 0, to }
func (noRule) covers(t int64, _ rule) (from, to int64)   { return t, t }

// manualRule is Manual's.
type manualRule struct{ noRule }

// hashedRule is a crontab line with an H, which has no dues before For has said
// what to hash.
type hashedRule struct {
	noRule
	line cronRule
}

func (r cronRule) has(t int64) bool { return r.Has(t) }

func (r cronRule) tally(from, to int64, _ int) (n, until int64) { return r.Count(from, to), to }

func (r cronRule) covers(t int64, leaf rule) (from, to int64) {
	if c, ok := leaf.(cronRule); ok && c.Rule == r.Rule {
		return minUnix, maxUnix
	}
	return r.Span(t, times(leaf, t))
}

// times is what a wall clock can show at the dues of a leaf round t.
func times(leaf rule, t int64) crontab.Times {
	return func(offset int64) (c crontab.Clock, from, to int64) {
		switch leaf := leaf.(type) {
		case everyRule:
			return leaf.clock(offset), minUnix, maxUnix
		case cronRule:
			return leaf.Clock(t, offset)
		}
		return crontab.AnyClock, minUnix, maxUnix
	}
}

// apart is a span round t, not a due of both leaves, without one that is; t alone
// where nothing is known.
func apart(a, b rule, t int64) (from, to int64) {
	line, ok := a.(cronRule)
	if !ok {
		a, b = b, a
		line, ok = a.(cronRule)
	}
	if ok {
		return line.Apart(t, times(b, t))
	}
	one, ok := a.(everyRule)
	two, both := b.(everyRule)
	if ok && both && (one.phase-two.phase)%gcd(one.step, two.step) != 0 {
		return minUnix, maxUnix
	}
	return t, t
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// written is the instant as schedules write it.
func written(sec int64) string { return time.Unix(sec, 0).UTC().Format(time.RFC3339) }

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

// floorMod is what floorDiv leaves: never negative.
func floorMod(a, b int64) int64 { return a - floorDiv(a, b)*b }
