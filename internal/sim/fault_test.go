package sim_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/belfry-go/belfry/internal/sim"
	"github.com/belfry-go/belfry/internal/sim/oracle"
	"github.com/belfry-go/belfry/jobs"
)

// F01-F07: the process dies at each step in the life of a run. Nothing is lost, nothing is done twice.
func TestKilledAtEachStep(t *testing.T) {
	t.Parallel()
	points := []struct {
		name     string
		call     string // of which the sender dies; empty: the handler's process
		happens  bool   // the call does, all the same
		work     sim.Work
		started  int // handlers
		takenUp  int
		finished string
	}{
		{name: "K0 before the opening", call: "Decide", started: 1},
		{name: "K2 after the opening", call: "Decide", happens: true, started: 1, takenUp: 1},
		{name: "K3 in the handler", work: sim.Work{Takes: ms, Fatal: true}, started: 2, takenUp: 1},
		{name: "K5 before the finish", call: "Finish", started: 2, takenUp: 1},
		{name: "K6 after the finish", call: "Finish", happens: true, started: 1},
	}
	for _, p := range points {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			died := false
			s := newScene(t, sim.Config{})
			s.Add(sim.Job{Name: "plain", Plans: at(5 * time.Second), Work: func(*sim.Replica, jobs.Occurrence) sim.Work {
				if p.work.Fatal && !died {
					died = true
					return p.work
				}
				return sim.Work{Takes: 5 * ms}
			}})
			s.Fate = func(r *sim.Replica, call string) (sim.Fate, bool) {
				if died || call != p.call || s.Now() < 4*time.Second {
					return sim.Fate{}, false
				}
				died = true
				s.At(s.Now(), func() { r.Kill(); r.Restart(3 * time.Second) })
				return sim.Fate{Lost: !p.happens, Commit: ms}, true
			}
			s.settle(15*time.Second, 5*time.Second)
			s.tally("plain", done(1))
			if s.Stats.Killed != 1 || s.Stats.Started != p.started || s.Stats.TakenUp != p.takenUp {
				t.Errorf("%d killed, %d started, %d taken up; want 1, %d, %d", s.Stats.Killed, s.Stats.Started, s.Stats.TakenUp, p.started, p.takenUp)
			}
			r, _ := s.Oracle.Row(s.id("plain", "plain", 5*time.Second))
			if r.Attempt != 1 || r.Crashes != p.takenUp {
				t.Errorf("the run has %d attempts and %d crashes, want 1 and %d", r.Attempt, r.Crashes, p.takenUp)
			}
		})
	}
}

// F09, F10: a process stands still for longer than its lease; what it then still finishes is refused.
func TestFrozenHolderIsFenced(t *testing.T) {
	t.Parallel()
	s := newScene(t, sim.Config{Jobs: []sim.Job{{Name: "keyed", Plans: at(5 * time.Second), Source: sim.NewSource(12), Timeout: time.Minute,
		Work: func(r *sim.Replica, _ jobs.Occurrence) sim.Work { return sim.Work{Takes: 200 * ms} }}}})
	s.At(5100*ms, func() { s.Replica(0).Freeze(5 * time.Second) })
	s.settle(20*time.Second, 5*time.Second)
	s.tally("keyed", done(12))
	s.demand(1, "r0", "refused", "fenced")
	s.demand(1, "r0", "lost session")
}

// F13: an owner that does not reach the store starves nobody.
func TestBlindOwner(t *testing.T) {
	t.Parallel()
	s := newScene(t, sim.Config{Timing: sim.Normal(), Jobs: []sim.Job{{Name: "plain", Plans: at(30 * time.Second)}}})
	s.At(29900*ms, func() { s.Owner("plain").Blind(time.Minute) })
	s.settle(120*time.Second, 30*time.Second)
	s.tally("plain", done(1))
	s.late("plain", 3*time.Second) // grace + 2 s
	s.demand(1, s.Owner("plain").Name, "announces", "unfit")
}

// F27: an owner that lacks the code starves nobody.
func TestOwnerLacksJob(t *testing.T) {
	t.Parallel()
	s := newScene(t, sim.Config{Timing: sim.Normal(), Jobs: []sim.Job{
		{Name: "plain", Plans: at(30 * time.Second)},
		{Name: "keyed", Plans: at(30 * time.Second), Source: sim.NewSource(30)},
	}})
	lacks := s.Owner("plain")
	s.At(20*time.Second, func() { lacks.Lacks = []string{"plain", "keyed"}; lacks.Change(0) })
	s.settle(90*time.Second, 30*time.Second)
	s.tally("plain", done(1))
	s.tally("keyed", done(30))
	s.late("plain", 3*time.Second)
	s.late("keyed", 3*time.Second)
}

