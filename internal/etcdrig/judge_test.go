//go:build unix

package etcdrig

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// judge holds what was due, led and believed against what became of it. It knows nothing from the product but
// the store's rows.
type judge struct {
	lines         []line
	elected       bool // by etcd, whose events are these
	events        []event
	died, stopped map[int]bool
	left, revoked map[int64]bool // terms

	terms    map[int64]*term
	sessions map[int]int // of a process
	overlap  time.Duration
	signed   int
	done     int
	bad      []string
}

// term is one by the ledger.
type term struct {
	number   int64
	pid      int
	replica  string
	beliefs  []int64 // instants at which its context, or its role's, was not over; they rise
	end      int64   // in microseconds since 1970: when its process found it over; 0: it did not
	inRole   int64   // when its role began; 0: it did not
	leftRole int64   // when it ended, or was seen last
}

func (t *term) first() int64 { return t.beliefs[0] }
func (t *term) last() int64  { return t.beliefs[len(t.beliefs)-1] }

func (t *term) String() string {
	return fmt.Sprintf("term %d of %s (process %d)", t.number, t.replica, t.pid)
}

func (j *judge) fail(format string, a ...any) { j.bad = append(j.bad, fmt.Sprintf(format, a...)) }

// judge returns a line for each breach.
func (j *judge) judge(rows []idempotency.Run, since, limit int64) []string {
	j.gather()
	if j.elected {
		j.judgeOrder()
	}
	j.judgeBelief()
	j.judgeDues(rows, since, limit)
	j.judgeStarts()
	return j.bad
}

// gather reads the terms out of the ledger. Where the store elects, a term is what its role knows of it.
func (j *judge) gather() {
	j.terms, j.sessions = map[int64]*term{}, map[int]int{}
	defer j.complete()
	ended := over
	if !j.elected {
		ended = leftRole
	}
	for _, l := range j.lines {
		if l.Phase == session {
			j.sessions[l.Pid]++
		}
		if l.Phase != trusted && l.Phase != over && l.Phase != inRole && l.Phase != leftRole {
			continue
		}
		t := j.terms[l.Term]
		if t == nil {
			t = &term{number: l.Term, pid: l.Pid, replica: l.Replica}
			j.terms[l.Term] = t
		}
		if t.pid != l.Pid {
			j.fail("terms: %v is also one of %s (process %d)", t, l.Replica, l.Pid)
		}
		switch l.Phase {
		case inRole:
			t.beliefs = append(t.beliefs, l.At) // what the role is told is what its users believe
			t.leftRole = l.At
			if t.inRole == 0 {
				t.inRole = l.At
			}
		case trusted:
			t.beliefs = append(t.beliefs, l.At)
		case leftRole:
			t.leftRole = l.At
		}
		if l.Phase == ended {
			t.end = l.Wall
		}
	}
}

// complete sets aside the terms that nobody ever believed in: they were over as soon as somebody looked.
func (j *judge) complete() {
	for n, t := range j.terms {
		if len(t.beliefs) == 0 {
			delete(j.terms, n)
		}
		slices.Sort(t.beliefs) // of two that look
	}
}

// judgeOrder: each term that a process had was one by etcd's order, nobody wrote but whose it was, and nobody believed in one that etcd had ended.
func (j *judge) judgeOrder() {
	all, bad := reigns(j.events)
	j.bad = append(j.bad, bad...)
	for _, t := range j.terms {
		r := all[t.number]
		switch {
		case r == nil:
			j.fail("etcd's order: %v is none of etcd's", t)
			continue
		case r.gone != 0 && t.last() > r.gone && !j.revoked[t.number]:
			j.fail("belief: %v was believed in %v after the test had learned of its end", t, time.Duration(t.last()-r.gone))
		}
		j.signed += r.signed
	}
	if j.signed < len(j.terms) {
		j.fail("etcd's order: %d terms left %d signatures", len(j.terms), j.signed)
	}
}

// judgeBelief: terms rise with time, and nobody believes in one once the next has begun. Only a term whose lease was revoked under its
// living holder may be believed in for longer: it cannot know.
func (j *judge) judgeBelief() {
	list := slices.SortedFunc(maps.Values(j.terms), func(a, b *term) int { return int(a.number - b.number) })
	for i, t := range list[1:] {
		before := list[i]
		if t.first() < before.first() {
			j.fail("terms: %v began before %v", t, before)
		}
		late := time.Duration(before.last() - t.first())
		switch {
		case late < 0:
		case j.revoked[before.number]:
			i, _ := slices.BinarySearch(before.beliefs, t.first())
			j.overlap = max(j.overlap, time.Duration(before.last()-before.beliefs[i]))
		default:
			j.fail("belief: %v was believed in %v after the beginning of %v", before, late, t)
		}
		if j.left[before.number] && before.inRole > 0 && t.inRole > 0 && before.leftRole > t.inRole {
			j.fail("role: that of %v, which left in order, ended %v after that of %v began", before, time.Duration(before.leftRole-t.inRole), t)
		}
	}
}

