package jobs

import (
	"math/bits"
	"time"

	"github.com/robfig/cron/v3"
)

const (
	day = 24 * 60 * 60
	// star marks, in a day field's bits, that the field was * or ?.
	star = 1 << 63
	// neverAfter bounds the search for a first match: the longest wait is for 29
	// February across a year such as 2100, eight years.
	neverAfter = 9 * 366 * day
)

// cronRule walks the zone's stretches of constant offset. Within one, the wall
// clock is plain arithmetic; only at its seams can a reading be missing or be
// there twice. Each step moves to a later stretch, so nothing can loop.
type cronRule struct {
	second, minute, hour, dom, month, dow uint64

	zone    string // as in the text; "" for none
	loc     *time.Location
	elapsed bool // fires in both passes of a repeated hour, and makes nothing up
}

func newCronRule(s *cron.SpecSchedule) *cronRule {
	const all = ^uint64(star)
	return &cronRule{
		second: s.Second & all, minute: s.Minute & all, hour: s.Hour & all, month: s.Month & all,
		dom: s.Dom, dow: s.Dow,
	}
}

func (r *cronRule) next(after int64) (int64, bool) {
	for t := after + 1; t <= maxUnix; {
		at := time.Unix(t, 0).In(r.loc)
		_, offset := at.Zone()
		begin, end := at.ZoneBounds()
		limit := int64(maxUnix) + 1
		if !end.IsZero() {
			limit = min(limit, end.Unix())
		}
		if limit <= t {
			// Past a zone's last listed change Go (1.26) ends the stretches of a leap
			// year a day early, on 31 December, where no clock changes.
			limit = (floorDiv(t, day) + 1) * day
		}
		from := t + int64(offset)
		if !r.elapsed && !begin.IsZero() {
			_, before := begin.Add(-time.Second).Zone()
			was := begin.Unix() + int64(before) // what the wall would have shown at begin
			is := begin.Unix() + int64(offset)
			if t <= begin.Unix() {
				if _, jumped := r.reading(was, is); jumped {
					return begin.Unix(), true
				}
			}
			from = max(from, was) // readings below were there in the pass before
		}
		if w, ok := r.reading(from, limit+int64(offset)); ok {
			return w - int64(offset), true
		}
		t = limit
	}
	return 0, false
}

// reading finds the first matching wall clock in [from, limit), both and the
// result in seconds as if the wall were UTC.
func (r *cronRule) reading(from, limit int64) (int64, bool) {
	if from >= limit {
		return 0, false
	}
	date := floorDiv(from, day)
	clock, ok := r.clock(from - date*day)
	if !ok {
		date++
		clock, _ = r.clock(0)
	}
	date, ok = r.date(date, floorDiv(limit-1, day))
	if ok && date*day > from {
		clock, _ = r.clock(0) // a later date begins at its first clock
	}
	at := date*day + clock
	return at, ok && at < limit
}

// date finds the first matching day in [from, last], in days since 1970.
func (r *cronRule) date(from, last int64) (int64, bool) {
	y, m, d := time.Unix(from*day, 0).UTC().Date()
	for from <= last {
		length := daysIn(y, m)
		if r.month&(1<<m) != 0 {
			for ; d <= length; d, from = d+1, from+1 {
				if r.matches(d, from) {
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
func (r *cronRule) matches(d int, date int64) bool {
	weekday := date + 4 // 1 January 1970 was a Thursday
	weekday -= floorDiv(weekday, 7) * 7
	dom, dow := r.dom&(1<<d) != 0, r.dow&(1<<weekday) != 0
	if (r.dom|r.dow)&star != 0 {
		return dom && dow
	}
	return dom || dow
}

// clock finds the first matching time of day at or after from, in seconds of
// the day.
func (r *cronRule) clock(from int64) (int64, bool) {
	h, m, s := uint(from/3600), uint(from/60%60), uint(from%60)
	if hour, ok := above(r.hour, h); !ok {
		return 0, false
	} else if hour > h {
		h, m, s = hour, 0, 0
	}
	sec, ok := above(r.second, s)
	if !ok {
		m++
		sec, _ = above(r.second, 0)
	}
	minute, ok := above(r.minute, m)
	if !ok {
		if h, ok = above(r.hour, h+1); !ok {
			return 0, false
		}
		minute, _ = above(r.minute, 0)
		sec, _ = above(r.second, 0)
	} else if minute > m {
		sec, _ = above(r.second, 0)
	}
	return int64(h*3600 + minute*60 + sec), true
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