// F29: an owner whose handlers hang for ever starves nobody.
func TestHungOwner(t *testing.T) {
	t.Parallel()
	timing, timeout := sim.Normal(), 3*time.Second
	s := newScene(t, sim.Config{Timing: timing})
	hung := s.Owner("plain")
	work := func(r *sim.Replica, _ jobs.Occurrence) sim.Work {
		if r == hung {
			return sim.Work{Takes: -1, Deaf: true}
		}
		return sim.Work{Takes: 5 * ms}
	}
	s.Add(sim.Job{Name: "keyed", Plans: at(30 * time.Second), Source: sim.NewSource(100), Timeout: timeout, Work: work})
	s.Add(sim.Job{Name: "plain", Plans: at(31 * time.Second), Timeout: timeout, Work: work})
	s.settle(31*time.Second+timeout+timing.Lease+2*time.Second, 31*time.Second)
	s.tally("plain", done(1))
	s.tally("keyed", done(100))
	s.demand(1, hung.Name, "stuck")
}

// A replica that leaves gives a run back long after the others saw it leave. They are told, and have it at work at once,
// not at their next sweep.
func TestLeavingReplicaHints(t *testing.T) {
	t.Parallel()
	const leaves = 31 * time.Second // then all others look, and from then on once each second
	timing := sim.Normal()
	for ; timing.Drain < 26*time.Second; timing.Drain += 130 * ms {
		s := newScene(t, sim.Config{Timing: timing, Replicas: 4})
		owner, starts := s.Owner("plain"), []time.Duration(nil)
		s.Add(sim.Job{Name: "plain", Plans: at(30 * time.Second), Timeout: time.Hour, Work: func(r *sim.Replica, _ jobs.Occurrence) sim.Work {
			starts = append(starts, s.Now())
			if r == owner {
				return sim.Work{Takes: -1}
			}
			return sim.Work{Takes: ms}
		}})
		// Another run of the owner, which does not heed its end, keeps the session open meanwhile.
		deaf := slices.IndexFunc(s.names(100), func(name string) bool { return s.Owner(name) == owner })
		s.Add(sim.Job{Name: s.names(100)[deaf], Plans: at(30 * time.Second), Timeout: time.Hour, Work: func(r *sim.Replica, _ jobs.Occurrence) sim.Work {
			if r == owner {
				return sim.Work{Takes: -1, Deaf: true}
			}
			return sim.Work{Takes: ms}
		}})
		s.At(leaves, func() { owner.Drain(nil) })
		s.settle(70*time.Second, 30*time.Second)
		s.tally("plain", done(1))
		if len(starts) != 2 || starts[1] < leaves+timing.Drain {
			t.Fatalf("the run started at %v; want twice, and again after %v", starts, leaves+timing.Drain)
		}
		if lay := starts[1] - leaves - timing.Drain; lay > 120*ms {
			t.Errorf("the run that was given back lay for %v", lay)
		}
	}
}

// The twin of the starved ones: an owner that is busy with slow handlers is left alone.
func TestBusyOwnerIsNotHedged(t *testing.T) {
	t.Parallel()
	s := newScene(t, sim.Config{Timing: sim.Normal(), Jobs: []sim.Job{{Name: "keyed", Plans: at(30 * time.Second), Source: sim.NewSource(300), Timeout: 20 * time.Second,
		Work: func(*sim.Replica, jobs.Occurrence) sim.Work { return sim.Work{Takes: 4 * time.Second} }}}})
	s.settle(200*time.Second, 30*time.Second)
	s.tally("keyed", done(300))
	if s.Stats.Hedged > 0 {
		t.Errorf("%d claims are hedged, want none", s.Stats.Hedged)
	}
	if late := s.Stats.Late["keyed"]; late < 40*time.Second {
		t.Errorf("the last key started after %v: nobody was busy", late)
	}
}

// F22: the views of the ring differ for up to ten minutes while claims run.
func TestStaleViews(t *testing.T) {
	t.Parallel()
	s := newScene(t, sim.Config{Replicas: 4, Timing: sim.Normal(), Jobs: []sim.Job{
		{Name: "keyed", Plans: every(10 * time.Second), Source: sim.NewSource(20)},
		{Name: "plain", Plans: every(7 * time.Second)},
	}})
	s.At(20*time.Second, func() {
		s.Replica(0).Stale(10 * time.Minute)
		s.Replica(1).Omit("r2", "r3")
		s.Replica(2).Omit("r0")
	})
	s.At(60*time.Second, func() { s.Replica(3).Drain(func() { s.Replica(3).Restart(2 * time.Minute) }) })
	s.At(200*time.Second, func() { s.Replica(2).Kill(); s.Replica(2).Restart(3 * time.Minute) })
	s.settle(12*time.Minute-ms, 11*time.Minute+30*time.Second)
	if n := s.Stats.Missed["keyed"] + s.Stats.Missed["plain"]; n > 0 {
		t.Errorf("%d dues are missed", n)
	}
	s.tally("keyed", done(20*71))
}

