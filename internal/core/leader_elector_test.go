package core

import (
	"context"
	"testing"
	"time"

	"github.com/belfry-go/belfry/jobs"
)

// Only whom the elector has elected asks to lead, and in its term; the others read who does.
func TestElectorElects(t *testing.T) {
	t.Parallel()
	w := newCrew(t, elected(), "a", "b")
	w.begin(global(10 * time.Second))
	w.until(5 * time.Second)
	if w.leader() >= 0 || w.calls["Lead"] != 0 || !w.stand[0] || !w.stand[1] {
		t.Fatalf("before an election core %d leads; stands: %v; %d calls of Lead", w.leader(), w.stand, w.calls["Lead"])
	}
	w.elect(1, 42)
	w.until(11 * time.Second)
	if row := w.row(); row.Term != 42 || row.Replica != "b" {
		t.Errorf("the row says %+v", row)
	}
	w.wantRuns(ran(10*time.Second, 1, 42))
	for i, led := range w.led {
		if len(led) != 1 || led[0].Term != 42 || led[0].Mine != (i == 1) {
			t.Errorf("core %d was told %+v", i, led)
		}
	}
	w.tell(1, Deposed{Term: 41, Why: "of long ago"})
	if w.leader() != 1 {
		t.Error("the end of another term ended ours")
	}
	w.tell(1, Deposed{Term: 42, Why: "its lease ended"})
	if row := w.row(); w.leader() >= 0 || row.Why != "resigned: its lease ended" || !w.stand[1] {
		t.Errorf("core %d leads; the row says %+v; b stands: %v, want so again", w.leader(), row, w.stand[1])
	}
}

// A term that ends as something comes due: nothing is started in it.
func TestDeposedAtTheDue(t *testing.T) {
	t.Parallel()
	w := newCrew(t, elected(), "a", "b")
	local := global(10 * time.Second)
	local.Name, local.Guarantee = "local", jobs.Efficiency
	w.begin(global(10*time.Second), local)
	w.elect(0, 1)
	w.until(9999 * time.Millisecond)
	w.now = 10100 * time.Millisecond
	w.tell(0, Deposed{Term: 1, Why: "its lease ended"})
	if w.wantRuns(); w.leader() >= 0 {
		t.Error("it leads")
	}
}

// A term that was won when the replica did not stand any more is waited out; it stands again after that.
func TestElectedTooLate(t *testing.T) {
	t.Parallel()
	w := newCrew(t, elected(), "a")
	w.begin(global(10 * time.Second))
	w.cores[0].lose("the test says so")
	w.tell(0, Elected{Term: 1})
	w.until(15 * time.Second)
	if w.leader() >= 0 || w.stand[0] {
		t.Errorf("core %d leads; it stands: %v", w.leader(), w.stand[0])
	}
	w.tell(0, Deposed{Term: 1})
	w.until(16 * time.Second)
	w.elect(0, 2)
	w.until(21 * time.Second)
	w.wantRuns(ran(10*time.Second, 0, 2), ran(20*time.Second, 0, 2))
}

// Where somebody leads in a higher term than the elector gave us, we have us elected anew after a pause; a leader ends its term then.
func TestHigherTerm(t *testing.T) {
	t.Parallel()
	w := newCrew(t, elected(), "a", "b")
	w.begin(global(10 * time.Second))
	w.elect(1, 9)
	w.elect(0, 5)
	if w.leader() != 1 || w.stand[0] {
		t.Fatalf("core %d leads; the other stands: %v, want not in a term below", w.leader(), w.stand[0])
	}
	w.tell(0, Deposed{Term: 5})
	w.until(time.Second)
	if w.stand[0] {
		t.Error("it stands again at once")
	}
	w.until(4 * time.Second)
	w.elect(0, 10)
	if w.leads[0] != 10 {
		t.Fatalf("core 0 leads in term %d", w.leads[0])
	}
	w.until(6 * time.Second) // b, whom nobody told, reads it
	if w.leader() != 0 || w.calls["Resign"] != 0 {
		t.Errorf("core %d leads; %d calls of Resign, want none of a term that somebody took", w.leader(), w.calls["Resign"])
	}
	if last := w.led[1][len(w.led[1])-1]; last.Mine || last.Term != 10 {
		t.Errorf("b was told last of %+v", last)
	}
	w.until(11 * time.Second)
	w.wantRuns(ran(10*time.Second, 0, 10))
}

// Elected anew before it was told of the end of its term, a leader ends the one before it begins the other.
func TestElectedAnew(t *testing.T) {
	t.Parallel()
	w := newCrew(t, elected(), "a")
	w.begin(global(10 * time.Second))
	w.elect(0, 1)
	w.tell(0, Elected{Term: 2})
	if w.leader() >= 0 || w.stand[0] {
		t.Error("it leads, or stands, while a term is to be waited out")
	}
	w.tell(0, Deposed{Term: 2})
	w.elect(0, 3)
	w.until(11 * time.Second)
	w.wantRuns(ran(10*time.Second, 0, 3))
}

