package oracle

import "math"

// Schedule names dues: every instant that is Phase modulo Period, every one of At, and the first second of each minute of the hour whose bit
// is set in Minutes. All else are Unix seconds; no Period: none of the first kind.
type Schedule struct {
	Period, Phase int64
	At            []int64
	Minutes       uint64
}

// dues adds those in (from, to] to a list, ascending.
func (s Schedule) dues(list []int64, from, to int64) []int64 {
	for due, ok := s.next(from); ok && due <= to; due, ok = s.next(due) {
		list = append(list, due)
	}
	return list
}

// next is the first due after t; false where there is none.
func (s Schedule) next(t int64) (due int64, ok bool) {
	due = math.MaxInt64
	if s.Period > 0 {
		past := (t - s.Phase) % s.Period
		if past < 0 {
			past += s.Period
		}
		due = t - past + s.Period
	}
	if s.Minutes != 0 {
		minute := t/60 + 1
		for s.Minutes>>(minute%60)&1 == 0 {
			minute++
		}
		due = min(due, 60*minute)
	}
	for _, at := range s.At {
		if at > t {
			due = min(due, at)
		}
	}
	return due, due < math.MaxInt64
}
