package jobs

// A part is what one of its leaves brings to a combined schedule: the leaf's dues
// from from, before until, that none of without has. Since Except is moved down to
// the leaves, no walk over what is excluded ever holds another one.
type part struct {
	leaf        rule
	from, until int64
	without     []rule
	others      []part // those of without
	settled     int64  // from when on all repeats itself every 400 years; 0 for never
	tests       int    // schedules in the leaf and in without: what one due costs
}

// answer is what a search came to.
type answer int

const (
	never answer = iota
	found
	unsure // the tests ran out; nothing was found up to here
)

const (
	// maxTests bounds what one question to a combined schedule may cost, counted in
	// tests of one schedule at one instant, and so its time to about a tenth of a
	// second.
	maxTests = 1 << 18
	// firstLook is how many dues of each part are looked at before any part is
	// searched further, up to what others found: one that has come to its end must
	// not use up the tests at each due of the rest.
	firstLook = 64
	// calendar is the 400 years after which dates and weekdays repeat themselves.
	calendar = 146097 * aDay
	// settledZones is 2100, when each zone has long followed a rule for each year.
	settledZones = 4102444800
	// fewDues is how many excluded dues in a row are passed over by what each
	// excluding schedule covers alone, before it is asked what they cover together.
	fewDues = 4
)

// step looks from an instant, not counted, up to a bound, not counted.
type step func(m *part, at, bound int64, tests *int) (int64, answer)

// next finds the first due later than after and earlier than limit. It looks at
// one of the leaf's dues or more, whatever tests are left.
func (m *part) next(after, limit int64, tests *int) (int64, answer) {
	after, limit = max(after, m.from-1), min(limit, m.until)
	if m.settled > 0 {
		limit = min(limit, max(after, m.settled)+calendar+1)
	}
	for looked := 0; ; looked++ {
		t, ok := m.leaf.next(after)
		if !ok || t <= after || t >= limit {
			return 0, never
		}
		_, last, excluded := m.excluded(t, looked >= fewDues, tests)
		if !excluded {
			return t, found
		}
		after = min(last, limit-1)
		if *tests <= 0 {
			return after, unsure
		}
	}
}

// prev is next's mirror: the last due earlier than before and later than limit.
func (m *part) prev(before, limit int64, tests *int) (int64, answer) {
	before, limit = min(before, m.until), max(limit, m.from-1)
	for looked := 0; ; looked++ {
		t, ok := m.leaf.prev(before)
		if !ok || t >= before || t <= limit {
			return 0, never
		}
		first, _, excluded := m.excluded(t, looked >= fewDues, tests)
		if !excluded {
			return t, found
		}
		before = max(first, limit+1)
		if *tests <= 0 {
			return before, unsure
		}
	}
}

// excluded says whether t, a due of the leaf, is excluded, and with it all of
// the leaf's dues from first to last; together asks what the excluding schedules
// cover jointly too.
func (m *part) excluded(t int64, together bool, tests *int) (first, last int64, excluded bool) {
	first, last = t, t
	*tests -= m.tests
	for _, w := range m.without {
		if w.has(t) {
			*tests -= 2 * leavesOf(w)
			from, to := w.covers(t, m.leaf)
			first, last, excluded = min(first, from), max(last, to), true
		}
	}
	if excluded && together {
		from, to := jointly(m.leaf, t, m.others, tests)
		first, last = min(first, from), max(last, to)
	}
	return first, last, excluded
}

// merge walks the dues of several parts in order, each once.
type merge struct {
	parts []part
	heads []head
	limit int64 // dues are earlier
}

// head is what a part comes to next.
type head struct {
	at int64
	is answer
}

func newMerge(parts []part, after, limit int64, tests *int) *merge {
	m := &merge{parts, make([]head, len(parts)), limit}
	for i := range parts {
		m.heads[i].at, m.heads[i].is = parts[i].next(after, limit, tests)
	}
	return m
}

// next is the next due, or how far the walk is sure of its dues.
func (m *merge) next(tests *int) (int64, answer) {
	least := head{at: maxUnix + 1, is: never}
	for _, h := range m.heads {
		if h.is != never && (h.at < least.at || h.at == least.at && h.is == found) {
			least = h
		}
	}
	if least.is != found {
		return least.at, least.is
	}
	for i, h := range m.heads {
		if h == least {
			m.heads[i].at, m.heads[i].is = m.parts[i].next(least.at, m.limit, tests)
		}
	}
	return least.at, found
}
