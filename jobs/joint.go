package jobs

import (
	"slices"

	"github.com/belfry-go/belfry/jobs/internal/crontab"
)

// jointly is a span round t, a due of the leaf, in which every due of the leaf is
// one of the others', though each may have but some of them; t alone where it
// knows none. It judges the times of day on t's date as one wall clock shows them.
func jointly(leaf rule, t int64, others []part, tests *int) (from, to int64) {
	*tests -= len(others)
	var tried []int64
	for i := range others {
		offset, ok := others[i].offset(t)
		if !ok || slices.Contains(tried, offset) {
			continue
		}
		tried = append(tried, offset)
		if from, to := togetherAt(offset, leaf, t, others, tests); from < to {
			return from, to
		}
	}
	return t, t
}

// togetherAt is jointly for the schedules that follow a clock of this offset from UTC.
func togetherAt(offset int64, leaf rule, t int64, others []part, tests *int) (from, to int64) {
	var sets []crontab.Set
	for i := range others {
		if set, ok := others[i].set(offset, t, leaf, tests); ok {
			sets = append(sets, set)
		}
	}
	// Those that last fit best: only what is needed narrows the span.
	slices.SortFunc(sets, func(a, b crontab.Set) int { return int(min(max(b.To-b.From-(a.To-a.From), -1), 1)) })
	all, first, last := times(leaf, t)(offset)
	now := floorMod(t+offset, aDay)
	hour := all
	hour.Hour = 1 << (now / (60 * 60))
	begin := t - now%(60*60)
	for _, c := range []crontab.Set{{Clock: all, From: first, To: last}, {Clock: hour, From: max(first, begin), To: min(last, begin+60*60-1)}} {
		if c.Within(sets, tests) {
			return c.From, c.To
		}
	}
	return t, t
}

// offset is that of the clock the leaf follows at t.
func (m *part) offset(t int64) (int64, bool) {
	if t < m.from || t >= m.until {
		return 0, false
	}
	switch leaf := m.leaf.(type) {
	case everyRule:
		return 0, leaf.daily()
	case cronRule:
		return leaf.Offset(t), true
	}
	return 0, false
}

// set is the times of day at which the part has dues round t, as a clock of this
// offset shows them; false where it does not know them all. Of a leaf's dues there
// the part excludes none.
func (m *part) set(offset, t int64, leaf rule, tests *int) (set crontab.Set, ok bool) {
	if t < m.from || t >= m.until {
		return set, false
	}
	switch own := m.leaf.(type) {
	case everyRule:
		set, ok = crontab.Set{Clock: own.clock(offset), From: minUnix, To: maxUnix}, own.daily() && offset%60 == 0
	case cronRule:
		line, _ := leaf.(cronRule)
		set, ok = own.Set(t, offset, line.Rule)
	}
	if !ok {
		return set, false
	}
	set.From, set.To = max(set.From, m.from), min(set.To, m.until-1)
	for _, w := range m.without {
		*tests -= 2 * leavesOf(w)
		if w.has(t) {
			return set, false
		}
		before, after := around(w, t, leaf)
		set.From, set.To = max(set.From, before+1), min(set.To, after-1)
	}
	return set, true
}

// daily says whether the dues are the same times of every day, and these are all
// that can be made of some seconds, minutes and hours.
func (r everyRule) daily() bool {
	return 60%r.step == 0 || r.step%60 == 0 && 60%(r.step/60) == 0 || r.step%3600 == 0 && 24%(r.step/3600) == 0
}
