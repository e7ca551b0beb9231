package crontab

import "github.com/belfry-go/belfry/jobs/internal/zone"

// Clock is a set of times of day, as bits of what its seconds, minutes and hours can be.
type Clock struct{ Second, Minute, Hour uint64 }

// AnyClock is every time of day.
var AnyClock = Clock{Second: 1<<60 - 1, Minute: 1<<60 - 1, Hour: 1<<24 - 1}

// Clock is what a wall clock of the given offset from UTC can show at the rule's
// dues in [from, to], a span round t in which the offset of its own clock stays.
func (r *Rule) Clock(t, offset int64) (c Clock, from, to int64) {
	s := r.zone.At(t)
	from, to = inside(&s)
	c = AnyClock
	if t < from {
		return c, t, t // it may stand for any reading
	}
	ahead := offset - s.Offset
	if ahead%60 == 0 {
		c.Second, c.Minute = r.second, turned(r.minute, ahead/60, 60)
	}
	if ahead%(60*60) == 0 {
		c.Hour = turned(r.hour, ahead/(60*60), 24)
	}
	return c, from, to
}

// inside is a stretch without the instant at which it begins.
func inside(s *zone.Stretch) (from, to int64) {
	return max(s.Begin, minUnix-1) + 1, min(s.End-1, maxUnix)
}

// turned moves the lowest width bits round by n, of any sign.
func turned(bits uint64, n, width int64) uint64 {
	n = (n%width + width) % width
	return (bits<<n | bits>>(width-n)) & (1<<width - 1)
}

// Times says what a wall clock of the given offset from UTC can show at certain
// instants of [from, to].
type Times func(offset int64) (c Clock, from, to int64)

// Span is told a due t of the rule, and returns a span round it, both ends
// included, in which each of the instants that times speaks of is a due as well.
// The span never leaves t's stretch of constant offset.
func (r *Rule) Span(t int64, times Times) (from, to int64) {
	s := r.zone.At(t)
	from, to = inside(&s)
	if t < from {
		return t, t // it may stand for a reading that was jumped over
	}
	from = max(from+s.Offset, r.floor(&s)) - s.Offset
	c, first, last := times(s.Offset)
	from, to = max(from, first), min(to, last)
	unit := int64(day)
	switch {
	case c.Second&^r.second != 0:
		return t, t
	case c.Minute&^r.minute != 0:
		unit = 60
	case c.Hour&^r.hour != 0:
		unit = 60 * 60
	case r.everyDay():
		return from, to
	}
	begin := t - (t+s.Offset+epoch)%unit
	return max(from, begin), min(to, begin+unit-1)
}

// Apart is the opposite: a span round an instant t that is no due, in which none
// of the instants that times speaks of is one.
func (r *Rule) Apart(t int64, times Times) (from, to int64) {
	s := r.zone.At(t)
	from, to = inside(&s)
	if t < from {
		return t, t
	}
	c, first, last := times(s.Offset)
	if c.Second&r.second != 0 && c.Minute&r.minute != 0 && c.Hour&r.hour != 0 {
		return t, t
	}
	return max(from, first), min(to, last)
}

// everyDay says whether the line names every date.
func (s *Spec) everyDay() bool {
	if s.months != allMonths {
		return false
	}
	for length := range s.days {
		for _, days := range s.days[length] {
			if days != allOf(uint(length+28)) {
				return false
			}
		}
	}
	return true
}

const allMonths = 1<<13 - 1<<1

// Offset is that of the rule's clock from UTC.
func (r *Rule) Offset(t int64) int64 { return r.zone.At(t).Offset }

// Set is what has its times of day on each date of a span, both ends included.
type Set struct {
	Clock
	From, To int64
}

// Set is the rule's dues round t, as a wall clock of the given offset shows them.
// It reports false where that is not the rule's own clock, or its line does not
// name the date. The span never leaves t's stretch of constant offset. It may skip
// dates on which of has no dues, if that is not nil: t is one of these.
func (r *Rule) Set(t, offset int64, of *Rule) (set Set, ok bool) {
	s := r.zone.At(t)
	from, to := inside(&s)
	if s.Offset != offset || t < from || t+offset < r.floor(&s) || r.hashed {
		return set, false
	}
	from = max(from+offset, r.floor(&s)) - offset
	if !r.everyDay() && (of == nil || of.zone != r.zone || !r.names(of.Spec)) {
		date := (t + offset + epoch) / day
		first, last, ok := r.run(uint32(date))
		if !ok {
			return set, false
		}
		begin := t - (t+offset+epoch)%day
		from, to = max(from, begin-int64(first)*day), min(to, begin+int64(last+1)*day-1)
	}
	return Set{Clock{r.second, r.minute, r.hour}, from, to}, true
}

// names says whether the line names each date that another does.
func (s *Spec) names(other *Spec) bool {
	if other.months&^s.months != 0 {
		return false
	}
	for length := range s.days {
		for first, days := range s.days[length] {
			if other.days[length][first]&^days != 0 {
				return false
			}
		}
	}
	return true
}

// run is how many days before and after a date of the same month the line names too, all
// between as well; false where it does not name the date.
func (s *Spec) run(date uint32) (before, after uint32, ok bool) {
	y, m, d := civil(date)
	days := s.daysOf(y, m, firstOf(y, m))
	if days>>d&1 == 0 {
		return 0, 0, false
	}
	for days>>(d-before-1)&1 != 0 {
		before++
	}
	for days>>(d+after+1)&1 != 0 {
		after++
	}
	return before, after, true
}

// Within says whether the others together have all of the set's times of day,
// and narrows its span to that in which they do. Each step of it is one of tests.
func (c *Set) Within(others []Set, tests *int) bool {
	if c.Second == 0 || c.Minute == 0 || c.Hour == 0 {
		return true
	}
	for i, o := range others {
		if *tests--; *tests < 0 {
			return false
		}
		second, minute, hour := c.Second&o.Second, c.Minute&o.Minute, c.Hour&o.Hour
		if second == 0 || minute == 0 || hour == 0 {
			continue
		}
		c.From, c.To = max(c.From, o.From), min(c.To, o.To)
		for _, left := range []Clock{
			{c.Second &^ second, c.Minute, c.Hour}, {second, c.Minute &^ minute, c.Hour}, {second, minute, c.Hour &^ hour},
		} {
			rest := Set{left, c.From, c.To}
			if !rest.Within(others[i+1:], tests) {
				return false
			}
			c.From, c.To = rest.From, rest.To
		}
		return true
	}
	return false
}
