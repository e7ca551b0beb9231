package sim_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/internal/sim"
	"github.com/belfry-go/belfry/internal/sim/oracle"
	"github.com/belfry-go/belfry/jobs"
)

// The interleavings that broke earlier wordings of the protocol, by their names there.

// F1: partitions gained by a pass under way would lose the keys before its cursor.
func TestPartitionsGained(t *testing.T) {
	t.Parallel()
	source := sim.NewSource(40)
	source.Batch = 1
	source.Flow = func(*sim.Replica, time.Duration, int) (sim.Flow, bool) { return sim.Flow{Takes: 20 * ms}, true }
	s := newScene(t, sim.Config{Replicas: 2, Jobs: []sim.Job{{Name: "keyed", Plans: at(5 * time.Second), Source: source}}})
	s.At(5200*ms, func() { s.Replica(1).Drain(nil) })
	s.settle(12*time.Second, 5*time.Second)
	s.tally("keyed", done(40))
	s.demand(1, "r1", "drains")
	s.demand(2, "r0", "stream opens")
}

// F2: a claim would commit after its due was closed.
func TestClaimAfterClosing(t *testing.T) {
	t.Parallel()
	source := sim.NewSource(3)
	s := newScene(t, sim.Config{Replicas: 2, Jobs: []sim.Job{{Name: "keyed", Plans: every(5 * time.Second), Source: source}}})
	s.At(3*time.Second, func() { s.Replica(0).Omit("r1"); s.Replica(1).Omit("r0") }) // each owns all
	source.Flow = func(r *sim.Replica, _ time.Duration, _ int) (sim.Flow, bool) {
		if r.Name == "r0" {
			source.Add("late") // once the first stream of r0 has begun, and before that of r1
			return sim.Flow{Takes: 300 * ms}, true
		}
		return sim.Flow{}, false
	}
	s.Fate = func(r *sim.Replica, call string) (sim.Fate, bool) {
		f := sim.Fate{Commit: ms, Reply: ms}
		switch {
		case r.Name == "r1" && call == "Claim":
			f.Commit = 350 * ms
		case r.Name == "r1" && call == "Decide":
			f.Commit = 5 * ms // r0 opens
		}
		return f, true
	}
	s.settle(12*time.Second, 10*time.Second)
	s.demand(1, "r1", "refused", "keyed/late", "closed")
	if _, ran := s.Oracle.Row(s.id("keyed", "late", 5*time.Second)); ran {
		t.Error("the late key ran at a due that was closed")
	}
	s.tally("keyed", done(3+4))
}

// F3: a done run would be recorded as missed, or run again, by an owner whose workers were jammed. It lets its pass
// go when it sees the due closed; that the store would refuse its claims, and record nothing, storetest shows.
func TestJammedOwner(t *testing.T) {
	t.Parallel()
	keyed := sim.NewSource(12)
	keyed.Flow = func(*sim.Replica, time.Duration, int) (sim.Flow, bool) { return sim.Flow{Takes: 700 * ms}, true }
	timing := sim.Short()
	timing.Concurrency = 2
	s := newScene(t, sim.Config{Replicas: 2, Timing: timing})
	jam := func(r *sim.Replica, _ jobs.Occurrence) sim.Work {
		if r.Name == "r0" && s.Now() < 10*time.Second {
			return sim.Work{Takes: 30 * time.Second}
		}
		return sim.Work{Takes: ms}
	}
	s.Add(sim.Job{Name: "jam", Plans: at(5 * time.Second), Source: sim.NewSource(40), Timeout: time.Minute, Work: jam, Limit: jobs.Limit{PerReplica: -1}})
	s.Add(sim.Job{Name: "keyed", Plans: at(5 * time.Second), Source: keyed})
	for t := 6 * time.Second; t < 40*time.Second; t += time.Second {
		s.At(t, s.Prune)
	}
	s.settle(50*time.Second, 5*time.Second)
	s.tally("keyed", done(12))
	s.demand(1, "r1", "hedged", "keyed/")
}

// F4: an open due that cannot finish would stay open for ever.
func TestSourceOfOneDueFails(t *testing.T) {
	t.Parallel()
	source := sim.NewSource(12)
	source.Flow = func(r *sim.Replica, due time.Duration, _ int) (sim.Flow, bool) {
		return sim.Flow{Takes: ms, Err: errors.New("no such table")}, due == 4*time.Second
	}
	s := newScene(t, sim.Config{Jobs: []sim.Job{{Name: "keyed", Plans: every(4 * time.Second), Source: source}}})
	s.play(18 * time.Second)
	s.demand(1, "store: closes due", "keyed", "true true")
	got := s.Oracle.Tally("keyed")
	if got[oracle.Missed] != 1 {
		t.Errorf("%d dues are missed, want the one whose source fails", got[oracle.Missed])
	}
	s.settle(22*time.Second, 20*time.Second)
}

