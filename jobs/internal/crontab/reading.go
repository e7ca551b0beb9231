package crontab

import "math/bits"

// A reading is what the wall shows, in seconds as if the wall were at UTC.
// Those of the years 0 and 10000 belong to instants of the years 1 and 9999.
const (
	minYear = 0
	maxYear = 10000
	never   = maxUnix + 400*day // beyond all readings; its negative is before all
)

// daysOf are the matching days of the month that begins at date first.
func (s *Spec) daysOf(y, m, first uint32) uint32 {
	if s.months>>m&1 == 0 {
		return 0
	}
	return s.days[daysIn(y, m)-28][weekday(first)]
}

// first is the first matching reading at or after from.
func (s *Spec) first(from int64) int64 {
	n := uint64(from + epoch)
	date, clock := uint32(n/day), uint32(n%day)
	clock, ok := s.firstClock(clock)
	if !ok {
		date++
		clock = s.opens
	}
	y, m, d := civil(date)
	start := date - d + 1
	days := s.daysOf(y, m, start) >> d << d
	for days == 0 {
		if later := s.months >> (m + 1); later != 0 {
			m += 1 + uint32(bits.TrailingZeros32(later))
		} else if y, m = y+1, uint32(bits.TrailingZeros32(s.months)); y > maxYear {
			return never
		}
		start = firstOf(y, m)
		days = s.daysOf(y, m, start)
	}
	found := start + uint32(bits.TrailingZeros32(days)) - 1
	if found > date {
		clock = s.opens // a later date begins at its first clock
	}
	return int64(found)*day + int64(clock) - epoch
}

// last is the last matching reading at or before to.
func (s *Spec) last(to int64) int64 {
	n := uint64(to + epoch)
	date, clock := uint32(n/day), uint32(n%day)
	clock, ok := s.lastClock(clock)
	if !ok {
		date--
		clock = s.closes
	}
	y, m, d := civil(date)
	start := date - d + 1
	days := s.daysOf(y, m, start) & (2<<d - 1)
	for days == 0 {
		if earlier := s.months & (1<<m - 1); earlier != 0 {
			m = uint32(bits.Len32(earlier)) - 1
		} else if y == minYear {
			return -never
		} else {
			y, m = y-1, uint32(bits.Len32(s.months))-1
		}
		start = firstOf(y, m)
		days = s.daysOf(y, m, start)
	}
	found := start + uint32(bits.Len32(days)) - 2
	if found < date {
		clock = s.closes
	}
	return int64(found)*day + int64(clock) - epoch
}

// count is the number of matching readings in [from, limit).
func (s *Spec) count(from, limit int64) int64 {
	n, end := uint64(from+epoch), uint64(limit+epoch)
	date, endDate := uint32(n/day), uint32(end/day)
	clocks := int64(bits.OnesCount64(s.second) * bits.OnesCount64(s.minute) * bits.OnesCount64(s.hour))
	total := s.dates(date, endDate) * clocks
	total -= s.dates(date, date+1) * s.clocksBefore(uint32(n%day))
	total += s.dates(endDate, endDate+1) * s.clocksBefore(uint32(end%day))
	return total
}

// dates is the number of matching dates in [date, end).
func (s *Spec) dates(date, end uint32) (n int64) {
	y, m, d := civil(date)
	for date < end {
		start := date - d + 1
		days := s.daysOf(y, m, start) >> d << d
		date = start + daysIn(y, m)
		if date > end {
			days &= 1<<(end-start+1) - 1
		}
		n += int64(bits.OnesCount32(days))
		if d, m = 1, m+1; m > 12 {
			y, m = y+1, 1
		}
	}
	return n
}

// firstClock is the first matching time of day at or after from, in seconds.
func (s *Spec) firstClock(from uint32) (uint32, bool) {
	h, m, sec := from/3600, from/60%60, from%60
	hour, minute, second := s.hour>>h, s.minute>>m, s.second>>sec
	if hour&1 != 0 {
		if minute&1 != 0 && second != 0 {
			return from + uint32(bits.TrailingZeros64(second)), true
		}
		if minute &^= 1; minute != 0 {
			m += uint32(bits.TrailingZeros64(minute))
			return h*3600 + m*60 + uint32(bits.TrailingZeros64(s.second)), true
		}
	}
	if hour &^= 1; hour == 0 {
		return 0, false
	}
	h += uint32(bits.TrailingZeros64(hour))
	return h*3600 + s.opens%3600, true
}

// lastClock is the last matching time of day at or before to, in seconds.
func (s *Spec) lastClock(to uint32) (uint32, bool) {
	h, m, sec := to/3600, to/60%60, to%60
	if s.hour>>h&1 != 0 {
		if second := s.second & (2<<sec - 1); s.minute>>m&1 != 0 && second != 0 {
			return to - sec + uint32(bits.Len64(second)) - 1, true
		}
		if minute := s.minute & (1<<m - 1); minute != 0 {
			m = uint32(bits.Len64(minute)) - 1
			return h*3600 + m*60 + uint32(bits.Len64(s.second)) - 1, true
		}
	}
	hour := s.hour & (1<<h - 1)
	if hour == 0 {
		return 0, false
	}
	h = uint32(bits.Len64(hour)) - 1
	return h*3600 + s.closes%3600, true
}

// clocksBefore is the number of matching times of day earlier than limit.
func (s *Spec) clocksBefore(limit uint32) int64 {
	h, m, sec := limit/3600, limit/60%60, limit%60
	seconds, minutes := bits.OnesCount64(s.second), bits.OnesCount64(s.minute)
	n := bits.OnesCount64(s.hour&(1<<h-1)) * minutes * seconds
	if s.hour>>h&1 != 0 {
		n += bits.OnesCount64(s.minute&(1<<m-1)) * seconds
		if s.minute>>m&1 != 0 {
			n += bits.OnesCount64(s.second & (1<<sec - 1))
		}
	}
	return int64(n)
}
