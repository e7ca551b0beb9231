package core

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/belfry-go/belfry/jobs"
)

// first keeps a core's first call of a name from being made: the test has it then.
func (w *crew) first(i int, name string) (kept **Call) {
	kept = new(*Call)
	w.keep = func(core int, c *Call) bool {
		if core != i || c.Name != name || *kept != nil {
			return false
		}
		*kept = c
		return true
	}
	return kept
}

// make makes a call that was kept, and returns its answer, which nobody has yet.
func (w *crew) make(c *Call) *Replied {
	w.t.Helper()
	if c == nil {
		w.t.Fatal("no such call was made")
	}
	r := c.Do(context.Background(), w.store)
	if r.Err() != nil {
		w.t.Fatal(r.Err())
	}
	return r
}

// The reply to Lead is lost, but it happened: the next look at the row finds that we lead.
func TestLeadReplyLost(t *testing.T) {
	t.Parallel()
	w := newCrew(t, timing(), "a")
	call := w.first(0, "Lead")
	w.begin(global(10 * time.Second))
	w.until(time.Second)
	w.make(*call)
	w.until(2 * time.Second)
	if w.leader() >= 0 {
		t.Error("it leads, and was told nothing")
	}
	w.tell(0, (*call).Fail(context.DeadlineExceeded))
	w.until(11 * time.Second)
	w.wantRuns(ran(10*time.Second, 0, w.row().Term))
	if len(w.terms) != 1 || len(w.led[0]) != 1 {
		t.Errorf("terms %d, told %+v; want one", w.terms, w.led[0])
	}
}

// The reply to Resign is lost: it is said again, which does nothing to who leads by then.
func TestResignReplyLost(t *testing.T) {
	t.Parallel()
	w := newCrew(t, timing(), "a", "b")
	w.begin(global(10 * time.Second))
	w.until(5 * time.Second)
	first := w.leader()
	call := w.first(first, "Resign")
	w.tell(first, Stop{})
	w.make(*call)
	w.until(6500 * time.Millisecond)
	if w.cores[first].stopped || w.leader() != 1-first {
		t.Errorf("who resigns stopped without an answer: %v; core %d leads", w.cores[first].stopped, w.leader())
	}
	w.tell(first, (*call).Fail(context.DeadlineExceeded))
	w.until(11 * time.Second)
	if !w.cores[first].stopped || w.calls["Resign"] != 2 {
		t.Errorf("stopped: %v, after %d calls of Resign; want two", w.cores[first].stopped, w.calls["Resign"])
	}
	w.wantRuns(ran(10*time.Second, 1-first, w.terms[1]))
}

// A store that takes no resignation does not keep a replica that drains: the end of its session says the same.
func TestResignFails(t *testing.T) {
	t.Parallel()
	w := newCrew(t, timing(), "a", "b")
	w.begin(global(time.Hour))
	w.until(5 * time.Second)
	first := w.leader()
	w.call = func(_ int, name string) error {
		if name == "Resign" {
			return errDown
		}
		return nil
	}
	w.tell(first, Stop{})
	w.until(8 * time.Second)
	if !w.cores[first].stopped || w.calls["Resign"] != enough || w.leader() != 1-first {
		t.Errorf("stopped: %v, after %d calls of Resign; core %d leads", w.cores[first].stopped, w.calls["Resign"], w.leader())
	}
}

// While a Lead is under way the replica is told to stop: what the answer says is resigned before it leaves.
func TestDrainWithLeadUnderWay(t *testing.T) {
	t.Parallel()
	w := newCrew(t, timing(), "a")
	call := w.first(0, "Lead")
	w.begin(global(time.Hour))
	w.until(time.Second)
	r := w.make(*call)
	w.tell(0, Stop{Why: "SIGTERM"})
	w.until(1500 * time.Millisecond)
	if w.cores[0].stopped {
		t.Fatal("it left before it knew whether it leads")
	}
	w.tell(0, r)
	if w.until(2 * time.Second); !w.cores[0].stopped || w.row().Why != "resigned: stopping: SIGTERM" {
		t.Errorf("stopped: %v; the row says %+v", w.cores[0].stopped, w.row())
	}
	if len(w.terms) > 0 {
		t.Error("it led")
	}
}