// F5: dues that came in a pause would run once it has ended, where nobody decided them in it.
func TestPauseIsDecidedLate(t *testing.T) {
	t.Parallel()
	s := newScene(t, sim.Config{Jobs: []sim.Job{
		{Name: "plain", Plans: every(2 * time.Second)},
		{Name: "keyed", Plans: every(2 * time.Second), Source: sim.NewSource(6)},
	}})
	tell := func(at time.Duration, kind idempotency.CommandKind) {
		s.At(at, func() {
			for _, job := range []string{"plain", "keyed"} {
				s.Submit(idempotency.Command{Kind: kind, ID: idempotency.ID{Job: job}})
			}
		})
	}
	tell(3*time.Second, idempotency.Pause)
	tell(6500*ms, idempotency.Resume)
	s.down(3500*ms, 7*time.Second)
	s.settle(11*time.Second, 10*time.Second)
	s.tally("plain", map[oracle.Outcome]int{oracle.Done: 3, oracle.Skipped: 2})
	s.tally("keyed", map[oracle.Outcome]int{oracle.Done: 6 * 3, oracle.Skipped: 2})
}

// F6: catch-up would be eaten by overlap. Which of the dues comes first is the seed's: the younger ones would be skipped for an older one.
func TestCatchUpIsNotSkipped(t *testing.T) {
	t.Parallel()
	slow := func(*sim.Replica, jobs.Occurrence) sim.Work { return sim.Work{Takes: 700 * ms} }
	timing := sim.Short()
	timing.Concurrency = 20
	for seed := range uint64(8) {
		s := newScene(t, sim.Config{Seed: 1 + seed, Timing: timing, Jobs: []sim.Job{
			{Name: "plain", Plans: at(4*time.Second, 6*time.Second, 8*time.Second), Work: slow},
			{Name: "keyed", Plans: at(4*time.Second, 6*time.Second, 8*time.Second), Source: sim.NewSource(6), Work: slow},
		}})
		s.down(3500*ms, 9*time.Second)
		s.settle(25*time.Second, 8*time.Second)
		s.tally("plain", done(3))
		s.tally("keyed", done(18))
		s.demand(1, "decided", "plain  3  0  0")
		s.demand(1, "decided", "keyed  3  0  0")
	}
}

// F7: a healthy fleet would miss dues because its workers are taken.
func TestOpeningNeedsNoWorker(t *testing.T) {
	t.Parallel()
	s := newScene(t, sim.Config{Jobs: []sim.Job{
		{Name: "jam", Plans: at(3 * time.Second), Source: sim.NewSource(24), Timeout: time.Minute, Limit: jobs.Limit{PerReplica: -1},
			Work: func(*sim.Replica, jobs.Occurrence) sim.Work { return sim.Work{Takes: 5 * time.Second} }},
		{Name: "plain", Plans: at(4 * time.Second)},
		{Name: "keyed", Plans: at(4 * time.Second), Source: sim.NewSource(6)},
	}})
	s.settle(50*time.Second, 5*time.Second)
	if late := s.Stats.Late["plain"]; late < 3*time.Second {
		t.Errorf("the plain job was late by %v: workers were free", late)
	}
	for _, job := range []string{"plain", "keyed"} {
		opened := 0.0
		if _, err := fmt.Sscan(strings.Join(s.lines("decided", job+"  1"), ""), &opened); err != nil || opened > 5 {
			t.Errorf("the %s job was opened at %v s (%v), want it at 4: its due could be missed meanwhile", job, opened, err)
		}
	}
	if s.Stats.Missed["plain"]+s.Stats.Missed["keyed"] > 0 {
		t.Error("dues are missed")
	}
	s.tally("plain", done(1))
	s.tally("keyed", done(6))
}

// F8: after a bad deploy was taken back nobody would open the job.
func TestDeployTakenBack(t *testing.T) {
	t.Parallel()
	plans := []sim.Plan{{Every: 2 * time.Second}, {Every: 3 * time.Second, Phase: time.Second}}
	s := newScene(t, sim.Config{Jobs: []sim.Job{{Name: "plain", Plans: plans}, {Name: "keyed", Plans: plans, Source: sim.NewSource(6)}}})
	deploy := func(at time.Duration, version int) {
		s.At(at, func() {
			r := s.Replica(2)
			r.Kill()
			r.Version = version
			r.Restart(100 * ms)
		})
	}
	deploy(5*time.Second, 1)
	deploy(9*time.Second, 0) // the session that announced version 1 is live still, and lapses later
	s.settle(30*time.Second, 28*time.Second)
	s.demand(1, "r2", "decided", "plain")
	if late := s.Stats.Late["plain"]; late > 5*time.Second {
		t.Errorf("the plain job was late by %v", late)
	}
}

