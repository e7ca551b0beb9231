package sim_test

import (
	"testing"
	"time"

	"github.com/belfry-go/belfry/internal/sim"
)

// twoVersions is code whose schedules differ from version to version.
func twoVersions() []sim.Job {
	plans := []sim.Plan{{Every: 2 * time.Second}, {Every: 2 * time.Second, Phase: time.Second}}
	return []sim.Job{{Name: "plain", Plans: plans}, {Name: "keyed", Plans: plans, Source: sim.NewSource(12)}}
}

// calm demands that from now on until then every replica does what it owns, and nobody does another's.
func (s *scene) calm(from, until time.Duration) {
	s.t.Helper()
	s.play(from)
	before := s.Stats.Hedged
	s.settle(until, until-2*time.Second)
	if n := s.Stats.Hedged - before; n > 0 {
		s.t.Errorf("%d claims are hedged in a calm fleet of one version", n)
	}
}

// A replica that came back with the old code while the new one was in force
// works again once the old one is, whoever put it there.
func TestOldCodeWaitsForItsDefinition(t *testing.T) {
	t.Parallel()
	s := newScene(t, sim.Config{Jobs: twoVersions()})
	restart := func(at time.Duration, i, version int) {
		s.At(at, func() {
			r := s.Replica(i)
			r.Kill()
			r.Version = version
			r.Restart(100 * ms)
		})
	}
	restart(5*time.Second, 2, 1)
	restart(8*time.Second, 1, 0) // sees version 1 in force
	restart(9*time.Second, 2, 0)
	s.calm(20*time.Second, 40*time.Second)
}

// A declaration that happens after a newer one of the same session does not undo it.
func TestDeclarationHappensLate(t *testing.T) {
	t.Parallel()
	s := newScene(t, sim.Config{Jobs: twoVersions()})
	s.At(5*time.Second, func() {
		s.Fate = first("Declare", sim.Fate{Commit: time.Second})
		s.Replica(0).Change(0)
	})
	s.At(5100*ms, func() {
		for i := range 3 {
			s.Replica(i).Change(1)
		}
	})
	s.calm(12*time.Second, 30*time.Second)
}

// The first due of a definition that others have put in force comes as much in time as those after it, where its owner was
// told before that of the old one, and looked after it. A world of hours found that its sweep told it of the due, up to a second late.
func TestFirstDueAfterChange(t *testing.T) {
	t.Parallel()
	plans := []sim.Plan{{Every: 40 * time.Second}, {Every: 40 * time.Second, Phase: 25 * time.Second}}
	s := newScene(t, sim.Config{Replicas: 5, Timing: sim.Normal(), Jobs: []sim.Job{{Name: "keyed", Plans: plans, Source: sim.NewSource(12)}}})
	late := false
	s.Fate = func(r *sim.Replica, call string) (sim.Fate, bool) {
		if late || r != s.Owner("keyed") || call != "Lagging" || s.Now() < 50500*ms {
			return sim.Fate{}, false
		}
		late = true
		return sim.Fate{Commit: 300 * ms}, true
	}
	s.At(50500*ms, func() {
		for i := range 5 {
			s.Replica(i).Change(1)
		}
	})
	s.settle(100*time.Second, 70*time.Second)
	s.tally("keyed", done(24))
	s.late("keyed", 300*ms) // not a sweep later
	if !late {
		t.Error("the owner's sweep was not held up")
	}
}

// So it does where the owner is the one that never changed: the others had put theirs in force, and took it back. Two worlds of
// hours found that nothing made the owner look at the due that was its own again.
func TestFirstDueAfterOthersChangedBack(t *testing.T) {
	t.Parallel()
	plans := []sim.Plan{{Every: 40 * time.Second}, {Every: 40 * time.Second, Phase: 25 * time.Second}}
	s := newScene(t, sim.Config{Replicas: 5, Timing: sim.Normal(), Jobs: []sim.Job{{Name: "keyed", Plans: plans, Source: sim.NewSource(12)}}})
	change := func(to int) func() {
		return func() {
			for i := range 5 {
				if r := s.Replica(i); r != s.Owner("keyed") {
					r.Change(to)
				}
			}
		}
	}
	s.At(42*time.Second, change(1))
	s.At(55500*ms, change(0))
	s.settle(100*time.Second, 70*time.Second)
	s.tally("keyed", done(24))
	s.late("keyed", 300*ms)
}
