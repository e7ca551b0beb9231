package zone

import (
	"math"
	"time"
)

const (
	day = 24 * 60 * 60
	// tableEnd is 1 January 2100. Clocks that follow a rule for ever change on after
	// it, and are then asked of package time, at a hundred times the cost.
	tableEnd = 4102444800
	// lastUnix is when the year 10000 ends: no later instant is asked for, by far.
	lastUnix = 253433923200
	// firstUnix is when the year 1 begins; no clock changed before.
	firstUnix = -62135596800
)

// table lists the changes of a zone's clock: where offsets[i] begins, the first
// at the beginning of time. They are two slices since 12 bytes a change are less than 16.
type table struct {
	begins  []int64
	offsets []int32
	until   int64 // the begin of the last, if another change follows that; else math.MaxInt64

	// first finds a place near an instant without a search. It has, for each span of
	// 2^spanBits s (388 days) from the one numbered base on, what holds where the span begins.
	first []uint16
	base  int64
}

const spanBits = 25

// newTable lists the changes up to tableEnd, and the first one after it.
func newTable(loc *time.Location) table {
	begins, offsets := []int64{math.MinInt64}, []int32{int32(offsetAt(loc, firstUnix))}
	t := int64(firstUnix)
	for {
		next, ok := change(loc, t)
		if !ok {
			return makeTable(begins, offsets, math.MaxInt64)
		}
		if t >= tableEnd {
			return makeTable(begins, offsets, t)
		}
		begins, offsets = append(begins, next), append(offsets, int32(offsetAt(loc, next)))
		t = next
	}
}

func makeTable(begins []int64, offsets []int32, until int64) table {
	t := table{begins: clip(begins), offsets: clip(offsets), until: until}
	if len(begins) == 1 {
		return t
	}
	t.base = begins[1] >> spanBits
	i := 0
	for span := t.base; span <= begins[len(begins)-1]>>spanBits; span++ {
		for i+1 < len(begins) && begins[i+1] <= span<<spanBits {
			i++
		}
		t.first = append(t.first, uint16(min(i, math.MaxUint16)))
	}
	t.first = clip(t.first)
	return t
}

// clip keeps no more room than is used.
func clip[T any](list []T) []T {
	exact := make([]T, len(list))
	copy(exact, list)
	return exact
}

// find is the stretch of an instant before until.
func (t *table) find(unix int64) Stretch {
	i := 0
	if span := unix>>spanBits - t.base; span >= 0 && len(t.first) > 0 {
		i = int(t.first[min(span, int64(len(t.first)-1))])
	}
	for i+1 < len(t.begins) && t.begins[i+1] <= unix {
		i++
	}
	s := Stretch{Begin: t.begins[i], End: math.MaxInt64, Offset: int64(t.offsets[i])}
	s.Before = s.Offset
	if i > 0 {
		s.Before = int64(t.offsets[i-1])
	}
	if i+1 < len(t.begins) {
		s.End = t.begins[i+1]
	}
	return s
}

// walk is the stretch of an instant, as package time knows it.
func walk(loc *time.Location, unix int64) Stretch {
	offset := offsetAt(loc, unix)
	s := Stretch{Begin: math.MinInt64, End: math.MaxInt64, Offset: offset, Before: offset}
	if end, ok := change(loc, unix); ok {
		s.End = end
	}
	for t := unix; ; {
		begin, _ := time.Unix(t, 0).In(loc).ZoneBounds()
		if begin.IsZero() {
			return s
		}
		if t = begin.Unix() - 1; offsetAt(loc, t) != offset {
			s.Begin, s.Before = t+1, offsetAt(loc, t)
			return s
		}
	}
}

// change is the first instant after unix at which the offset is another one; false is never.
func change(loc *time.Location, unix int64) (int64, bool) {
	offset := offsetAt(loc, unix)
	for unix < lastUnix {
		_, end := time.Unix(unix, 0).In(loc).ZoneBounds()
		if end.IsZero() {
			return 0, false
		}
		// Package time (Go 1.26) splits stretches where the year begins, and ends those of
		// a leap year on 31 December, for instants of that day at or before themselves.
		next := end.Unix()
		if next <= unix {
			next = unix - unix%day + day
		}
		if offsetAt(loc, next) != offset {
			return next, true
		}
		unix = next
	}
	return 0, false
}

func offsetAt(loc *time.Location, unix int64) int64 {
	_, offset := time.Unix(unix, 0).In(loc).Zone()
	return int64(offset)
}