// F9: a fleet that was down for longer than the horizon would lose its dues silently.
func TestFleetDownPastHorizon(t *testing.T) {
	t.Parallel()
	s := newScene(t, sim.Config{Jobs: []sim.Job{
		{Name: "plain", Plans: every(2 * time.Second)},
		{Name: "keyed", Plans: every(2 * time.Second), Source: sim.NewSource(6)},
	}})
	s.down(5*time.Second, 24500*ms)
	s.settle(40*time.Second, 38*time.Second)
	// Of 6 … 24, those younger than 8 s at 24.5 s run: 18 and on; and the latest of the older ones.
	if n := s.Stats.Missed["plain"]; n != 5 {
		t.Errorf("%d dues of the plain job are missed, want 5", n)
	}
	if n := s.Stats.Missed["keyed"]; n != 5 {
		t.Errorf("%d dues of the keyed job are missed, want 5", n)
	}
	s.tally("plain", map[oracle.Outcome]int{oracle.Done: 19 - 5, oracle.Missed: 5})
	s.tally("keyed", map[oracle.Outcome]int{oracle.Done: 6 * (19 - 5), oracle.Missed: 5})
}

// F10: adopting strays would start a finished handler again under its fence.
func TestListingIsOldNews(t *testing.T) {
	t.Parallel()
	s := newScene(t, sim.Config{Jobs: []sim.Job{{Name: "keyed", Plans: every(time.Second), Source: sim.NewSource(8),
		Work: func(*sim.Replica, jobs.Occurrence) sim.Work { return sim.Work{Takes: 300 * ms} }}}})
	s.Fate = func(_ *sim.Replica, call string) (sim.Fate, bool) {
		return sim.Fate{Commit: 100 * ms, Reply: 280 * ms}, call == "Mine" // read in mid-run, and answered after its end
	}
	s.settle(30*time.Second, 28*time.Second)
	if s.Stats.Started != s.Stats.Finished["done"] {
		t.Errorf("%d handlers started for %d completions", s.Stats.Started, s.Stats.Finished["done"])
	}
}

// F11: a session would be used on after its replica canceled the handlers.
func TestLostSessionIsNotUsedAgain(t *testing.T) {
	t.Parallel()
	s := newScene(t, sim.Config{Jobs: []sim.Job{{Name: "keyed", Plans: at(5 * time.Second), Source: sim.NewSource(12), Timeout: time.Minute,
		Work: func(*sim.Replica, jobs.Occurrence) sim.Work { return sim.Work{Takes: 4 * time.Second, Deaf: true} }}}})
	s.At(5500*ms, func() { s.Replica(0).Blind(1550 * ms) }) // beyond 0.7 lease, and back before its end
	s.settle(30*time.Second, 5*time.Second)
	s.demand(1, "r0", "lost session", "not renewed")
	s.demand(2, "r0", "store: opens session")
	s.tally("keyed", done(12))
}

// F14: a run that is older than the horizon could not be taken up.
func TestOrphanPastHorizon(t *testing.T) {
	t.Parallel()
	slow := func(*sim.Replica, jobs.Occurrence) sim.Work { return sim.Work{Takes: time.Second} }
	s := newScene(t, sim.Config{Jobs: []sim.Job{{Name: "plain", Plans: at(5 * time.Second), Work: slow}}})
	s.down(5500*ms, 25*time.Second)
	s.settle(35*time.Second, 5*time.Second)
	s.tally("plain", done(1))
	s.demand(1, "took up", "plain/plain")
}

// F16: the answer to a decision is lost: its repetition brings the runs, at once.
func TestDecisionAnswerLost(t *testing.T) {
	t.Parallel()
	s := newScene(t, sim.Config{Jobs: []sim.Job{{Name: "plain", Plans: at(5 * time.Second)}}})
	s.Fate = first("Decide", sim.Fate{Commit: ms, Mute: true})
	s.settle(12*time.Second, 5*time.Second)
	s.tally("plain", done(1))
	if s.Stats.Started != 1 {
		t.Errorf("%d handlers started, want 1", s.Stats.Started)
	}
	if late := s.Stats.Late["plain"]; late > 600*ms {
		t.Errorf("the run was late by %v; want at most a call's deadline and a little", late)
	}
	s.demand(2, "store: decides", "plain", "true")
}

// down kills the whole fleet and starts it again later.
func (s *scene) down(from, to time.Duration) {
	s.At(from, func() {
		for i := range 3 {
			s.Replica(i).Kill()
			s.Replica(i).Restart(to - from)
		}
	})
}

func (s *scene) id(job, key string, due time.Duration) oracle.ID {
	return oracle.ID{Job: job, Key: key, Due: sim.Unix(due)}
}