// While a Lead is under way the replica owns nothing any more: what the answer says is resigned.
func TestGiveUpWithLeadUnderWay(t *testing.T) {
	t.Parallel()
	w := newCrew(t, timing(), "a")
	call := w.first(0, "Lead")
	w.begin(global(time.Hour))
	w.until(time.Second)
	w.tell(0, RingChanged{}, w.make(*call))
	if row := w.row(); row.Until.IsZero() || len(w.terms) > 0 {
		t.Errorf("the row says %+v; it led in %d", row, w.terms)
	}
}

// A Lead without an answer happens after all, when its replica has nothing to lead for: it resigns when it sees that.
func TestLeadHappensLate(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]Event{"nothing to lead for": JobsChanged{}, "no ring": RingChanged{}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newCrew(t, timing(), "a")
			call := w.first(0, "Lead")
			w.begin(global(time.Hour))
			w.until(time.Second)
			w.tell(0, (*call).Fail(context.DeadlineExceeded), then)
			w.until(3 * time.Second)
			w.make(*call)
			if w.until(5 * time.Second); w.row().Until.IsZero() || len(w.terms) > 0 {
				t.Errorf("the row says %+v; it led in %d", w.row(), w.terms)
			}
		})
	}
}

// The session ends, and with it the term; another one is not led before what was done in the first has ended, or half a lease is over.
func TestRolesEndBeforeNextTerm(t *testing.T) {
	t.Parallel()
	w := newCrew(t, timing(), "a")
	w.slow = true
	w.begin(global(10 * time.Second))
	w.until(time.Second)
	first := w.leads[0]
	if err := w.store.CloseSession(context.Background(), w.cores[0].session.Session); err != nil {
		t.Fatal(err)
	}
	w.until(4 * time.Second)
	if first == 0 || w.leads[0] != 0 || !w.cores[0].ready() {
		t.Errorf("after term %d it leads in %d, with another session: %v", first, w.leads[0], w.cores[0].ready())
	}
	if w.until(9 * time.Second); w.leads[0] <= first {
		t.Errorf("it leads in term %d after half a lease", w.leads[0])
	}
}

// The session is lost while a Lead is under way: its answer is of a session that is not ours, and nobody leads in it.
func TestSessionLostWithLeadUnderWay(t *testing.T) {
	t.Parallel()
	w := newCrew(t, timing(), "a")
	call := w.first(0, "Lead")
	w.begin(global(30 * time.Second))
	w.until(time.Second)
	r := w.make(*call)
	old := w.row()
	w.cores[0].lose("the test says so")
	w.tell(0, r)
	if w.until(5 * time.Second); len(w.terms) > 0 {
		t.Fatalf("it leads in terms %d", w.terms)
	}
	w.until(31 * time.Second)
	if row := w.row(); row.Term <= old.Term || len(w.terms) != 1 {
		t.Errorf("after term %d it leads in %d; the row says %+v", old.Term, w.terms, row)
	}
	w.wantRuns(ran(30*time.Second, 0, w.row().Term))
}

