package sim_test

import (
	"testing"
	"time"

	"github.com/belfry-go/belfry/internal/sim"
	"github.com/belfry-go/belfry/internal/sim/oracle"
	"github.com/belfry-go/belfry/jobs"
)

// F61: jobs are edited, removed, added back and renamed at random, while runs are pending and replicas die, stand
// still and lose calls. TestExplore does that too, beside everything else; here all of it happens in each seed.
func TestEdits(t *testing.T) {
	t.Parallel()
	ended := map[string]map[oracle.Outcome]int{}
	for seed := range uint64(20) {
		w, err := sim.Explore(seed, sim.Options{Only: sim.Edit | sim.Kill | sim.Freeze | sim.Loss | sim.Drain | sim.Long | sim.Error})
		if err != nil {
			t.Errorf("seed %d at %v: %v\nreplay: go test ./internal/sim -run TestExplore -sim.seeds 1 -sim.from %d -sim.only edit,kill,freeze,loss,drain,long,error -sim.trace",
				seed, w.Now(), err, seed)
		}
		for _, job := range []string{"keyed", "plain", "once", "renamed"} {
			if ended[job] == nil {
				ended[job] = map[oracle.Outcome]int{}
			}
			for o, n := range w.Oracle.Tally(job) {
				ended[job][o] += n
			}
		}
	}
	missed := 0
	for job, n := range ended {
		if missed += n[oracle.Missed]; n[oracle.Done] == 0 {
			t.Errorf("job %s ended %v: the edits do not reach it", job, n)
		}
	}
	if missed == 0 {
		t.Error("no job was away for long enough to miss a due")
	}
}

// F61: a job is removed from all replicas while a run waits for its next attempt and keys of a due are still to run,
// and is added back. What was pending goes on; what was due meanwhile is late, and decided by its policy.
func TestRemovedWhilePending(t *testing.T) {
	t.Parallel()
	failed := map[string]bool{}
	once := func(_ *sim.Replica, o jobs.Occurrence) sim.Work {
		if id := o.ID(); s4(o) && !failed[id] {
			failed[id] = true
			return sim.Work{Takes: ms, Err: errTest}
		}
		return sim.Work{Takes: ms}
	}
	skip := jobs.Missed{Policy: jobs.MissedSkip}
	here := sim.Plan{Every: 2 * time.Second, Missed: skip}
	plans := []sim.Plan{here, {Gone: true}, here}
	s := newScene(t, sim.Config{Jobs: []sim.Job{
		{Name: "plain", Plans: plans, Work: once}, {Name: "keyed", Plans: plans, Source: sim.NewSource(12), Work: once},
	}})
	s.changeAll(4100*ms, 1)
	s.changeAll(17*time.Second, 2)
	s.At(10*time.Second, func() { s.Replica(0).Kill(); s.Replica(0).Restart(ms) })
	s.settle(32*time.Second, 28*time.Second)
	// Late at 17 s are 6 and 8; 10 … 16 are younger than 8 s.
	const before, during, after = 2, 4, 8 // 2 and 4; 10 … 16; 18 … 32
	for job, keys := range map[string]int{"plain": 1, "keyed": 12} {
		got := s.Oracle.Tally(job)
		if got[oracle.Missed] != 2 || got[oracle.Done] < keys*(before+during+after-1) || got[oracle.Failed]+got[oracle.Skipped] > 0 {
			t.Errorf("job %s ended %v", job, got)
		}
		id := s.id(job, map[string]string{"plain": "plain", "keyed": "k007"}[job], 4*time.Second)
		if r, _ := s.Oracle.Row(id); r.Outcome != oracle.Done || r.Attempt != 2 {
			t.Errorf("the run that was pending is %v after %d attempts, want it done after 2", r.Outcome, r.Attempt)
		}
	}
}

// s4 is whether an occurrence is due 4 s after the world's beginning.
func s4(o jobs.Occurrence) bool { return o.Due.Unix() == sim.Unix(4*time.Second) }

// F61: a job gets another name, and its old one back. Each name is a job of its own: the new one has missed nothing,
// and the old one has what was due meanwhile decided when it is back.
func TestRenamedAndBack(t *testing.T) {
	t.Parallel()
	all := jobs.Missed{Policy: jobs.MissedAll}
	here := sim.Plan{Every: 2 * time.Second, Missed: all}
	s := newScene(t, sim.Config{Jobs: []sim.Job{
		{Name: "old", Plans: []sim.Plan{here, {Gone: true}, here}},
		{Name: "new", Plans: []sim.Plan{{Gone: true}, here, {Gone: true}}},
	}})
	s.changeAll(5*time.Second, 1)
	s.changeAll(15*time.Second, 2)
	s.play(29 * time.Second)
	s.tally("old", done(14)) // 2 … 28, and of these 6 … 14 late
	s.tally("new", done(5))  // 6 … 14
}

// F61, DP-01: the schedules are edited while a due is open and the replica that opened it dies. Every due up to then is the old
// schedule's, every one from then on the new one's.
func TestEditedWhileOpen(t *testing.T) {
	t.Parallel()
	plans := []sim.Plan{{Every: 4 * time.Second}, {Every: 4 * time.Second, Phase: 3 * time.Second}}
	slow := func(*sim.Replica, jobs.Occurrence) sim.Work { return sim.Work{Takes: 400 * ms} }
	s := newScene(t, sim.Config{Jobs: []sim.Job{
		{Name: "plain", Plans: plans, Work: slow}, {Name: "keyed", Plans: plans, Source: sim.NewSource(30), Work: slow},
	}})
	s.At(4300*ms, func() { s.Owner("plain").Kill(); s.Owner("plain").Restart(ms) })
	s.changeAll(4350*ms, 1)
	s.settle(20*time.Second, 16*time.Second)
	got := s.Oracle.Tally("plain")
	if got[oracle.Done] != 5 || got[oracle.Missed]+got[oracle.Skipped]+got[oracle.Failed] > 0 { // 4; 7, 11, 15, 19
		t.Errorf("the plain job ended %v", got)
	}
	for key, due := range map[string]time.Duration{"k000": 4 * time.Second, "k029": 7 * time.Second} {
		if r, ok := s.Oracle.Row(s.id("keyed", key, due)); !ok || r.Outcome != oracle.Done {
			t.Errorf("key %s at %v is %v", key, due, r.Outcome)
		}
	}
	if _, ran := s.Oracle.Row(s.id("plain", "plain", 3*time.Second)); ran {
		t.Error("a due of the new schedule from before the edit ran")
	}
}

// changeAll gives every replica another version of the jobs, one after the other.
func (s *scene) changeAll(at time.Duration, version int) {
	for i := range 3 {
		s.At(at+time.Duration(i)*50*ms, func() { s.Replica(i).Change(version) })
	}
}
