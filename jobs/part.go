package jobs

import "slices"

// A part is what one of its leaves brings to a combined schedule: the leaf's dues
// from from, before until, that none of without has. Since Except is moved down to
// the leaves, no walk over what is excluded ever holds another one.
type part struct {
	leaf        rule
	from, until int64
	without     []rule
	seams       []int64 // where a window of without begins or ends, ascending
	patience    int     // excluded dues in a row after which the walk goes on at the next seam
}

// answer is what a search came to.
type answer int

const (
	never answer = iota
	found
	unsure // the steps ran out; nothing was found up to here
)

const (
	// maxTests bounds the tests of one question to a combined schedule, and so its
	// time to about a tenth of a second. Each excluded due costs a test per schedule
	// in what excludes.
	maxTests = 1 << 18
	// minPatience is what the largest combination still has.
	minPatience = 1 << 12
	// firstLook is how many dues of each part are looked at before any part is
	// searched further, up to what others found: one that has come to its end must
	// not cost its patience at each due of the rest.
	firstLook = 64
	// maxLeaps is how often one question goes on at a seam.
	maxLeaps = 3
)

// next finds the first due later than after and earlier than limit, taking one
// of steps for each due of the leaf that it looks at. It looks at one or more,
// whatever steps is.
func (m *part) next(after, limit int64, steps *int) (int64, answer) {
	after, limit = max(after, m.from-1), min(limit, m.until)
	for looked, leaps := 0, 0; ; looked++ {
		t, ok := m.leaf.next(after)
		if !ok || t <= after || t >= limit {
			return 0, never
		}
		*steps--
		_, last, excluded := m.excluded(t)
		if !excluded {
			return t, found
		}
		after = min(last, limit-1)
		if *steps <= 0 {
			return after, unsure
		}
		if looked >= m.patience {
			i, _ := slices.BinarySearch(m.seams, after+2)
			if leaps++; leaps > maxLeaps || i == len(m.seams) {
				return 0, never
			}
			looked, after = 0, m.seams[i]-1
		}
	}
}

// prev is next's mirror: the last due earlier than before and later than limit.
func (m *part) prev(before, limit int64, steps *int) (int64, answer) {
	before, limit = min(before, m.until), max(limit, m.from-1)
	for looked, leaps := 0, 0; ; looked++ {
		t, ok := m.leaf.prev(before)
		if !ok || t >= before || t <= limit {
			return 0, never
		}
		*steps--
		first, _, excluded := m.excluded(t)
		if !excluded {
			return t, found
		}
		before = max(first, limit+1)
		if *steps <= 0 {
			return before, unsure
		}
		if looked >= m.patience {
			i, _ := slices.BinarySearch(m.seams, before)
			if leaps++; leaps > maxLeaps || i == 0 {
				return 0, never
			}
			looked, before = 0, m.seams[i-1]
		}
	}
}

// excluded says whether t, a due of the leaf, is excluded, and with it all of
// the leaf's dues from first to last.
func (m *part) excluded(t int64) (first, last int64, excluded bool) {
	first, last = t, t
	for _, w := range m.without {
		if w.has(t) {
			from, to := w.covers(t, m.leaf)
			first, last, excluded = min(first, from), max(last, to), true
		}
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

func newMerge(parts []part, after, limit int64, steps *int) *merge {
	m := &merge{parts, make([]head, len(parts)), limit}
	for i := range parts {
		m.heads[i].at, m.heads[i].is = parts[i].next(after, limit, steps)
	}
	return m
}

// next is the next due, or how far the walk is sure of its dues.
func (m *merge) next(steps *int) (int64, answer) {
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
			m.heads[i].at, m.heads[i].is = m.parts[i].next(least.at, m.limit, steps)
		}
	}
	return least.at, found
}
