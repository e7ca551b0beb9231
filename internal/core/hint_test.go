package core

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/ring"
)

// A flood of hints costs ten sweeps a second and no more, and the first of them comes at once.
func TestFloodOfHints(t *testing.T) {
	t.Parallel()
	w := newTower(t, timing(), "a")
	w.begin(jobs.Job{Name: "j", Schedule: jobs.Every(time.Hour), Run: none})
	w.until(5500 * time.Millisecond)
	quiet := w.calls["Lagging"]
	w.tell(0, Hinted{})
	if n := w.calls["Lagging"] - quiet; n != 1 {
		t.Errorf("a hint made %d sweeps at once, want 1", n)
	}
	before := w.calls["Lagging"]
	for end := w.now + 10*time.Second; w.now < end; {
		w.until(w.now + time.Millisecond)
		w.tell(0, Hinted{})
	}
	if n := w.calls["Lagging"] - before; n < 90 || n > 111 {
		t.Errorf("10 s of 1,000 hints a second made %d sweeps, want about 100", n)
	}
}

// A sweep that is asked for while one is under way follows when that is answered, with one question for all who asked.
func TestHintWhileAsking(t *testing.T) {
	t.Parallel()
	w := newTower(t, timing(), "a")
	w.begin(jobs.Job{Name: "j", Schedule: jobs.Every(time.Hour), Run: none})
	w.until(5500 * time.Millisecond)
	w.mute = func(_ int, name string) bool { return name == "Lagging" }
	w.tell(0, Hinted{})
	call, ok := w.acts[len(w.acts)-1].(*Call)
	if !ok || call.Name != "Lagging" {
		t.Fatalf("a hint made %T, want a Lagging call", w.acts[len(w.acts)-1])
	}
	before := w.calls["Lagging"]
	w.until(w.now + 300*time.Millisecond)
	w.tell(0, Hinted{}, Hinted{})
	if n := w.calls["Lagging"] - before; n != 0 {
		t.Errorf("%d sweeps began while one was under way", n)
	}
	w.mute = nil
	w.tell(0, call.Do(context.Background(), w.store))
	if n := w.calls["Lagging"] - before; n != 1 {
		t.Errorf("%d sweeps followed the answer, want 1", n)
	}
}

