package jobs

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// maxDepth bounds how deep schedules nest in each other.
	maxDepth = 8
	// maxLeaves bounds how many schedules one text combines; see maxTests.
	maxLeaves = 100
)

// Manual has no dues: a job with it runs only when it is triggered. It stands
// alone; Union, Except, From and Until refuse it. Its text is "@manual".
func Manual() Schedule { return intern("@manual", func() rule { return manualRule{} }) }

// Union fires whenever one of the schedules does, and once where several do. Of
// one schedule it is that schedule; of none it is an error. The order in which
// they are given, doubles, and a Union inside make no difference: it is the same
// schedule by ==, with its operands sorted by their text.
//
// Schedules nest up to 8 deep, up to 100 in all, in up to 32 KiB of text. What
// has no due from 1970 on is an error.
func Union(s ...Schedule) Schedule {
	if len(s) == 0 {
		return broken("union()", errors.New("nothing to unite; give at least one schedule"))
	}
	if wrong, ok := refused(opUnion, 0, s); ok {
		return wrong
	}
	var all []Schedule
	for _, one := range s {
		if tree, ok := one.c.rule.(*treeRule); ok && tree.op == opUnion {
			all = append(all, tree.operands...)
		} else {
			all = append(all, one)
		}
	}
	slices.SortStableFunc(all, func(a, b Schedule) int { return cmp.Compare(a.c.text, b.c.text) })
	all = slices.Compact(all)
	if len(all) == 1 {
		return all[0]
	}
	return combine(opUnion, 0, all)
}

// Except fires when s does and other does not, at that very second: to skip
// Christmas, other must fire all day long, as Cron("* * 25 12 *") does for what
// fires at whole minutes. Excepting again excludes the Union of both. What
// excludes all dues from 1970 on is an error.
//
// Excluded dues are passed over by whole hours and days where the Cron lines of
// one zone, an Every that divides the minute, the hour or the day, and windows of
// From and Until exclude these alone or together; all others are looked at one by
// one. A question may cost some 260,000 tests of one schedule at one instant in
// all. A combination that has not found its first due from 1970 on by then, or
// cannot be sure that it is the first, is an error, unless it holds a Custom or an
// H. Where a later question comes to that end, it goes on further away, in twice
// the distance each time and where windows begin or end: it may miss dues in
// between, and says never only where there is none at those places either.
//
// An H is another value for each job: For, and so Add, tells that nothing is left
// for this one's name. Exclude no single minutes of a line that has H for its minute.
func (s Schedule) Except(other Schedule) Schedule {
	operands := []Schedule{s, other}
	if wrong, ok := refused(opExcept, 0, operands); ok {
		return wrong
	}
	if tree, ok := s.c.rule.(*treeRule); ok && tree.op == opExcept {
		return tree.operands[0].Except(Union(tree.operands[1], other))
	}
	return combine(opExcept, 0, operands)
}

// From is the schedule without its dues before t, a whole second; one at t
// stays. It is an error if none is left.
func (s Schedule) From(t time.Time) Schedule {
	if wrong, ok := s.refusedBound(opFrom, t); ok {
		return wrong
	}
	bound := t.Unix()
	if tree, ok := s.c.rule.(*treeRule); ok && tree.op == opFrom {
		return tree.operands[0].From(time.Unix(max(bound, tree.bound), 0))
	}
	return combine(opFrom, bound, []Schedule{s})
}

// Until is the schedule without its dues at t, a whole second, or later. It is
// an error if none is left from 1970 on. From and Until may be given in any
// order, and given again they narrow the window.
func (s Schedule) Until(t time.Time) Schedule {
	if wrong, ok := s.refusedBound(opUntil, t); ok {
		return wrong
	}
	bound := t.Unix()
	if tree, ok := s.c.rule.(*treeRule); ok {
		switch tree.op {
		case opUntil:
			return tree.operands[0].Until(time.Unix(min(bound, tree.bound), 0))
		case opFrom:
			if bound <= tree.bound {
				return broken(spelled(opUntil, bound, []Schedule{s}),
					fmt.Errorf("it never fires: its window ends before it begins, at %s; choose a later end", written(tree.bound)))
			}
			return tree.operands[0].Until(t).From(time.Unix(tree.bound, 0))
		}
	}
	return combine(opUntil, bound, []Schedule{s})
}

