package sim_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/internal/sim"
	"github.com/belfry-go/belfry/internal/sim/oracle"
	"github.com/belfry-go/belfry/jobs"
)

// F37: a store that is put back to what it was ten seconds ago would give out again what was done. Each replica notices it
// by its own renewal, or by what the others say, and claims nothing any more; so does one that joins then.
func TestStoreIsPutBack(t *testing.T) {
	t.Parallel()
	const broken, noticed = 30 * time.Second, 33 * time.Second
	s := newScene(t, sim.Config{Timing: sim.Normal(), Replicas: 4, Journal: true,
		Jobs: []sim.Job{
			{Name: "plain", Plans: every(2 * time.Second)},
			{Name: "keyed", Plans: every(5 * time.Second), Source: sim.NewSource(20), Work: func(*sim.Replica, jobs.Occurrence) sim.Work { return sim.Work{Takes: 100 * ms} }},
		}})
	s.At(50*ms, func() { s.Replica(3).Kill() }) // it comes later
	before := 0
	s.At(broken, func() {
		before = len(s.lines("store: claims"))
		s.PutBack(10 * time.Second)
	})
	s.At(noticed, func() { s.Replica(3).Start() })
	settled := 0
	s.At(noticed+3*time.Second, func() { settled = len(s.lines("store: ")) })
	s.play(3 * time.Minute)
	if before < 60 {
		t.Errorf("%d claims before the store was put back: it was not at work", before)
	}
	for i := range 4 {
		if n := len(s.lines(s.Replica(i).Name+" ", "announces", "unfit", "the store was rolled back")); n != 1 {
			t.Errorf("%s said %d times that the store was rolled back, want once", s.Replica(i).Name, n)
		}
	}
	var calls []string
	for _, l := range s.lines("store: ")[settled:] {
		if strings.Contains(l, "claims") || strings.Contains(l, "decides") || strings.Contains(l, "opens session") {
			calls = append(calls, l)
		}
	}
	if len(calls) > 0 {
		t.Errorf("after all had noticed there were %d calls, the first of them: %q", len(calls), calls[0])
	}
}

// A run whose record the store took and forgot: who ended it tells that again, and starts nothing again, least of all what may start
// once only.
func TestRecordIsForgotten(t *testing.T) {
	t.Parallel()
	s := newScene(t, sim.Config{Timing: sim.Normal(), Replicas: 2, Journal: true,
		Jobs: []sim.Job{
			{Name: "once", Plans: at(10 * time.Second), Crash: jobs.CrashAbandon, Work: func(*sim.Replica, jobs.Occurrence) sim.Work { return sim.Work{Takes: 900 * ms} }},
		}})
	s.At(11*time.Second, func() { s.PutBack(400 * ms) })
	s.play(time.Minute)
	if n := len(s.lines("handler starts", "once")); n != 1 {
		t.Errorf("%d handlers start, want 1", n)
	}
	s.demand(1, "store is put back")
	if n := len(s.lines("announces", "rolled back")); n > 0 {
		t.Errorf("%d announcements of a store that lost no number", n)
	}
	if runs := slices.Collect(s.Stored()); len(runs) != 1 || runs[0].State != oracle.Ended || runs[0].Outcome != oracle.Done {
		t.Errorf("the store holds %+v, want a run that is done", runs)
	}
}

// What a handler recorded together with its effect is forgotten with that: the run starts again, and is not recorded as done for want of it.
func TestCompletionIsForgotten(t *testing.T) {
	t.Parallel()
	var s *scene
	s = newScene(t, sim.Config{Timing: sim.Normal(), Replicas: 2, Journal: true,
		Jobs: []sim.Job{
			{Name: "renewal", Plans: at(10 * time.Second), Work: func(_ *sim.Replica, o jobs.Occurrence) sim.Work {
				s.After(800*ms, func() { s.Complete(o) })
				return sim.Work{Takes: 900 * ms}
			}},
		}})
	s.At(11*time.Second, func() { s.PutBack(400 * ms) })
	s.play(time.Minute)
	if n := len(s.lines("handler starts", "renewal")); n != 2 {
		t.Errorf("%d handlers start, want another one, whose effect is kept", n)
	}
	if runs := slices.Collect(s.Stored()); len(runs) != 1 || runs[0].Outcome != oracle.Done {
		t.Errorf("the store holds %+v, want a run that is done", runs)
	}
}

// Who has no session when the others say that the store was rolled back is told it all the same: it says so, and asks for none.
func TestRollbackIsHeardWithoutSession(t *testing.T) {
	t.Parallel()
	s := newScene(t, sim.Config{Timing: sim.Normal(), Replicas: 3, Journal: true, Jobs: []sim.Job{{Name: "plain", Plans: every(2 * time.Second)}}})
	s.At(20*time.Second, func() { s.Replica(2).Blind(time.Minute) })
	s.At(40*time.Second, func() { s.PutBack(10 * time.Second) })
	s.play(45 * time.Second)
	s.demand(1, "r2 ", "lost session", "not renewed")
	if n := len(s.lines("r2 ", "announces", "members saw that the store was rolled back")); n != 1 {
		t.Errorf("it said %d times that the store was rolled back, want once", n)
	}
}
