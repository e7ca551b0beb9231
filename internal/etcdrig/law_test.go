//go:build unix

package etcdrig

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// tale is a history to judge: of dues in (100, 104], two in term 5 of process 1, which ends, and two in term 9 of process 2. Its times are in ms.
type tale struct {
	judge
	rows []idempotency.Run
}

// gone is when the test learned that term 5 was over by etcd, which let term 9 begin, and follows when that did.
const gone, follows = 102_700, 102_800

// calm is a tale in which nothing went wrong.
func calm() *tale {
	t := &tale{judge: judge{elected: true, died: map[int]bool{}, stopped: map[int]bool{}, left: map[int64]bool{}, revoked: map[int64]bool{}}}
	t.say(100_000, session, 1, 0)
	t.say(100_000, session, 2, 0)
	t.reign(5, 1, 100_500, 102_500)
	t.reign(9, 2, follows, 104_700)
	for due := int64(101); due <= 104; due++ {
		term := int64(5)
		if due > 102 {
			term = 9
		}
		t.did(due, due*10, term)
	}
	t.events = []event{t.key("x", 5, 5), t.signed(6, 5), t.key("y", 9, 9), t.signed(10, 5), t.key("x", 12, 0), t.signed(13, 9), t.signed(14, 9)}
	return t
}

func (t *tale) say(at int64, phase string, pid int, term int64) *line {
	t.lines = append(t.lines, line{Phase: phase, Pid: pid, Replica: fmt.Sprint("r", pid), At: at * 1e6, Wall: at * 1e3, Term: term})
	return &t.lines[len(t.lines)-1]
}

func (t *tale) run(at int64, phase string, pid int, term, due, fence int64) {
	l := t.say(at, phase, pid, term)
	l.Due, l.Fence = due, fence
}

// reign tells of a term, to the end of its context and a little on.
func (t *tale) reign(term int64, pid int, from, to int64) {
	for at := from; at < to; at += 500 {
		t.say(at, trusted, pid, term)
		t.say(at+10, inRole, pid, term)
	}
	t.say(to+30, leftRole, pid, term)
	t.say(to+40, over, pid, term)
}

// did tells of a due that was done in a term, by its process.
func (t *tale) did(due, fence, term int64) {
	pid := map[int64]int{5: 1, 9: 2}[term]
	t.run(due*1000+100, started, pid, term, due, fence)
	t.run(due*1000+200, effect, pid, term, due, fence)
	t.run(due*1000+300, committed, pid, term, due, fence)
	id := idempotency.ID{Job: job, Due: time.Unix(due, 0)}
	t.rows = append(t.rows, idempotency.Run{ID: id, State: idempotency.Ended, Outcome: idempotency.Done, Fence: fence, Term: term})
}

func (t *tale) row(due int64) *idempotency.Run {
	return &t.rows[slices.IndexFunc(t.rows, func(r idempotency.Run) bool { return r.ID.Due.Unix() == due })]
}

// key is etcd's event of one of the election: it was made in that revision, or has ended.
func (t *tale) key(name string, revision, created int64) event {
	return event{revision: revision, key: election + name, created: created, seen: gone * 1e6}
}

// signed is etcd's event of a leader's write.
func (t *tale) signed(revision, term int64) event {
	return event{revision: revision, key: signature, created: 6, value: fmt.Sprint(term, " r"), seen: gone * 1e6}
}

func (t *tale) happened(e ...event) { t.events = append(t.events, e...) }

// byStore makes it one in which the store elects: all that tells of a term is its role.
func (t *tale) byStore() {
	t.elected, t.events = false, nil
	t.lines = slices.DeleteFunc(t.lines, func(l line) bool { return l.Phase == trusted || l.Phase == over })
}

