package crontab

import (
	"math/bits"
	"slices"
)

// dayRules are both day fields of a line.
type dayRules struct {
	dom, dow       uint64 // plain values: bits 1-31, and 0-6 from Sunday
	anyDom, anyDow bool   // * or ?: the other field decides
	last, lastNear uint32 // bit n: L-n, L-nW
	near           uint32 // bit n: nW
	lastDow        uint64 // bit n: nL
	nth            [5]uint64
}

// add takes the members that are not plain. Fields without a plain one have a
// stand-in for it, which goes.
func (r *dayRules) add(ln *line) {
	if !slices.ContainsFunc(ln.fields[dom], member.isPlain) {
		r.dom = 0
	}
	if !slices.ContainsFunc(ln.fields[dow], member.isPlain) {
		r.dow = 0
	}
	for _, m := range ln.fields[dom] {
		switch m.kind {
		case fromLast:
			r.last |= 1 << m.low
		case lastNear:
			r.lastNear |= 1 << m.low
		case nearest:
			r.near |= 1 << m.low
		}
	}
	for _, m := range ln.fields[dow] {
		switch m.kind {
		case fromLast:
			r.lastDow |= 1 << m.low
		case nth:
			r.nth[m.high-1] |= 1 << m.low
		}
	}
}

// table holds the matching days of all months there are, as bits 1-31: what
// matches in a month depends on its length, 28 to 31 days, and on the weekday it
// begins with, and on nothing else.
type table [4][7]uint32

func (r *dayRules) table() (t table) {
	for length := range t {
		for first := range t[length] {
			t[length][first] = r.in(uint(length+28), uint(first))
		}
	}
	return t
}

// in is the crontab rule: either day field may match where both are restricted,
// else both must.
func (r *dayRules) in(length, first uint) uint32 {
	dom, dow := r.domIn(length, first), r.dowIn(length, first)
	if r.anyDom || r.anyDow {
		return dom & dow
	}
	return dom | dow
}

func allOf(length uint) uint32 { return 1<<(length+1) - 2 }

func (r *dayRules) domIn(length, first uint) uint32 {
	if r.anyDom {
		return allOf(length)
	}
	set := uint32(r.dom) | fromEnd(r.last, length)
	for near := (r.near | fromEnd(r.lastNear, length)) & allOf(length); near != 0; near &= near - 1 {
		set |= 1 << nearestWeekday(uint(bits.TrailingZeros32(near)), length, first)
	}
	return set & allOf(length)
}

// fromEnd turns bit n, n days before the last, into the bit of that day.
func fromEnd(set uint32, length uint) uint32 {
	return uint32(bits.Reverse64(uint64(set))>>(63-length)) &^ 1
}

// nearestWeekday is the day from Monday to Friday nearest to d that is in the
// same month.
func nearestWeekday(d, length, first uint) uint {
	switch weekday := (first + d - 1) % 7; {
	case weekday == 6 && d > 1:
		return d - 1
	case weekday == 6:
		return d + 2
	case weekday == 0 && d < length:
		return d + 1
	case weekday == 0:
		return d - 2
	}
	return d
}

func (r *dayRules) dowIn(length, first uint) uint32 {
	if r.anyDow {
		return allOf(length)
	}
	const weeks = 1 | 1<<7 | 1<<14 | 1<<21 | 1<<28
	set := fromFirst(r.dow, first) * weeks
	set |= fromFirst(r.lastDow, first) * weeks &^ (1<<(length-7) - 1)
	for week, dow := range r.nth {
		set |= fromFirst(dow, first) << (7 * week)
	}
	return uint32(set<<1) & allOf(length)
}

// fromFirst turns a set of weekdays so that bit 0 is the one a month begins with.
func fromFirst(dow uint64, first uint) uint64 {
	return (dow>>first | dow<<(7-first)) & (1<<7 - 1)
}
