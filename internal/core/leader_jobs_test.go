package core

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

// HandOverAfter: when a replica has seen no leader for so long, the ring's ranks hold for it, until somebody leads. The others hold.
func TestHandOver(t *testing.T) {
	t.Parallel()
	w := newCrew(t, elected(), "a", "b", "c")
	handed, held := global(10*time.Second), global(10*time.Second)
	handed.HandOverAfter, held.Name = 15*time.Second, "held"
	w.begin(handed, held)
	w.until(12 * time.Second)
	if w.wantRuns(); w.stand[0] != true {
		t.Fatal("nobody stands")
	}
	w.until(19 * time.Second)
	if len(w.done) != 1 || w.done[0].Term != 0 || w.done[0].at < 15*time.Second {
		t.Fatalf("started were %+v, want what is due by whoever saw first that nobody leads", w.done)
	}
	owner, leader := w.other("global")
	w.done = nil
	w.until(25 * time.Second)
	w.wantRuns(ran(20*time.Second, owner, 0))
	w.done = nil
	w.elect(leader, 7)
	w.wantRuns(ran(10*time.Second, leader, 7), ran(20*time.Second, leader, 7)) // what was held
	w.done = nil
	w.until(35 * time.Second)
	w.wantRuns(ran(30*time.Second, leader, 7), ran(30*time.Second, leader, 7))
	w.tell(leader, Deposed{Term: 7, Why: "the test says so"})
	w.done = nil
	w.until(45 * time.Second)
	w.wantRuns() // nobody leads, but not for long yet
}

// The time without a leader is each replica's own, as it has read it: one that could not read waits, also where it is the owner.
func TestHandOverCountsPerReplica(t *testing.T) {
	t.Parallel()
	w := newCrew(t, elected(), "a", "b")
	j := global(30 * time.Second)
	j.HandOverAfter = 15 * time.Second
	w.begin(j)
	w.until(10 * time.Second)
	owner, _ := w.other("global")
	w.call = func(i int, name string) error {
		if i == owner && name == "Leader" {
			return errDown
		}
		return nil
	}
	w.until(35 * time.Second)
	w.wantRuns(ran(30*time.Second, 1-owner, 0))
	w.call, w.done = nil, nil
	w.until(65 * time.Second)
	w.wantRuns(ran(60*time.Second, owner, 0))
}

// A new leader decides at once what has come due, whatever its rank in the ring.
func TestNewLeaderOpensAtOnce(t *testing.T) {
	t.Parallel()
	w := newCrew(t, elected(), "a", "b", "c")
	w.begin(global(10 * time.Second))
	w.until(10*time.Second + 100*time.Millisecond)
	_, leader := w.other("global")
	w.elect(leader, 1)
	w.wantRuns(ran(10*time.Second, leader, 1))
}

// Where nobody leads for longer than MissedAfter, Missed says what becomes of the dues, as after any absence.
func TestMissedWithoutLeader(t *testing.T) {
	t.Parallel()
	for policy, want := range map[jobs.MissedPolicy][]time.Duration{
		jobs.MissedSkip: {4 * time.Minute, 5 * time.Minute},
		jobs.MissedAll:  {time.Minute, 2 * time.Minute, 3 * time.Minute, 4 * time.Minute, 5 * time.Minute},
	} {
		t.Run(fmt.Sprint(policy), func(t *testing.T) {
			t.Parallel()
			w := newCrew(t, elected(), "a", "b")
			j := global(time.Minute)
			j.Missed = jobs.Missed{Policy: policy}
			w.begin(j)
			w.until(4*time.Minute + 30*time.Second)
			w.elect(0, 1)
			w.until(5*time.Minute + 10*time.Second)
			var got []time.Duration
			for _, d := range w.done {
				got = append(got, d.Due.Sub(epoch))
			}
			if !slices.Equal(got, want) {
				t.Errorf("run were %v, want %v", got, want)
			}
		})
	}
}