// F53: hosts' clocks are wrong, drift and are set; runs go by the store's.
func TestHostClocks(t *testing.T) {
	t.Parallel()
	s := newScene(t, sim.Config{Timing: sim.Normal(), Jobs: []sim.Job{
		{Name: "keyed", Plans: every(10 * time.Second), Source: sim.NewSource(20)},
		{Name: "plain", Plans: every(3 * time.Second)},
	}})
	s.Replica(0).SetClock(5*time.Minute, 10_000) // runs fast by 1 %
	s.Replica(1).SetClock(-5*time.Minute, -10_000)
	s.play(5*time.Minute - ms)
	if s.Stats.Lost > 0 {
		t.Errorf("%d sessions were lost to clocks that are only wrong", s.Stats.Lost)
	}
	s.late("plain", time.Second)
	s.At(5*time.Minute, func() { s.Replica(2).SetClock(time.Hour, 0) })
	s.At(7*time.Minute, func() { s.Replica(2).SetClock(-time.Hour, 0) })
	s.settle(10*time.Minute, 9*time.Minute+30*time.Second)
	if n := s.Stats.Missed["keyed"] + s.Stats.Missed["plain"]; n > 0 {
		t.Errorf("%d dues are missed", n)
	}
	s.late("plain", 3*time.Second)
}

// F59: ten thousand runs are due at once.
func TestHerd(t *testing.T) {
	t.Parallel()
	timing := sim.Normal()
	timing.Concurrency = 32
	s := newScene(t, sim.Config{Timing: timing, Jobs: []sim.Job{{Name: "keyed", Plans: at(10 * time.Second), Source: sim.NewSource(10_000),
		Work: func(*sim.Replica, jobs.Occurrence) sim.Work { return sim.Work{Takes: 10 * ms} }}}})
	s.settle(90*time.Second, 10*time.Second)
	s.tally("keyed", done(10_000))
	if s.Stats.Hedged > 0 {
		t.Errorf("%d claims are hedged", s.Stats.Hedged)
	}
	t.Logf("the last of 10,000 started %v after the due", s.Stats.Late["keyed"])
}

// F31: of 501 keys one kills its process; it dies alone.
func TestPoison(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		s := newScene(t, sim.Config{Seed: seed + 1, Timing: sim.Normal()})
		s.Add(sim.Job{Name: "keyed", Plans: at(10 * time.Second), Source: sim.NewSource(501), Work: func(_ *sim.Replica, o jobs.Occurrence) sim.Work {
			return sim.Work{Takes: 100 * ms, Fatal: o.Key == "k123"}
		}})
		s.settle(4*time.Minute, 10*time.Second)
		s.tally("keyed", map[oracle.Outcome]int{oracle.Done: 500, oracle.Failed: 1})
		if s.Stats.Killed != 5 {
			t.Errorf("%d processes died, want 5", s.Stats.Killed)
		}
		if r, _ := s.Oracle.Row(s.id("keyed", "k123", 10*time.Second)); r.Outcome != oracle.Failed || r.Attempt != 0 || r.Crashes != 5 {
			t.Errorf("the poisonous run is %v after %d attempts and %d crashes, want it failed after 0 and 5", r.Outcome, r.Attempt, r.Crashes)
		}
	}
}

// F28: a handler panics; its attempts are counted, and it fails for good.
func TestPanics(t *testing.T) {
	t.Parallel()
	s := newScene(t, sim.Config{Jobs: []sim.Job{{Name: "plain", Plans: at(3 * time.Second),
		Work: func(*sim.Replica, jobs.Occurrence) sim.Work { return sim.Work{Takes: ms, Err: errTest, Panic: true} }}}})
	s.settle(15*time.Second, 3*time.Second)
	s.tally("plain", map[oracle.Outcome]int{oracle.Failed: 1})
	if n := s.Stats.Finished["panic"]; n != 3 {
		t.Errorf("%d attempts ended in a panic, want 3", n)
	}
}

// names are some for jobs.
func (s *scene) names(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprint("job-", i))
	}
	return list
}

// late demands that every first start of a job came in time.
func (s *scene) late(job string, most time.Duration) {
	s.t.Helper()
	if late := s.Stats.Late[job]; late > most {
		s.t.Errorf("job %s was late by %v, want at most %v", job, late, most)
	}
}
