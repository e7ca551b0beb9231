package jobs

import (
	"cmp"
	"slices"
)

// plain is the parts of a rule of which nothing is excluded.
func plain(r rule) ([]part, bool) {
	parts := partsOf(r)
	for _, m := range parts {
		if len(m.without) > 0 {
			return nil, false
		}
	}
	return parts, true
}

// count counts the dues in (from, to] by spans instead of one by one: of each
// part those that it has in no span of what is excluded or counted before. It
// reports false where it would take more than steps of them, where a Custom has
// to be walked anyhow, and where what is excluded excludes something itself.
func (r *treeRule) count(from, to int64, steps int) (n int64, ok bool) {
	if r.custom {
		return 0, false
	}
	parts := slices.Clone(r.parts)
	if len(parts) > 1 { // the sparser ones take fewer steps
		slices.SortStableFunc(parts, func(a, b part) int { return -cmp.Compare(a.most(from, to), b.most(from, to)) })
	}
	var before []part
	for i, m := range parts {
		others := before
		for _, w := range m.without {
			more, ok := plain(w)
			if !ok || len(parts) > 1 {
				return 0, false
			}
			others = append(others[:len(others):len(others)], more...)
		}
		k, ok := m.countBut(others, from, to, &steps)
		if !ok {
			return 0, false
		}
		n, before = n+k, parts[:i+1]
	}
	return n, true
}

// most is how many dues the part would have, were nothing excluded.
func (m *part) most(from, to int64) int64 {
	first, last := max(from, m.from-1), min(to, m.until-1)
	if first >= last {
		return 0
	}
	n, _ := m.leaf.tally(first, last, 0)
	return n
}

// countBut counts the dues that no other part has. Each step takes a span that
// others cover, or one in which they have nothing of this part, and costs about
// as much as a test for every fourth of them.
func (m *part) countBut(others []part, from, to int64, steps *int) (n int64, ok bool) {
	at, end := max(from, m.from-1), min(to, m.until-1)
	for taken := 0; at < end; taken++ {
		t, ok := m.leaf.next(at)
		if !ok || t > end {
			return n, true
		}
		if *steps -= 1 + len(others)/4; *steps < 0 {
			return 0, false
		}
		covered, free := t-1, end
		for i := range others {
			o := &others[i]
			if t >= o.from && t < o.until && o.leaf.has(t) {
				_, last := o.leaf.covers(t, m.leaf)
				covered = max(covered, min(last, o.until-1))
			} else {
				_, after := aroundPart(o, t, m.leaf)
				free = min(free, after-1)
			}
		}
		if covered >= t && taken >= fewDues {
			_, last := jointly(m.leaf, t, others, steps)
			covered = max(covered, last)
		}
		if at = covered; covered < t {
			k, _ := m.leaf.tally(t-1, free, 0)
			n, at = n+k, free
		}
	}
	return n, true
}
