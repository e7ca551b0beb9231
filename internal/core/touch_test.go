package core

import (
	"testing"
	"time"

	"github.com/belfry-go/belfry/jobs"
)

// A pass that waits for its source is touched well within a grace, each time, so that nobody hedges it; here each answer of the
// store takes a while.
func TestWaitingPassIsTouched(t *testing.T) {
	t.Parallel()
	w := newTower(t, timing(), "a")
	var saved []time.Duration
	var kept []*Call
	w.keep = func(_ int, call *Call) bool {
		if call.Name == "SavePass" {
			saved, kept = append(saved, w.now), append(kept, call)
		}
		return call.Name == "SavePass"
	}
	w.begin(jobs.Job{Name: "j", Schedule: jobs.At(epoch.Add(5 * time.Second)), Keys: jobs.KeyList("k"), Run: none})
	for w.now < 13*time.Second { // and no Pull is ever answered
		answered := kept
		kept = nil
		w.until(w.now + 100*time.Millisecond)
		for _, call := range answered {
			w.tell(0, call.Do(t.Context(), w.store))
		}
	}
	if len(saved) < 10 {
		t.Fatalf("in 8 s the pass was saved at %v, want about each half of a grace, which is 1 s", saved)
	}
	for i, at := range saved[1:] {
		if gap := at - saved[i]; gap > 900*time.Millisecond {
			t.Errorf("the pass was not touched for %v: %v", gap, saved)
		}
	}
}

// A replica with nothing to do wakes for its sweeps and its session, and for nothing else; also where it had passes before.
func TestIdleWakes(t *testing.T) {
	t.Parallel()
	w := newTower(t, timing(), "a")
	w.act = func(_ int, a Action) []Event {
		if a, ok := a.(Pull); ok {
			return []Event{Streamed{Stream: a.Stream, End: true}}
		}
		return nil
	}
	w.begin(jobs.Job{Name: "j", Schedule: jobs.At(epoch.Add(5 * time.Second)), Keys: jobs.KeyList("k"), Run: none})
	w.until(10 * time.Second)
	if w.calls["SavePass"] == 0 {
		t.Fatal("there was no pass")
	}
	wakes := 0
	for w.now < 70*time.Second {
		w.now = max(w.cores[0].Wake(), w.now+time.Microsecond)
		w.tell(0)
		wakes++
	}
	const most = 60 + 30 + 12 + 5 // sweeps, renewals, listings of its runs, upkeep
	if wakes > most {
		t.Errorf("an idle replica woke %d times in a minute, want %d at most", wakes, most)
	}
}
