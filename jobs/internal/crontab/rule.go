package crontab

import (
	"math/bits"
	"time"

	"github.com/belfry-go/belfry/jobs/internal/zone"
)

const (
	day = 24 * 60 * 60
	// star marks, in a day field's bits, that the field was * or ?.
	star = 1 << 63
	// neverAfter bounds the search for a first match: the longest wait is for 29
	// February across a year such as 2100, eight years.
	neverAfter = 9 * 366 * day
)

// The instants asked for and returned: years 1 to 9999.
const (
	minUnix = -62135596800
	maxUnix = 253402300799
)

// Rule is a spec in a zone. It walks the zone's stretches of constant offset.
// Within one, the wall clock is plain arithmetic; only at its seams can a reading
// be missing or be there twice. Each step moves to a later stretch, so nothing can loop.
type Rule struct {
	*Spec
	zone *zone.Zone
}

// Next is the first due later than after, in Unix seconds; false is never.
func (r *Rule) Next(after int64) (int64, bool) {
	for t := after + 1; t <= maxUnix; {
		s := r.zone.At(t)
		limit := min(maxUnix+1, s.End)
		from := t + s.Offset
		if !r.elapsed && s.Begin > minUnix {
			was, is := s.Begin+s.Before, s.Begin+s.Offset // what the wall would have shown at Begin, and what it shows
			if t <= s.Begin {
				if _, jumped := r.reading(was, is); jumped {
					return s.Begin, true
				}
			}
			from = max(from, was) // readings below were there in the pass before
		}
		if w, ok := r.reading(from, limit+s.Offset); ok {
			return w - s.Offset, true
		}
		t = limit
	}
	return 0, false
}

// Prev is the last due earlier than before; false is never.
func (r *Rule) Prev(before int64) (int64, bool) {
	for span := int64(day); ; span *= 4 {
		from := max(before-span, minUnix-1)
		last, found := int64(0), false
		for t, ok := r.Next(from); ok && t < before; t, ok = r.Next(t) {
			last, found = t, true
		}
		if found || from < minUnix {
			return last, found
		}
	}
}

// Count is the number of dues in (from, to].
func (r *Rule) Count(from, to int64) (n int64) {
	for t, ok := r.Next(from); ok && t <= to; t, ok = r.Next(t) {
		n++
	}
	return n
}

// Has says whether t is a due.
func (r *Rule) Has(t int64) bool {
	next, ok := r.Next(t - 1)
	return ok && next == t
}

// reading finds the first matching wall clock in [from, limit), both and the
// result in seconds as if the wall were UTC.
func (s *Spec) reading(from, limit int64) (int64, bool) {
	if from >= limit {
		return 0, false
	}
	date := floorDiv(from, day)
	clock, ok := s.clock(from - date*day)
	if !ok {
		date++
		clock, _ = s.clock(0)
	}
	date, ok = s.date(date, floorDiv(limit-1, day))
	if ok && date*day > from {
		clock, _ = s.clock(0) // a later date begins at its first clock
	}
	at := date*day + clock
	return at, ok && at < limit
}

// date finds the first matching day in [from, last], in days since 1970.
func (s *Spec) date(from, last int64) (int64, bool) {
	y, m, d := time.Unix(from*day, 0).UTC().Date()
	for from <= last {
		length := daysIn(y, m)
		if s.month&(1<<m) != 0 {
			for ; d <= length; d, from = d+1, from+1 {
				if s.matches(d, from) {
					return from, from <= last
				}
			}
		}
		from += int64(length - d + 1)
		if d, m = 1, m+1; m > time.December {
			m, y = time.January, y+1
		}
	}
	return 0, false
}

// matches is the crontab rule: either day field may match where both are
// restricted, else both must.
func (s *Spec) matches(d int, date int64) bool {
	weekday := date + 4 // 1 January 1970 was a Thursday
	weekday -= floorDiv(weekday, 7) * 7
	dom, dow := s.dom&(1<<d) != 0, s.dow&(1<<weekday) != 0
	if (s.dom|s.dow)&star != 0 {
		return dom && dow
	}
	return dom || dow
}

// clock finds the first matching time of day at or after from, in seconds of
// the day.
func (s *Spec) clock(from int64) (int64, bool) {
	h, m, sec := uint(from/3600), uint(from/60%60), uint(from%60)
	if hour, ok := above(s.hour, h); !ok {
		return 0, false
	} else if hour > h {
		h, m, sec = hour, 0, 0
	}
	second, ok := above(s.second, sec)
	if !ok {
		m++
		second, _ = above(s.second, 0)
	}
	minute, ok := above(s.minute, m)
	if !ok {
		if h, ok = above(s.hour, h+1); !ok {
			return 0, false
		}
		minute, _ = above(s.minute, 0)
		second, _ = above(s.second, 0)
	} else if minute > m {
		second, _ = above(s.second, 0)
	}
	return int64(h*3600 + minute*60 + second), true
}

// above finds the lowest set bit at or above i.
func above(set uint64, i uint) (uint, bool) {
	set = set >> i << i
	return uint(bits.TrailingZeros64(set)), set != 0
}

func daysIn(y int, m time.Month) int {
	switch m {
	case time.February:
		if y%4 == 0 && (y%100 != 0 || y%400 == 0) {
			return 29
		}
		return 28
	case time.April, time.June, time.September, time.November:
		return 30
	}
	return 31
}

// floorDiv rounds towards the past, also before 1970.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