// refused is the broken schedule that an operand leads to, if one does.
func refused(op operation, bound int64, operands []Schedule) (Schedule, bool) {
	for i, s := range operands {
		place := string(op)
		if len(operands) > 1 || op == opUnion {
			place = fmt.Sprintf("operand %d of %s", i+1, op)
		}
		if s.c == nil {
			s = broken("", errors.New("no schedule; give one, or leave the operand out"))
		}
		if s.c.err != nil {
			return brokenWithin(spelled(op, bound, operands), place, s), true
		}
		if s.c.rule == (manualRule{}) {
			return brokenWithin(spelled(op, bound, operands), place,
				broken(s.c.text, errors.New("it has no dues to combine; leave it out, or use it alone"))), true
		}
	}
	return Schedule{}, false
}

func (s Schedule) refusedBound(op operation, t time.Time) (Schedule, bool) {
	if s.c == nil {
		return s, true // it says itself what is wrong with it
	}
	if err := checkInstant(t); err != nil {
		return broken(fmt.Sprintf("%s(%s; %s)", op, t.Format(time.RFC3339Nano), s), err), true
	}
	return refused(op, t.Unix(), []Schedule{s})
}

// combine makes the tree of operands that are in order and brought into their
// canonical form, and holds it to the bounds.
func combine(op operation, bound int64, operands []Schedule) Schedule {
	text := spelled(op, bound, operands)
	tree := newTree(op, bound, operands)
	switch {
	case len(text) > maxText:
		return broken(text, fmt.Errorf("%d bytes of text are too long; use at most %d", len(text), maxText))
	case tree.depth > maxDepth:
		return broken(text, fmt.Errorf("schedules nest %d deep; use at most %d", tree.depth, maxDepth))
	case tree.leaves > maxLeaves:
		return broken(text, fmt.Errorf("%d schedules are combined; use at most %d, or one At for many instants", tree.leaves, maxLeaves))
	}
	if tree.custom {
		tree.compile()
		return Schedule{&compiled{text: text, rule: tree}}
	}
	if s, ok := known(text); ok {
		return s
	}
	tree.compile()
	if err := tree.checkFires(); err != nil {
		return broken(text, err)
	}
	return intern(text, func() rule { return tree })
}

// checkFires refuses what has no due from 1970 on, or hides it too well. No clock is read, so that a
// schedule which was right once is right for good; and a user's own calendar is
// not asked, since it might be slow.
func (r *treeRule) checkFires() error {
	if r.hashed {
		return nil
	}
	first, sure := r.search((*part).next, -1, maxUnix+1, maxTests)
	if !sure {
		return errors.New("too many dues are excluded one by one to tell what is left; exclude whole hours or days")
	}
	if first <= maxUnix {
		return nil
	}
	switch r.op {
	case opExcept:
		return errors.New("it never fires: what is excluded takes all its dues; exclude less")
	case opFrom:
		return fmt.Errorf("it never fires: no due is left at %s or later; choose an earlier beginning", written(r.bound))
	case opUntil:
		return fmt.Errorf("it never fires: no due is left before %s, counted from 1970; choose a later end", written(r.bound))
	}
	return errors.New("it never fires from 1970 on; give later instants")
}

// spelled is the text of a combination.
func spelled(op operation, bound int64, operands []Schedule) string {
	words := make([]string, 0, len(operands)+1)
	if op == opFrom || op == opUntil {
		words = append(words, written(bound))
	}
	for _, s := range operands {
		words = append(words, s.String())
	}
	return string(op) + "(" + strings.Join(words, "; ") + ")"
}

// mapped applies f, which keeps what is right as right as it can, to each leaf.
func (s Schedule) mapped(f func(leaf Schedule) Schedule) Schedule {
	tree, ok := s.c.rule.(*treeRule)
	if !ok {
		return f(s)
	}
	operands, changed := make([]Schedule, len(tree.operands)), false
	for i, one := range tree.operands {
		operands[i] = one.mapped(f)
		changed = changed || operands[i] != one
	}
	switch {
	case !changed:
		return s
	case tree.op == opUnion:
		return Union(operands...)
	case tree.op == opExcept:
		return operands[0].Except(operands[1])
	case tree.op == opFrom:
		return operands[0].From(time.Unix(tree.bound, 0))
	}
	return operands[0].Until(time.Unix(tree.bound, 0))
}
