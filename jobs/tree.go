package jobs

import (
	"math"
	"slices"
)

// treeRule combines other schedules. Whether it has an instant is asked of the
// operands as they were written; what comes next, of its parts.
type treeRule struct {
	op       operation
	bound    int64 // of from and until
	operands []Schedule

	parts  []part
	depth  int  // 1 over leaves
	leaves int  // as often as they are written
	custom bool // holds a Custom, so that its text is not all there is to it
	hashed bool // holds an H, so that it has no dues before For
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
	for i := range r.parts {
		m, tests := &r.parts[i], 1
		m.seams = nil // an operand's
		for _, w := range m.without {
			tests += leavesOf(w)
			m.seams = appendSeams(m.seams, w)
		}
		slices.Sort(m.seams)
		m.seams = slices.Compact(m.seams)
		m.patience = max(maxTests/(len(r.parts)*tests), minPatience)
	}
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
		if tree, ok := s.c.rule.(*treeRule); ok {
			parts = append(parts, tree.parts...)
		} else {
			parts = append(parts, part{leaf: s.c.rule, from: minUnix, until: maxUnix + 1})
		}
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

func (r *treeRule) next(after int64) (int64, bool) {
	least := int64(maxUnix + 1)
	for _, look := range []int{firstLook, math.MaxInt} {
		again := false
		for i := range r.parts {
			steps := look
			switch t, is := r.parts[i].next(after, least, &steps); is {
			case found:
				least = t
			case unsure:
				again = true
			}
		}
		if !again {
			break
		}
	}
	return least, least <= maxUnix
}

func (r *treeRule) prev(before int64) (int64, bool) {
	latest := int64(minUnix - 1)
	for _, look := range []int{firstLook, math.MaxInt} {
		again := false
		for i := range r.parts {
			steps := look
			switch t, is := r.parts[i].prev(before, latest, &steps); is {
			case found:
				latest = t
			case unsure:
				again = true
			}
		}
		if !again {
			break
		}
	}
	return latest, latest >= minUnix
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
	parts := []part{{leaf: r, from: minUnix, until: maxUnix + 1}}
	if tree, ok := r.(*treeRule); ok {
		parts = tree.parts
	}
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
