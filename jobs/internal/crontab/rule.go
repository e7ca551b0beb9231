package crontab

import (
	"math"
	"time"

	"github.com/belfry-go/belfry/jobs/internal/zone"
)

// The instants asked for and returned: years 1 to 9999.
const (
	minUnix = -62135596800
	maxUnix = 253402300799
)

// far is more than any clock was ever set back or forward at once, a day, and
// less than any zone's offset ever lasted.
const far = 2 * day

// Rule is a spec in a zone. It walks the zone's stretches of constant offset.
// Within one, the wall clock is plain arithmetic; only at its seams can a reading
// be missing or be there twice. Each step moves on to another stretch, so nothing can
// loop. That of a hashed spec has no dues.
type Rule struct {
	*Spec
	zone *zone.Zone
}

// Location is the zone as package time has it.
func (r *Rule) Location() *time.Location { return r.zone.Location() }

// Next is the first due later than after, in Unix seconds; false is never.
func (r *Rule) Next(after int64) (int64, bool) {
	if after >= maxUnix || r.hashed {
		return 0, false
	}
	for t := max(after+1, minUnix); t <= maxUnix; {
		s := r.zone.At(t)
		if t == s.Begin && r.jumped(&s) {
			return t, true
		}
		due := r.first(max(t+s.Offset, r.floor(&s))) - s.Offset
		if due < s.End {
			return due, due <= maxUnix
		}
		// No reading before due's matches, so none can be missing or be there twice
		// before it, but for a seam so near that it repeats what was before t.
		if s.End-t > 2*far {
			t = max(s.End, due-far)
		} else {
			t = s.End
		}
	}
	return 0, false
}

// Prev is the last due earlier than before; false is never. It is Next's mirror.
func (r *Rule) Prev(before int64) (int64, bool) {
	if before <= minUnix || r.hashed {
		return 0, false
	}
	for t := min(before-1, maxUnix); t >= minUnix; {
		s := r.zone.At(t)
		due := r.last(t+s.Offset) - s.Offset
		if due >= s.Begin && due+s.Offset >= r.floor(&s) {
			return due, due >= minUnix
		}
		if r.jumped(&s) {
			return s.Begin, true
		}
		if t-s.Begin > 2*far {
			t = min(s.Begin-1, due+far)
		} else {
			t = s.Begin - 1
		}
	}
	return 0, false
}

// Count is the number of dues in (from, to]. It costs a few operations for each
// month and each change of the zone's clock.
func (r *Rule) Count(from, to int64) (n int64) {
	if from >= to || from >= maxUnix || r.hashed {
		return 0
	}
	to = min(to, maxUnix)
	for t := max(from+1, minUnix); t <= to; {
		s := r.zone.At(t)
		end := min(s.End, to+1)
		if lowest := max(t+s.Offset, r.floor(&s)); lowest < end+s.Offset {
			n += r.count(lowest, end+s.Offset)
		}
		if t == s.Begin && r.jumped(&s) && !r.shows(t+s.Offset) {
			n++
		}
		t = end
	}
	return n
}

// Has says whether t is a due.
func (r *Rule) Has(t int64) bool {
	if t < minUnix || t > maxUnix || r.hashed {
		return false
	}
	s := r.zone.At(t)
	reading := t + s.Offset
	return reading >= r.floor(&s) && r.shows(reading) || t == s.Begin && r.jumped(&s)
}

// shows says whether a reading matches.
func (r *Rule) shows(reading int64) bool { return r.first(reading) == reading }

// floor is the lowest reading of a stretch that may fire: those below were there
// before the clock was set back to them.
func (r *Rule) floor(s *zone.Stretch) int64 {
	if r.elapsed || s.Begin < minUnix {
		return math.MinInt64
	}
	return s.Begin + s.Before
}

// jumped says whether the clock jumped over a matching reading where a stretch
// begins.
func (r *Rule) jumped(s *zone.Stretch) bool {
	if r.elapsed || s.Begin < minUnix || s.Before >= s.Offset {
		return false
	}
	return r.first(s.Begin+s.Before) < s.Begin+s.Offset
}