// hit says that a fault hit the process, or that it lost a session: then it stood still for a lease by itself.
func (j *judge) hit(pid int) bool { return j.died[pid] || j.stopped[pid] || j.sessions[pid] > 1 }

// judgeDues: each due was done, once, in a term; its effect was repeated only where a process died or stood still, under another fence.
func (j *judge) judgeDues(rows []idempotency.Run, since, limit int64) {
	by := map[int64]idempotency.Run{}
	for _, r := range rows {
		if _, twice := by[r.ID.Due.Unix()]; twice {
			j.fail("dues: %v has two rows", r.ID)
		}
		by[r.ID.Due.Unix()] = r
	}
	completed, last := map[int64]int{}, map[int64]int64{}
	type attempt struct{ due, fence int64 }
	effects := map[attempt]int{}
	for _, l := range j.lines {
		r, ours := by[l.Due]
		switch {
		case !ours:
		case l.Phase == committed:
			if completed[l.Due]++; completed[l.Due] > 1 {
				j.fail("double: due %d was completed %d times", l.Due, completed[l.Due])
			}
			if l.Fence != r.Fence {
				j.fail("double: due %d was completed under fence %d, its row has %d", l.Due, l.Fence, r.Fence)
			}
		case l.Phase == effect:
			last[l.Due] = max(last[l.Due], l.Fence)
			a := attempt{l.Due, l.Fence}
			if effects[a]++; effects[a] > 1 {
				j.fail("repeated: the effect of due %d under fence %d, %d times", l.Due, l.Fence, effects[a])
			}
			if l.Fence != r.Fence && !j.hit(l.Pid) {
				j.fail("repeated: the effect of due %d under fence %d, in process %d that nothing hit; its row has %d", l.Due, l.Fence, l.Pid, r.Fence)
			}
		}
	}
	for due := since + 1; due <= limit; due++ {
		r, had := by[due]
		switch {
		case !had:
			j.fail("lost: due %d has no row", due)
		case r.Outcome != idempotency.Done:
			j.fail("missed: due %d is %v (%s): %.200s", due, r.Outcome, r.Reason, r.Text)
		case last[due] != r.Fence:
			j.fail("done: due %d under fence %d, its last effect has %d", due, r.Fence, last[due])
		case j.terms[r.Term] == nil:
			j.fail("terms: due %d was done in term %d, which is none", due, r.Term)
		default:
			j.done++
		}
	}
}

// judgeStarts: a run starts on the replica whose term it has, and no due that came after the end of a term starts in it, whoever stood still.
func (j *judge) judgeStarts() {
	const tolerance = 1e5 // microseconds; a due may be claimed so early
	ends := j.ends()
	for _, l := range j.lines {
		if l.Phase != started {
			continue
		}
		t := j.terms[l.Term]
		switch {
		case t == nil:
			j.fail("terms: due %d started in term %d, which is none", l.Due, l.Term)
		case t.pid != l.Pid:
			j.fail("terms: due %d started in process %d, in %v", l.Due, l.Pid, t)
		case ends[l.Term] != 0 && l.Due*1e6 > ends[l.Term]+tolerance:
			j.fail("started: due %d, %d µs after the end of %v", l.Due, l.Due*1e6-ends[l.Term], t)
		}
	}
}

// ends says when terms ended, in microseconds since 1970: when that was noticed, or the next one began. A revoked one ends when that is
// noticed.
func (j *judge) ends() map[int64]int64 {
	ends := map[int64]int64{}
	var last *term
	for _, l := range j.lines {
		t := j.terms[l.Term]
		if t == nil || l.Phase != trusted && l.Phase != inRole || last != nil && l.Term <= last.number {
			continue
		}
		if last != nil {
			ends[last.number] = last.end
			if !j.revoked[last.number] && (last.end == 0 || l.Wall < last.end) {
				ends[last.number] = l.Wall
			}
		}
		last = t
	}
	return ends
}

// tally is for people.
func (j *judge) tally() string {
	return fmt.Sprintf("%d dues done, %d terms, %d signatures, longest belief beside the next term %v", j.done, len(j.terms), j.signed, j.overlap)
}