// without is a ring of the tower's cores but one.
func (w *tower) without(name string) *ring.Ring {
	var names []string
	for _, c := range w.cores {
		if c.cfg.Replica != name {
			names = append(names, c.cfg.Replica)
		}
	}
	r, err := ring.New(names, &ring.Options{Partitions: w.cores[0].cfg.Partitions, VirtualNodes: 20, Load: 1.5})
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// leaving is a tower whose first core has runs at work, and is told to stop; the others do nothing.
func leaving(t *testing.T, deaf bool) (w *tower, held []string, now *ring.Ring) {
	t.Helper()
	c := timing()
	c.Partitions, c.Concurrency, c.Drain = 64, 6, time.Second
	w = newTower(t, c, "a", "b", "c", "d")
	source := list(200)
	w.act = func(i int, a Action) []Event {
		switch a := a.(type) {
		case Start:
			if i != 0 {
				return []Event{Ended{Handle: a.Handle}}
			}
			held = append(held, a.Occurrence.Key)
		case Cancel:
			if !deaf {
				return []Event{Ended{Handle: a.Handle, Err: a.Cause}}
			}
		default:
			return source(i, a)
		}
		return nil
	}
	w.begin(keyed(jobs.At(epoch.Add(5 * time.Second))))
	w.until(6 * time.Second)
	if len(held) != c.Concurrency {
		t.Fatalf("%d runs are at work, want %d", len(held), c.Concurrency)
	}
	w.acts = nil
	now = w.without("a")
	w.tell(0, Stop{Why: "test"})
	w.tell(0, RingChanged{Ring: now})
	return w, held, now
}

func (w *tower) hints() (all [][]string, stopped bool) {
	for _, a := range w.acts {
		switch a := a.(type) {
		case Hint:
			if stopped {
				w.t.Error("a hint comes after the replica has stopped")
			}
			all = append(all, a.Members)
		case Stopped:
			stopped = true
		}
	}
	return all, stopped
}

// A replica that leaves hints the new owners of the runs that it gives back when that is recorded, and at its end all
// who own what was its own.
func TestLeavingHints(t *testing.T) {
	t.Parallel()
	w, held, now := leaving(t, false)
	if all, _ := w.hints(); len(all) != 0 {
		t.Errorf("hints %v go out before anything was given back", all)
	}
	w.until(10 * time.Second)
	all, stopped := w.hints()
	if !stopped || len(all) != 2 {
		t.Fatalf("stopped: %v, after the hints %v; want two: for what was given back, and for the rest", stopped, all)
	}
	want := map[string]bool{}
	for _, key := range held {
		want[now.Owner(key)] = true
	}
	for _, name := range all[0] {
		if !want[name] {
			t.Errorf("%s is hinted of runs, but owns none of %v", name, held)
		}
	}
	if len(all[0]) != len(want) {
		t.Errorf("%v are hinted of runs, want the owners %v", all[0], want)
	}
	if !slices.Equal(all[1], []string{"b", "c", "d"}) {
		t.Errorf("%v are hinted at the end, want all others", all[1])
	}
}

// Runs that a leaving replica cannot give back, since their handlers do not return, are free when its session is closed.
func TestLeavingHintsOfCutRuns(t *testing.T) {
	t.Parallel()
	w, _, _ := leaving(t, true)
	w.until(15 * time.Second)
	all, stopped := w.hints()
	if !stopped || len(all) != 1 || !slices.Equal(all[0], []string{"b", "c", "d"}) {
		t.Errorf("stopped: %v, hinted %v; want all others, once", stopped, all)
	}
	if w.calls["CloseSession"] != 1 {
		t.Errorf("CloseSession was called %d times", w.calls["CloseSession"])
	}
	closed := slices.IndexFunc(w.acts, func(a Action) bool { c, ok := a.(*Call); return ok && c.Name == "CloseSession" })
	hinted := slices.IndexFunc(w.acts, func(a Action) bool { _, ok := a.(Hint); return ok })
	if closed < 0 || hinted < closed {
		t.Errorf("the hint is action %d and the end of the session action %d: too early", hinted, closed)
	}
}

// Runs that are given back one after the other make one hint each 100 ms at most, and none is forgotten.
func TestHintsAreFewAndNoneIsLost(t *testing.T) {
	t.Parallel()
	c := timing()
	c.Concurrency, c.Drain = 40, time.Second
	w := newTower(t, c, "a", "b")
	var handles []int64
	source := list(200)
	w.act = func(i int, a Action) []Event {
		if s, ok := a.(Start); ok && i == 0 {
			handles = append(handles, s.Handle)
			return nil
		}
		return source(i, a)
	}
	w.begin(keyed(jobs.At(epoch.Add(5 * time.Second))))
	w.until(6 * time.Second)
	w.tell(0, Stop{Why: "test"})
	w.tell(0, RingChanged{Ring: w.without("a")})
	w.until(7100 * time.Millisecond) // all are canceled
	w.acts = nil
	var times []time.Duration
	for _, h := range handles[:len(handles)-1] {
		w.until(w.now + 10*time.Millisecond)
		w.tell(0, Ended{Handle: h, Err: fmt.Errorf("late: %w", jobs.ErrDraining)})
		if all, _ := w.hints(); len(all) > len(times) {
			times = append(times, w.now)
		}
	}
	w.until(w.now + HintEvery)
	all, stopped := w.hints()
	if stopped {
		t.Fatal("the replica stopped too early: that shows nothing")
	}
	if most := len(handles)/10 + 2; len(all) < most-3 || len(all) > most {
		t.Errorf("%d runs given back in %v made %d hints, want about one each 100 ms", len(handles), time.Duration(len(handles))*10*time.Millisecond, len(all))
	}
	if len(w.cores[0].hints.to) != 0 {
		t.Errorf("%v were never hinted", w.cores[0].hints.to)
	}
	for i := 1; i < len(times); i++ {
		if gap := times[i] - times[i-1]; gap < HintEvery {
			t.Errorf("hints %v apart, want %v at least", gap, HintEvery)
		}
	}
}

// A run whose session was lost and whose handler returned waits for us again: we look at once, and need no message for it.
func TestOwnRunGivenBackIsSweptAtOnce(t *testing.T) {
	t.Parallel()
	w := newTower(t, timing(), "a")
	var handle int64
	w.act = func(_ int, a Action) []Event {
		if s, ok := a.(Start); ok {
			handle = s.Handle
		}
		return nil
	}
	w.begin(jobs.Job{Name: "j", Schedule: jobs.Every(time.Hour).Phase(5 * time.Second), Run: none})
	w.until(6 * time.Second)
	first := handle
	w.cores[0].lose("test")
	w.until(6500 * time.Millisecond) // a new session is open, and has swept
	w.tell(0, Ended{Handle: first, Err: jobs.ErrSessionLost})
	if handle == first {
		t.Error("the run that was given back is not taken up at once")
	}
	if all, _ := w.hints(); len(all) != 0 {
		t.Errorf("hints %v go out for what is our own", all)
	}
}