// While the leader has the old code of a job that was edited, a replica with the new code puts it in force; after a Lease those
// who have the new code run it; and a leader who has it runs it at once.
func TestEditedUnderOldLeader(t *testing.T) {
	t.Parallel()
	w := newCrew(t, elected(), "a", "b", "c")
	w.begin(global(10 * time.Second))
	w.elect(0, 1)
	w.until(22 * time.Second)
	w.wantRuns(ran(10*time.Second, 0, 1), ran(20*time.Second, 0, 1))
	w.done = nil
	edited := global(9 * time.Second).WithDefaults()
	w.tell(1, JobsChanged{Jobs: []jobs.Job{edited}})
	w.until(31 * time.Second)
	w.wantRuns() // 27 s waits: the leader may soon have the code
	w.until(34 * time.Second)
	w.wantRuns(ran(27*time.Second, 1, 0))
	w.until(46 * time.Second)
	w.wantRuns(ran(27*time.Second, 1, 0), ran(36*time.Second, 1, 0), ran(45*time.Second, 1, 0))
	w.tell(0, Deposed{Term: 1, Why: "its lease ended"})
	w.elect(1, 2)
	w.until(55 * time.Second)
	if last := w.done[len(w.done)-1]; len(w.done) != 4 || last.core != 1 || last.Term != 2 {
		t.Errorf("started were %+v, want the last by core 1 in term 2", w.done)
	}
	w.done = nil // and back again
	w.tell(1, JobsChanged{Jobs: []jobs.Job{global(10 * time.Second).WithDefaults()}})
	w.until(61 * time.Second)
	w.wantRuns(ran(60*time.Second, 1, 2))
}

// A leader who has not a job at all lets those run it who have, a Lease and a Sweep or so after a due that it should have opened; when it
// has the job again, they see so within a Lease.
func TestLeaderLacksCode(t *testing.T) {
	t.Parallel()
	w := newCrew(t, elected(), "a", "b", "c")
	j := global(10 * time.Second)
	j.Missed = jobs.Missed{Policy: jobs.MissedSkip}
	w.begin(j)
	w.elect(0, 1)
	w.until(61 * time.Second)
	w.done, w.calls["Overview"] = nil, 0
	w.tell(0, JobsChanged{Roles: true})
	w.until(79 * time.Second)
	w.wantRuns() // it may have it again soon
	if n := w.calls["Overview"]; n > 8 {
		t.Errorf("the others asked %d times who has what, want each half a lease at most, from the due on", n)
	}
	w.until(124 * time.Second)
	for i, d := range w.done {
		if due := d.Due.Sub(epoch); due != time.Duration(7+i)*10*time.Second || d.core == 0 || d.Term != 0 || d.at > max(due+3*time.Second, 84*time.Second) {
			t.Errorf("due %v was started at %v by core %d in term %d", due, d.at, d.core, d.Term)
		}
	}
	if len(w.done) != 6 || len(w.ranges()) != 0 {
		t.Errorf("%d dues were run, want six; the others: %+v", len(w.done), w.ranges())
	}
	w.tell(0, JobsChanged{Roles: true, Jobs: []jobs.Job{j.WithDefaults()}})
	w.until(136 * time.Second)
	w.done = nil
	w.until(151 * time.Second)
	w.wantRuns(ran(140*time.Second, 0, 1), ran(150*time.Second, 0, 1))
	for i, c := range w.cores[1:] {
		if !c.held(c.jobs["global"]) {
			t.Errorf("core %d does not know that the leader has the job again", i+1)
		}
	}
}

