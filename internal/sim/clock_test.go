package sim_test

import (
	"testing"
	"time"

	"github.com/belfry-go/belfry/internal/sim"
	"github.com/belfry-go/belfry/jobs"
)

// busy are jobs of which runs are under way whenever something happens.
func busy() []sim.Job {
	work := func(*sim.Replica, jobs.Occurrence) sim.Work { return sim.Work{Takes: 2 * time.Second} }
	return []sim.Job{
		{Name: "keyed", Plans: every(10 * time.Second), Source: sim.NewSource(20), Work: work},
		{Name: "plain", Plans: every(3 * time.Second), Work: work},
	}
}

// F55: the store's clock is set on or back while runs are at work. Nothing runs twice or early (the oracle sees to
// that), and nothing is lost: what was under way ends, and the jobs go on.
func TestStoreClockSteps(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		by   time.Duration
	}{
		{"on by a second", time.Second}, {"on by an hour", time.Hour}, {"on by a day", 24 * time.Hour},
		{"back by a second", -time.Second}, {"back by five minutes", -5 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, sim.Config{Timing: sim.Normal(), Jobs: busy()})
			const step = 61 * time.Second // in the middle of runs of both
			s.play(step)
			started := s.Stats.Started
			s.StepStore(c.by)
			silent := max(-c.by, 0)
			s.settle(step+silent+2*time.Minute, step+silent+90*time.Second)
			if n, want := s.Stats.Started-started, 11*20+35; n < want {
				t.Errorf("%d handlers started in the two minutes after it, want %d at least", n, want)
			}
			if n := s.Stats.Missed["plain"] + s.Stats.Missed["keyed"]; c.by < time.Hour && n > 0 {
				t.Errorf("%d dues are missed", n)
			}
			if silent > time.Second {
				s.demand(3, "sees the store's clock step back")
			}
			if silent > time.Minute {
				s.demand(3, "problem", "are silent until then", "keyed, plain")
			}
		})
	}
}

// F55: the store's clock is ahead for a while, with runs under way at both steps. What it opened ahead of its
// time stays decided, the operator is told, and the jobs go on when that time has come.
func TestStoreClockAheadForAWhile(t *testing.T) {
	t.Parallel()
	s := newScene(t, sim.Config{Timing: sim.Normal(), Jobs: busy()})
	s.At(61*time.Second, func() { s.StepStore(5 * time.Minute) })
	s.At(2*time.Minute+time.Second, func() { s.StepStore(-5 * time.Minute) })
	s.At(4*time.Minute, func() { s.Replica(0).Kill(); s.Replica(0).Restart(20 * time.Second) })
	s.settle(9*time.Minute, 8*time.Minute+30*time.Second)
	s.demand(4, "problem", "are silent until then", "keyed, plain") // of all, and of the one that started since
	late := 0
	for _, line := range s.lines("decided", "plain") {
		if line[:12] > "  422.000000" {
			late++
		}
	}
	if late < 35 {
		t.Errorf("%d openings after the store's clock had come to what it said, want one each three seconds", late)
	}
}

// F70: all hosts are suspended at once, in the middle of runs, for longer than a lease and for longer than
// MissedAfter. Their sessions are lost, the runs are taken up or released, and what was due meanwhile is decided by the
// missed policy.
func TestFleetSuspended(t *testing.T) {
	t.Parallel()
	for _, d := range []time.Duration{3 * time.Second, 30 * time.Second, 10 * time.Minute} {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			s := newScene(t, sim.Config{Timing: sim.Normal(), Jobs: busy()})
			const at = 61 * time.Second
			s.At(at, func() {
				for i := range 3 {
					s.Replica(i).Suspend(d)
				}
			})
			s.settle(at+d+time.Minute, at+d+30*time.Second)
			missed := s.Stats.Missed["plain"] + s.Stats.Missed["keyed"]
			if long := d > time.Minute; long != (missed > 0) {
				t.Errorf("%d dues are missed", missed)
			}
			if long := d > 10*time.Second; long != (s.Stats.Lost > 0) {
				t.Errorf("%d sessions are lost", s.Stats.Lost)
			}
			if d > 10*time.Second { // they knew it by the wall clock, before they asked the store
				s.demand(3, "lost session", "not renewed for")
			}
			s.demand(3, "sees its clock step")
		})
	}
}

// CK-01: a host's clock is three seconds behind, the job takes 50 ms, and both replicas hold themselves for its
// owner. The occurrence outlives its run, so the later one finds it done.
func TestSkewedHostsAndAShortJob(t *testing.T) {
	t.Parallel()
	starts := 0
	work := func(*sim.Replica, jobs.Occurrence) sim.Work { starts++; return sim.Work{Takes: 50 * ms} }
	s := newScene(t, sim.Config{Timing: sim.Normal(), Replicas: 2, Jobs: []sim.Job{
		{Name: "plain", Plans: every(10 * time.Second), Work: work},
		{Name: "keyed", Plans: every(10 * time.Second), Source: sim.NewSource(5), Work: work},
	}})
	s.Replica(1).SetClock(-3*time.Second, 0)
	s.At(5*time.Second, func() {
		s.Replica(0).Omit("r1")
		s.Replica(1).Omit("r0")
	})
	s.settle(65*time.Second, 60*time.Second)
	s.tally("plain", done(6))
	s.tally("keyed", done(30))
	if starts != 36 {
		t.Errorf("%d handlers started for 36 occurrences", starts)
	}
	s.demand(5, "refused", "taken") // both were after them
}

// CK-02: a host's clock is three minutes ahead, which is more than the job's interval. It is told, with how far, and the
// job runs once each minute, and not before: the oracle refuses a start before due - tolerance by the store's clock.
func TestSkewLargerThanTheInterval(t *testing.T) {
	t.Parallel()
	s := newScene(t, sim.Config{Timing: sim.Normal(), Replicas: 2, Jobs: []sim.Job{{Name: "plain", Plans: every(time.Minute)}}})
	owner := s.Owner("plain")
	owner.SetClock(3*time.Minute, 0)
	s.settle(10*time.Minute+30*time.Second, 10*time.Minute)
	s.tally("plain", done(10))
	s.late("plain", time.Second)
	s.demand(1, owner.Name, "clock differs  -3m0", "false")
	if n := len(s.lines("clock differs")); n != 2 { // at the start, and ten minutes later
		t.Errorf("the skew is told %d times, want twice", n)
	}
}

// CK-07: a process starts while its host's clock says 1970, and then that is corrected. It runs what the store's
// time says all along, and no row has a due of another time: the oracle knows of each.
func TestStartedIn1970(t *testing.T) {
	t.Parallel()
	const since = 497_448 * time.Hour
	s := newScene(t, sim.Config{Timing: sim.Normal(), Jobs: []sim.Job{
		{Name: "keyed", Plans: every(10 * time.Second), Source: sim.NewSource(20)},
		{Name: "plain", Plans: every(3 * time.Second)},
	}})
	for i := range 3 {
		s.Replica(i).SetClock(-since, 0)
	}
	s.play(time.Minute)
	s.late("plain", time.Second)
	s.At(time.Minute, func() {
		for i := range 3 {
			s.Replica(i).SetClock(0, 0)
		}
	})
	s.settle(2*time.Minute, 110*time.Second)
	if n := s.Stats.Missed["keyed"] + s.Stats.Missed["plain"]; n > 0 {
		t.Errorf("%d dues are missed", n)
	}
	s.demand(3, "sees its clock step")
	s.demand(3, "clock differs", "true")
}