// The session ends a term of the elector too; the replica stands again when it has another one.
func TestSessionEndsElectorsTerm(t *testing.T) {
	t.Parallel()
	w := newCrew(t, elected(), "a", "b")
	w.begin(global(time.Hour))
	w.elect(0, 1)
	w.call = func(i int, _ string) error {
		if i == 0 {
			return errDown
		}
		return nil
	}
	w.until(10 * time.Second)
	if w.leader() >= 0 || w.stand[0] || w.calls["Resign"] != 0 {
		t.Errorf("core %d leads; stands: %v; %d calls of Resign", w.leader(), w.stand, w.calls["Resign"])
	}
	if last := w.led[0][len(w.led[0])-1]; last.Mine || last.Why != "its session ended" {
		t.Errorf("it was told last of %+v", last)
	}
	w.call = nil
	w.tell(0, Deposed{Term: 1})
	w.until(13 * time.Second)
	if !w.stand[0] {
		t.Error("it does not stand again")
	}
}

// Without a store the elector's word is enough, for efficiency jobs and roles; only who leads knows it.
func TestElectorWithoutStore(t *testing.T) {
	t.Parallel()
	cfg := elected()
	cfg.Store = false
	w := newCrew(t, cfg, "a", "b")
	j := global(10 * time.Second)
	j.Guarantee = jobs.Efficiency
	w.begin(j)
	w.until(12 * time.Second)
	w.elect(0, 3)
	w.until(22 * time.Second)
	w.tell(0, Deposed{Term: 3, Why: "its lease ended"})
	w.elect(1, 4)
	w.until(32 * time.Second)
	w.tell(1, Stop{Why: "SIGTERM"})
	w.until(42 * time.Second)
	w.wantRuns(ran(20*time.Second, 0, 3), ran(30*time.Second, 1, 4)) // those without a leader are left out
	if len(w.calls) != 0 || len(w.led[0]) != 2 || len(w.led[1]) != 2 || !w.cores[1].stopped {
		t.Fatalf("calls %v; told %+v; stopped: %v", w.calls, w.led, w.cores[1].stopped)
	}
	if first, last := w.led[0][0], w.led[0][1]; !first.Mine || first.Term != 3 || last.Mine || last.Until.IsZero() || last.Why != "resigned: its lease ended" {
		t.Errorf("told were %+v and %+v", first, last)
	}
}

// An efficiency job of the leader's is run by it alone, also where it has a store; what has not started when its term ends does not start.
func TestLocalJobOfLeader(t *testing.T) {
	t.Parallel()
	cfg := timing()
	cfg.Concurrency = 1
	w := newCrew(t, cfg, "a", "b")
	j := global(10 * time.Second)
	j.Guarantee = jobs.Efficiency
	slow := jobs.Job{Name: "slow", Schedule: jobs.Every(10 * time.Second).Phase(9 * time.Second), Run: none, Guarantee: jobs.Efficiency, Placement: jobs.EveryReplica}
	w.begin(j)
	w.until(15 * time.Second)
	first := w.leader()
	w.wantRuns(ran(10*time.Second, first, w.terms[0]))
	w.long["slow"] = true
	for i := range w.cores {
		w.tell(i, JobsChanged{Jobs: []jobs.Job{j.WithDefaults(), slow.WithDefaults()}})
	}
	w.until(21 * time.Second) // it waits for the worker
	w.done = w.done[:0]
	w.tell(first, RingChanged{})
	for _, h := range w.cores[first].sortedHeld() {
		w.tell(first, Ended{Handle: h.handle})
	}
	w.until(22 * time.Second)
	w.wantRuns()
	if got := w.refused("global"); len(got) != 1 || got[0] != causeLeader {
		t.Errorf("refused were %q, want one for %q", got, causeLeader)
	}
}

// A term that was given up while its Lead was under way, and then won again in a later one, is led in the later one alone.
func TestLateLeadOfEarlierTerm(t *testing.T) {
	t.Parallel()
	w := newCrew(t, elected(), "a")
	w.begin(global(10 * time.Second))
	call := w.first(0, "Lead")
	w.elect(0, 1)
	w.tell(0, Deposed{Term: 1})
	w.tell(0, Elected{Term: 2})
	w.tell(0, (*call).Do(context.Background(), w.store))
	w.until(11 * time.Second)
	if w.row().Term != 2 || len(w.terms) != 1 {
		t.Errorf("the row says %+v; it led in %d", w.row(), w.terms)
	}
	w.wantRuns(ran(10*time.Second, 0, 2))
}