// Who leads loses it with its session, in the same step and before anything starts, also where the process was frozen.
func TestFrozenLeader(t *testing.T) {
	t.Parallel()
	w := newCrew(t, timing(), "a", "b")
	local := global(10 * time.Second)
	local.Name, local.Guarantee = "local", jobs.Efficiency
	w.begin(global(10*time.Second), local)
	w.until(15 * time.Second)
	first, frozen := w.leader(), time.Duration(0)
	w.done = nil
	for w.now < 45*time.Second { // the other one goes on alone
		w.now += 50 * time.Millisecond
		w.tell(1 - first)
	}
	for _, d := range w.done {
		if d.core == first {
			t.Errorf("%s started %v on the frozen one", d.Job, d.Due)
		}
	}
	w.leads[first], frozen = 0, w.now // as those see it who wait for it
	w.act = func(i int, a Action) []Event {
		if l, ok := a.(Lead); ok && i == first && l.Term == 0 {
			w.act = w.acted
			return []Event{Yielded{}}
		}
		if _, starts := a.(Start); starts {
			t.Errorf("%+v before it gave up", a)
		}
		return w.acted(i, a)
	}
	w.tell(first)
	w.act = w.acted
	w.until(frozen + time.Second)
	for _, d := range w.done {
		if d.core == first {
			t.Errorf("%s started %v on the one that was frozen", d.Job, d.Due)
		}
	}
	if w.leader() != 1-first {
		t.Errorf("core %d leads", w.leader())
	}
}

// LD-10: the store is away for a second as somebody comes to lead: what is due is decided when it is back.
func TestStoreAwayAtTheStart(t *testing.T) {
	t.Parallel()
	w := newCrew(t, timing(), "a", "b")
	w.begin(global(20 * time.Second))
	w.until(15 * time.Second)
	first := w.leader()
	w.kill(first)
	away := time.Duration(-1)
	w.call = func(_ int, name string) error {
		if name == "Decide" && away < 0 {
			away = w.now + time.Second
		}
		if w.now < away {
			return errDown
		}
		return nil
	}
	w.until(30 * time.Second)
	if away < 0 {
		t.Fatal("nothing was to be decided")
	}
	w.wantRuns(ran(20*time.Second, 1-first, w.terms[1]))
	if at := w.done[0].at; at > away+500*time.Millisecond {
		t.Errorf("it ran at %v, and the store was back at %v", at, away)
	}
}

// The answer to the leader's decision is lost, and the entry that a new leader knows is old: each due runs once.
func TestOldEntryOfNewLeader(t *testing.T) {
	t.Parallel()
	w := newCrew(t, timing(), "a", "b")
	w.begin(global(10 * time.Second))
	w.until(15 * time.Second)
	first := w.leader()
	w.cores[1-first].sweeper.next = time.Hour // it hears nothing of entries
	w.until(34 * time.Second)
	w.kill(first)
	w.cores[1-first].sweeper.next = 0
	w.until(55 * time.Second)
	for i, due := range []time.Duration{10, 20, 30, 40, 50} {
		if i >= len(w.done) || w.done[i].Due.Sub(epoch) != due*time.Second {
			t.Fatalf("started were %+v, want each due once", w.done)
		}
	}
}

// Two lead for a moment, as far as they know: each due is started once, and the other one tells that it was refused. What an earlier
// leader has opened is nothing that a later one tells of.
func TestTwoLeadersAtOneDue(t *testing.T) {
	t.Parallel()
	w := newCrew(t, elected(), "a", "b")
	refused := make([][]string, 2)
	w.act = func(i int, a Action) []Event {
		if r, ok := a.(Refused); ok {
			refused[i] = append(refused[i], fmt.Sprintf("%s %v %s", r.Job, r.Due.Sub(epoch), r.Cause))
		}
		return w.acted(i, a)
	}
	w.begin(global(10 * time.Second))
	w.elect(0, 1)
	w.until(19 * time.Second)
	w.cores[0].leader.next = time.Hour // it does not look who leads
	w.elect(1, 2)
	w.until(21 * time.Second)
	if w.leads[0] != 1 || w.leads[1] != 2 {
		t.Fatalf("leads: %v, want both", w.leads)
	}
	w.leads[0] = 0 // as those see it who know
	w.wantRuns(ran(10*time.Second, 0, 1), ran(20*time.Second, 0, 1))
	if len(refused[0]) != 0 || !slices.Equal(refused[1], []string{"global 20s taken"}) {
		t.Errorf("refused were %q, want the due that the first has started, by the second", refused)
	}
}
