package jobs

import "slices"

// treeRule combines other schedules. Whether it has an instant is asked of the
// operands as they were written; what comes next, of its parts.
type treeRule struct {
	op       operation
	bound    int64 // of from and until
	operands []Schedule

	parts  []part
	depth  int     // 1 over leaves
	leaves int     // as often as they are written
	seams  []int64 // where a window begins or ends, ascending
	custom bool    // holds a Custom, so that its text is not all there is to it
	hashed bool    // holds an H, so that it has no dues before For
}

// operation is a word of the grammar.
type operation string

const (
	opUnion  operation = "union"
	opExcept operation = "except"
	opFrom   operation = "from"
	opUntil  operation = "until"
)

func newTree(op operation, bound int64, operands []Schedule) *treeRule {
	r := &treeRule{op: op, bound: bound, operands: operands}
	for _, s := range operands {
		switch leaf := s.c.rule.(type) {
		case *treeRule:
			r.depth, r.leaves = max(r.depth, leaf.depth), r.leaves+leaf.leaves
			r.custom, r.hashed = r.custom || leaf.custom, r.hashed || leaf.hashed
			continue
		case customRule:
			r.custom = true
		case hashedRule:
			r.hashed = true
		}
		r.leaves++
	}
	r.depth++
	return r
}

// compile works out the parts. A tree is used only after it.
func (r *treeRule) compile() {
	if r.hashed {
		return
	}
	r.parts = r.moved()
	r.seams = appendSeams([]int64{settledZones}, r)
	slices.Sort(r.seams)
	r.seams = slices.Compact(r.seams)
	for i := range r.parts {
		m := &r.parts[i]
		m.tests, m.others, m.settled = 1, nil, 0 // an operand's
		if repeats(m.leaf) && !slices.ContainsFunc(m.without, func(w rule) bool { return !repeats(w) }) {
			m.settled = r.seams[len(r.seams)-1]
		}
		for _, w := range m.without {
			m.tests += leavesOf(w)
			m.others = append(m.others, partsOf(w)...)
		}
	}
}

// repeats says whether the rule repeats itself every 400 years where no zone
// changes its mind and no window begins or ends.
func repeats(r rule) bool {
	switch r := r.(type) {
	case everyRule:
		return calendar%r.step == 0
	case cronRule:
		return true
	case *treeRule:
		return !slices.ContainsFunc(r.operands, func(s Schedule) bool { return !repeats(s.c.rule) })
	}
	return false
}

func appendSeams(seams []int64, r rule) []int64 {
	tree, ok := r.(*treeRule)
	if !ok {
		return seams
	}
	if tree.op == opFrom || tree.op == opUntil {
		seams = append(seams, tree.bound)
	}
	for _, s := range tree.operands {
		seams = appendSeams(seams, s.c.rule)
	}
	return seams
}

// moved is the parts of the operands with this operation moved down to each.
func (r *treeRule) moved() []part {
	var parts []part
	for i, s := range r.operands {
		if r.op == opExcept && i > 0 {
			break // what is excluded
		}
		parts = append(parts, partsOf(s.c.rule)...)
	}
	kept := parts[:0]
	for _, m := range parts {
		switch r.op {
		case opExcept:
			m.without = append(slices.Clone(m.without), r.operands[1].c.rule)
		case opFrom:
			m.from = max(m.from, r.bound)
		case opUntil:
			m.until = min(m.until, r.bound)
		}
		if m.from < m.until {
			kept = append(kept, m)
		}
	}
	return kept
}

func leavesOf(r rule) int {
	if tree, ok := r.(*treeRule); ok {
		return tree.leaves
	}
	return 1
}

// partsOf is the parts of any rule.
func partsOf(r rule) []part {
	if tree, ok := r.(*treeRule); ok {
		return tree.parts
	}
	return []part{{leaf: r, from: minUnix, until: maxUnix + 1}}
}

func (r *treeRule) next(after int64) (int64, bool) {
	least, sure := r.search((*part).next, after, maxUnix+1, maxTests)
	if !sure && least > maxUnix {
		least = r.leap(after)
	}
	return least, least <= maxUnix
}

func (r *treeRule) prev(before int64) (int64, bool) {
	latest, sure := r.search((*part).prev, before, minUnix-1, maxTests)
	if !sure && latest < minUnix {
		latest = r.leapBack(before)
	}
	return latest, latest >= minUnix
}

