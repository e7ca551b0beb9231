package core

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/belfry-go/belfry/jobs"
)

// streams has streams yield the keys of a job at once.
func (w *crew) streams(source jobs.KeySource) {
	asked := map[[2]int64]jobs.KeyRange{}
	w.act = func(i int, a Action) []Event {
		switch a := a.(type) {
		case OpenStream:
			asked[[2]int64{int64(i), a.Stream}] = a.Range
		case Pull:
			var keys []string
			for k := range source.Keys(context.Background(), asked[[2]int64{int64(i), a.Stream}]) {
				keys = append(keys, k)
			}
			return []Event{Streamed{Stream: a.Stream, Keys: keys, End: true}}
		}
		return w.acted(i, a)
	}
}

// other is a core that owns what the other one is to lead.
func (w *crew) other(key string) (owner, leader int) {
	owner = slices.IndexFunc(w.cores, func(c *Core) bool { return c.rank(c.partition(key)) == 0 })
	return owner, (owner + 1) % len(w.cores)
}

// A job of the leader's with Limit.Cluster has all of that on the leader; and the leader alone asks to close its dues, whoever owns
// its name.
func TestLeaderLimitsAndCloses(t *testing.T) {
	t.Parallel()
	w := newCrew(t, elected(), "a", "b")
	j := global(20 * time.Second)
	j.Keys, j.Limit.Cluster = jobs.KeyList("k0", "k1", "k2"), 1
	w.streams(j.Keys)
	w.begin(j)
	owner, leader := w.other("global")
	closes := make([]int, 2)
	w.call = func(i int, name string) error {
		if name == "CloseDue" {
			closes[i]++
		}
		return nil
	}
	w.elect(leader, 1)
	w.long["global"] = true
	w.until(21 * time.Second)
	for n := 1; n <= 3; n++ {
		if len(w.done) != n {
			t.Fatalf("%d runs have begun, want one after the other: %d", len(w.done), n)
		}
		w.tell(leader, Ended{Handle: w.done[n-1].handle})
		w.until(w.now + time.Second)
	}
	if w.until(26 * time.Second); closes[leader] != 1 || closes[owner] != 0 {
		t.Errorf("calls of CloseDue by core: %v, want one, by core %d", closes, leader)
	}
}

// What was about to be claimed or decided in a term is not any more when it ends; nor does it come back with another term.
func TestUnsentWithTheTerm(t *testing.T) {
	t.Parallel()
	w := newCrew(t, elected(), "a", "b")
	keyed, plain := global(10*time.Second), global(10*time.Second)
	keyed.Name, keyed.Keys = "keyed", jobs.KeyList("k0", "k1")
	early := plain
	early.Name, early.Schedule = "early", jobs.Every(10*time.Second).Phase(9*time.Second)
	w.streams(keyed.Keys)
	w.begin(plain, early, keyed)
	w.elect(0, 1)
	decide := w.first(0, "Decide")
	w.until(9500 * time.Millisecond)
	r := w.make(*decide)
	w.until(10200 * time.Millisecond) // the others wait for the answer
	if n := len(w.cores[0].decides.queue.q); n != 2 {
		t.Fatalf("%d decisions wait, want two", n)
	}
	w.tell(0, Deposed{Term: 1, Why: "the test says so"})
	calls := w.calls["Decide"]
	w.tell(0, r)
	w.until(15 * time.Second)
	if n := w.calls["Decide"] - calls; n != 0 {
		t.Errorf("%d calls of Decide after the term", n)
	}
	w.wantRuns(ran(9*time.Second, 0, 1)) // this was won
	claim := w.first(1, "Claim")
	w.cores[1].cfg.Concurrency = 1
	w.elect(1, 2)
	w.until(17 * time.Second)
	w.cores[1].cfg.Concurrency = 4
	w.until(18 * time.Second)
	if len(w.cores[1].claims.queue.q) == 0 {
		t.Fatal("no claim waits for another one's answer")
	}
	w.tell(1, Deposed{Term: 2, Why: "the test says so"})
	calls = w.calls["Claim"]
	w.tell(1, w.make(*claim))
	w.until(19 * time.Second)
	if n := w.calls["Claim"] - calls; n != 0 {
		t.Errorf("%d calls of Claim after the term", n)
	}
}

// Runs that waited for a worker of a leader are run by the next one; when the first leads again it does not ask for them.
func TestWaitingRunsChangeLeader(t *testing.T) {
	t.Parallel()
	cfg := elected()
	cfg.Concurrency = 1
	w := newCrew(t, cfg, "a", "b")
	w.long["slow"] = true
	slow := jobs.Job{Name: "slow", Schedule: jobs.Every(time.Hour).Phase(9 * time.Second), Run: none, Placement: jobs.Leader, Timeout: time.Hour}
	w.begin(global(10*time.Second), slow)
	w.elect(0, 1)
	w.until(12 * time.Second)
	w.wantRuns(ran(9*time.Second, 0, 1))
	w.tell(0, Deposed{Term: 1, Why: "the test says so"})
	w.elect(1, 2)
	w.until(15 * time.Second)
	w.wantRuns(ran(9*time.Second, 0, 1), ran(10*time.Second, 1, 2))
	w.tell(1, Deposed{Term: 2, Why: "the test says so"})
	w.elect(0, 3)
	w.tell(0, Ended{Handle: w.done[0].handle})
	w.until(21 * time.Second)
	if got := w.refused("global"); len(got) != 0 {
		t.Errorf("refused were %q, want none", got)
	}
	w.wantRuns(ran(9*time.Second, 0, 1), ran(10*time.Second, 1, 2), ran(20*time.Second, 0, 3))
}

// While the row that says so is being confirmed a leader gives up: it resigns after that answer, and after its roles.
func TestResignComesLast(t *testing.T) {
	t.Parallel()
	for name, rolesFirst := range map[string]bool{"roles end first": true, "the answer comes first": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newCrew(t, timing(), "a", "b")
			w.begin(global(time.Hour))
			w.until(2500 * time.Millisecond)
			first := w.leader()
			call := w.first(first, "Lead")
			w.until(3600 * time.Millisecond)
			w.slow = true
			w.tell(first, JobsChanged{})
			r := w.make(*call)
			events := []Event{r, Yielded{}}
			if rolesFirst {
				events = []Event{Yielded{}, r}
			}
			w.tell(first, events[0])
			if w.calls["Resign"] != 0 {
				t.Error("it resigned too early")
			}
			w.tell(first, events[1])
			if w.calls["Resign"] != 1 || w.row().Until.IsZero() {
				t.Errorf("%d calls of Resign; the row says %+v", w.calls["Resign"], w.row())
			}
		})
	}
}

// The end of an earlier term's roles, which took too long, is not taken for that of a later term.
func TestRolesOfEarlierTermEndLate(t *testing.T) {
	t.Parallel()
	w := newCrew(t, elected(), "a")
	w.begin(global(time.Hour))
	w.slow = true
	w.elect(0, 1)
	w.tell(0, Deposed{Term: 1})
	w.until(6 * time.Second) // half a lease is over
	w.elect(0, 2)
	w.tell(0, Deposed{Term: 2})
	w.tell(0, Yielded{})
	if w.calls["Resign"] != 1 {
		t.Fatal("it resigned its second term before the roles of that ended")
	}
	w.tell(0, Yielded{})
	if w.calls["Resign"] != 2 {
		t.Error("it did not resign its second term")
	}
}