// One answer of the store that fails as it is asked who has what code is asked for again: nothing due is lost meanwhile. And where that
// call fails for long, it is made once a Sweep, not more and more often.
func TestRosterFails(t *testing.T) {
	t.Parallel()
	w := newCrew(t, elected(), "a", "b", "c")
	j := global(10 * time.Second)
	j.Missed = jobs.Missed{Policy: jobs.MissedSkip}
	fails := 3 * time.Second
	failed := make([]int, 3)
	w.call = func(i int, name string) error {
		if name == "Overview" && w.now > 61*time.Second && w.now < 61*time.Second+fails {
			failed[i]++
			return errDown
		}
		return nil
	}
	w.begin(j)
	w.elect(0, 1)
	w.until(61 * time.Second)
	w.tell(1, JobsChanged{Roles: true})
	w.done = nil
	w.tell(0, Deposed{Term: 1, Why: "the test says so"})
	w.elect(1, 2)
	w.until(101 * time.Second)
	if len(w.done) != 4 || len(w.ranges()) != 0 || slices.Max(failed) < 2 {
		t.Errorf("%d dues were run, want four; the others: %+v; by core %v calls failed", len(w.done), w.ranges(), failed)
	}
	clear(failed)
	fails = time.Hour
	w.until(10 * time.Minute)
	clear(failed)
	w.until(11 * time.Minute)
	if most := slices.Max(failed); most > 65 {
		t.Errorf("%d calls failed in a minute, want one a second", most)
	}
}

// A job with keys is the leader's with all its keys. What it has not claimed when it is deposed, the next leader claims.
func TestKeysOfLeader(t *testing.T) {
	t.Parallel()
	w := newCrew(t, elected(), "a", "b")
	j := global(10 * time.Second)
	j.Keys = jobs.KeyList("k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7")
	cfg := &w.cores[0].cfg
	cfg.Concurrency = 3
	w.long["global"] = true
	w.streams(j.Keys)
	w.begin(j)
	w.elect(0, 1)
	w.until(11 * time.Second)
	if len(w.done) != 3 {
		t.Fatalf("%d keys run, want as many as the leader has workers", len(w.done))
	}
	w.tell(0, Deposed{Term: 1, Why: "the test says so"})
	if n := len(w.cores[0].passes); n > 0 {
		t.Errorf("it goes on with %d passes", n)
	}
	w.long["global"] = false
	w.elect(1, 2)
	w.until(13 * time.Second)
	byTerm := map[int64]int{}
	keys := map[string]bool{}
	for _, d := range w.done {
		byTerm[d.Term]++
		keys[d.Key] = true
		if int64(d.core)+1 != d.Term {
			t.Errorf("core %d runs %s in term %d", d.core, d.Key, d.Term)
		}
	}
	if byTerm[1] != 3 || byTerm[2] != 5 || len(keys) != 8 {
		t.Errorf("%v keys run by term, want 3 and 5, of all keys", byTerm)
	}
	for _, d := range w.done[:3] { // they run on
		w.tell(0, Ended{Handle: d.handle})
	}
	w.until(15 * time.Second)
	for _, r := range w.rows() {
		if want := map[bool]int64{true: 1, false: 2}[slices.ContainsFunc(w.done[:3], func(d doneBy) bool { return d.Key == r.ID.Key })]; r.Outcome != idempotency.Done || r.Term != want {
			t.Errorf("%s ended %v (%s) in term %d, want done in %d", r.ID.Key, r.Outcome, r.Reason, r.Term, want)
		}
	}
}

// LD-11: a run of a leader that leads no more goes on under its claim; the next due runs on the next leader.
func TestRunOutlivesTerm(t *testing.T) {
	t.Parallel()
	w := newCrew(t, elected(), "a", "b")
	w.long["global"] = true
	j := global(time.Minute)
	j.Timeout = time.Hour
	j.Overlap = jobs.OverlapAllow
	w.begin(j)
	w.elect(0, 1)
	w.until(70 * time.Second)
	w.tell(0, Deposed{Term: 1, Why: "its lease ended"})
	w.elect(1, 2)
	w.until(130 * time.Second)
	w.wantRuns(ran(time.Minute, 0, 1), ran(2*time.Minute, 1, 2))
	w.tell(0, Ended{Handle: w.done[0].handle})
	w.until(131 * time.Second)
	if r := w.rows()[0]; r.Outcome != idempotency.Done || r.Crashes != 0 || r.Term != 1 {
		t.Errorf("the first run is %+v, want it done, by its first claim", r)
	}
}