// TestJudge tells tales: the first ones are lawful, each of the others breaks a law, which the judge has to name.
func TestJudge(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		tell func(t *tale)
		want string // what is found; "": nothing
	}{
		{"calm", func(*tale) {}, ""},
		{"calm, by the store", (*tale).byStore, ""},
		{"a term that was over at once", func(t *tale) { t.say(102_650, leftRole, 3, 7); t.say(102_650, over, 3, 7) }, ""},
		{"revoked and late", func(t *tale) { t.revoked[5] = true; t.say(102_900, trusted, 1, 5) }, ""},
		{"killed and repeated", func(t *tale) { t.died[1] = true; t.run(102_900, effect, 1, 5, 103, 1025) }, ""},

		{"late belief", func(t *tale) { t.say(follows+1, trusted, 1, 5) }, "after the beginning of term 9"},
		{"late belief of who stood still", func(t *tale) { t.stopped[1] = true; t.say(follows+1, trusted, 1, 5) }, "after the beginning of term 9"},
		{"late role", func(t *tale) { t.say(follows+1, inRole, 1, 5) }, "after the beginning of term 9"},
		{"late role, by the store", func(t *tale) { t.byStore(); t.stopped[1] = true; t.say(103_000, inRole, 1, 5) }, "after the beginning of term 9"},
		{"late belief, and an earlier look that is told later", func(t *tale) {
			t.say(follows+1, inRole, 1, 5)
			t.say(102_400, trusted, 1, 5).Wall = 103_000_000
		}, "after the beginning of term 9"},
		{"belief that etcd had ended", func(t *tale) { t.say(gone+1, trusted, 1, 5) }, "after the test had learned of its end"},
		{"role that etcd had ended", func(t *tale) { t.say(gone+1, inRole, 1, 5) }, "after the test had learned of its end"},
		{"role overlap", func(t *tale) { t.left[5] = true; t.say(103_000, leftRole, 1, 5) }, "role: that of term 5"},
		{"terms against time", func(t *tale) { t.say(100_400, trusted, 2, 9) }, "began before term 5"},
		{"shared term", func(t *tale) { t.say(103_000, trusted, 3, 9) }, "is also one of r3"},

		{"a term that is not etcd's", func(t *tale) { t.say(102_750, trusted, 3, 7) }, "is none of etcd's"},
		{"signature of an overtaken term", func(t *tale) { t.happened(t.signed(15, 5)) }, `at revision 15 "5 r" was written, and the term is 9`},
		{"signatures in disorder", func(t *tale) { t.happened(t.signed(15, 5)) }, `"5 r" was written after term 9`},
		{"signature of one that waits", func(t *tale) { t.events[3] = t.signed(10, 9) }, `at revision 10 "9 r" was written, and the term is 5`},
		{"no signatures", func(t *tale) {
			t.events = slices.DeleteFunc(t.events, func(e event) bool { return e.key == signature })
		}, "2 terms left 0 signatures"},
		{"a term that is back", func(t *tale) { t.happened(t.key("x", 15, 5)) }, "term 5 reigns again"},

		{"lost row", func(t *tale) { t.rows = t.rows[1:] }, "lost: due 101"},
		{"two rows", func(t *tale) { t.rows = append(t.rows, *t.row(103)) }, "has two rows"},
		{"missed", func(t *tale) { t.row(103).Outcome = idempotency.Missed }, "missed: due 103"},
		{"double commit", func(t *tale) { t.run(103_400, committed, 2, 9, 103, 1030) }, "due 103 was completed 2 times"},
		{"commit of an overtaken run", func(t *tale) { t.run(103_250, committed, 1, 5, 103, 1025) }, "under fence 1025, its row has 1030"},
		{"stray effect", func(t *tale) { t.run(102_900, effect, 1, 5, 103, 1025) }, "in process 1 that nothing hit"},
		{"handler twice under one fence", func(t *tale) { t.run(103_250, effect, 2, 9, 103, 1030) }, "under fence 1030, 2 times"},
		{"effect of an older fence last", func(t *tale) { t.died[2] = true; t.run(103_250, effect, 2, 9, 103, 1035) }, "its last effect has 1035"},
		{"done in no term", func(t *tale) { t.row(103).Term = 7 }, "due 103 was done in term 7, which is none"},

		{"late start", func(t *tale) { t.run(103_050, started, 1, 5, 103, 1025) }, "started: due 103"},
		{"late start, by the store", func(t *tale) { t.byStore(); t.run(103_050, started, 1, 5, 103, 1025) }, "started: due 103"},
		{"start elsewhere", func(t *tale) { t.run(103_050, started, 1, 9, 103, 1025) }, "due 103 started in process 1, in term 9"},
		{"start in no term", func(t *tale) { t.run(103_050, started, 1, 7, 103, 1025) }, "due 103 started in term 7, which is none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			x := calm()
			c.tell(x)
			slices.SortStableFunc(x.lines, func(a, b line) int { return cmp.Compare(a.Wall, b.Wall) })
			bad := x.judge.judge(x.rows, 100, 104)
			named := slices.ContainsFunc(bad, func(text string) bool { return strings.Contains(text, c.want) })
			if c.want == "" && len(bad) > 0 || c.want != "" && !named {
				t.Errorf("the judge says %q, want %q", bad, c.want)
			}
		})
	}
}