// search is the due nearest to at, or the bound if there is none before it. It
// looks ever further along each part, so that none uses up the tests of all, and
// is not sure where they ran out.
func (r *treeRule) search(look step, at, bound int64, tests int) (nearest int64, sure bool) {
	type open struct {
		m  *part
		at int64
	}
	var again []open
	try := func(o open, dues int) bool {
		share := min(dues*o.m.tests, tests)
		tests -= share
		t, is := look(o.m, o.at, bound, &share)
		tests += share
		switch is {
		case found:
			bound = t
		case unsure:
			o.at = t
			again = append(again, o)
		}
		return is != unsure || tests > 0
	}
	for i := range r.parts {
		if !try(open{&r.parts[i], at}, firstLook) {
			return bound, false
		}
	}
	for dues := 4 * firstLook; len(again) > 0; dues *= 4 {
		opened := again
		again = nil
		for _, o := range opened {
			if !try(o, dues) {
				return bound, false
			}
		}
	}
	return bound, true
}

// leaps is how often a search that ran out of tests goes on further away: a year
// has 2^13 hours, and the years that can be written 2^27.
const leaps = 64

// leap goes on where a search for what comes after an instant ran out of tests: in
// twice the distance each time, and where windows begin or end. What it finds is a
// due, if not always the first: a job must not fall silent for good.
func (r *treeRule) leap(after int64) int64 {
	distance, i := int64(60*60), 0
	for range leaps {
		for i < len(r.seams) && r.seams[i] <= after+1 {
			i++
		}
		if further := after + distance; i < len(r.seams) && r.seams[i]-1 <= further {
			after = r.seams[i] - 1
		} else {
			after, distance = further, 2*distance
		}
		if after >= maxUnix {
			break
		}
		if t, _ := r.search((*part).next, after, maxUnix+1, maxTests/leaps); t <= maxUnix {
			return t
		}
	}
	return maxUnix + 1
}

// leapBack is leap's mirror.
func (r *treeRule) leapBack(before int64) int64 {
	distance, i := int64(60*60), len(r.seams)
	for range leaps {
		for i > 0 && r.seams[i-1] >= before {
			i--
		}
		if further := before - distance; i > 0 && r.seams[i-1] >= further {
			before = r.seams[i-1]
		} else {
			before, distance = further, 2*distance
		}
		if before <= minUnix {
			break
		}
		if t, _ := r.search((*part).prev, before, minUnix-1, maxTests/leaps); t >= minUnix {
			return t
		}
	}
	return minUnix - 1
}

func (r *treeRule) has(t int64) bool {
	first := r.operands[0].c.rule
	switch r.op {
	case opUnion:
		for _, s := range r.operands {
			if s.c.rule.has(t) {
				return true
			}
		}
		return false
	case opExcept:
		return first.has(t) && !r.operands[1].c.rule.has(t)
	case opFrom:
		return t >= r.bound && first.has(t)
	}
	return t < r.bound && first.has(t)
}

func (r *treeRule) tally(from, to int64, steps int) (n, until int64) {
	if len(r.parts) == 1 && len(r.parts[0].without) == 0 {
		m := r.parts[0]
		if first, last := max(from, m.from-1), min(to, m.until-1); first < last {
			n, until = m.leaf.tally(first, last, steps)
			if until < last {
				return n, until
			}
		}
		return n, to
	}
	if n, ok := r.count(from, to, steps); ok {
		return n, to
	}
	for m := newMerge(r.parts, from, to+1, &steps); ; {
		due, is := m.next(&steps)
		if is == never || due > to {
			return n, to
		}
		if is == found {
			n++
		}
		if is == unsure || steps <= 0 {
			return n, due
		}
	}
}

func (r *treeRule) covers(t int64, leaf rule) (from, to int64) {
	first := r.operands[0].c.rule
	switch r.op {
	case opUnion:
		from, to = t, t
		for _, s := range r.operands {
			if s.c.rule.has(t) {
				f, l := s.c.rule.covers(t, leaf)
				from, to = min(from, f), max(to, l)
			}
		}
		return from, to
	case opExcept:
		from, to = first.covers(t, leaf)
		before, after := around(r.operands[1].c.rule, t, leaf)
		return max(from, before+1), min(to, after-1)
	case opFrom:
		from, to = first.covers(t, leaf)
		return max(from, r.bound), to
	}
	from, to = first.covers(t, leaf)
	return from, min(to, r.bound-1)
}

// around is a span round t, not a due of r, in which r and leaf have no due in
// common: those between before and after. It may be shorter than it could be, since
// it does not ask what r excludes.
func around(r rule, t int64, leaf rule) (before, after int64) {
	parts := partsOf(r)
	before, after = minUnix-1, maxUnix+1
	for i := range parts {
		b, a := aroundPart(&parts[i], t, leaf)
		before, after = max(before, b), min(after, a)
	}
	return before, after
}

// aroundPart is around of one part, without what is excluded from it.
func aroundPart(m *part, t int64, leaf rule) (before, after int64) {
	before, after = minUnix-1, maxUnix+1
	first, last := apart(m.leaf, leaf, t)
	if next, ok := m.leaf.next(max(last, m.from-1)); ok && next < m.until {
		after = next
	}
	if prev, ok := m.leaf.prev(min(first, m.until)); ok && prev >= m.from {
		before = prev
	}
	return before, after
}
