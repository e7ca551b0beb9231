package jobs

import "slices"

// A term is the part of a combined schedule that one of its leaves brings: the
// leaf's dues from from, before until, that none of without has. Since Except is
// moved down to the leaves, no walk over what is excluded ever holds another one.
type term struct {
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
	// maxLeaps is how often one question goes on at a seam.
	maxLeaps = 3
)

// next finds the first due later than after, taking one of steps for each due of
// the leaf that it looks at. It looks at one or more, whatever steps is.
func (m *term) next(after int64, steps *int) (int64, answer) {
	after = max(after, m.from-1)
	for looked, leaps := 0, 0; ; looked++ {
		t, ok := m.leaf.next(after)
		if !ok || t <= after || t >= m.until {
			return 0, never
		}
		_, last, excluded := m.excluded(t)
		if !excluded {
			*steps--
			return t, found
		}
		after = min(last, m.until-1)
		if looked >= m.patience {
			i, _ := slices.BinarySearch(m.seams, after+2)
			if leaps++; leaps > maxLeaps || i == len(m.seams) {
				return 0, never
			}
			looked, after = 0, m.seams[i]-1
		}
		if *steps--; *steps <= 0 {
			return after, unsure
		}
	}
}

// prev is next backwards, with patience as its only bound.
func (m *term) prev(before int64) (int64, bool) {
	before = min(before, m.until)
	for looked, leaps := 0, 0; ; looked++ {
		t, ok := m.leaf.prev(before)
		if !ok || t >= before || t < m.from {
			return 0, false
		}
		first, _, excluded := m.excluded(t)
		if !excluded {
			return t, true
		}
		before = first
		if looked >= m.patience {
			i, _ := slices.BinarySearch(m.seams, before)
			if leaps++; leaps > maxLeaps || i == 0 {
				return 0, false
			}
			looked, before = 0, m.seams[i-1]
		}
	}
}

// excluded says whether t, a due of the leaf, is excluded, and with it all of
// the leaf's dues from first to last.
func (m *term) excluded(t int64) (first, last int64, excluded bool) {
	first, last = t, t
	for _, w := range m.without {
		if w.has(t) {
			from, to := w.covers(t, m.leaf)
			first, last, excluded = min(first, from), max(last, to), true
		}
	}
	return first, last, excluded
}

// merge walks the dues of several terms in order, each once.
type merge struct {
	terms []term
	heads []head
}

// head is what a term comes to next.
type head struct {
	at int64
	is answer
}

func newMerge(terms []term, after int64, steps *int) *merge {
	m := &merge{terms, make([]head, len(terms))}
	for i := range terms {
		m.heads[i].at, m.heads[i].is = terms[i].next(after, steps)
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
			m.heads[i].at, m.heads[i].is = m.terms[i].next(least.at, steps)
		}
	}
	return least.at, found
}
