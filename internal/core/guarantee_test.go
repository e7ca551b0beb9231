package core

import (
	"testing"
	"time"

	"github.com/belfry-go/belfry/jobs"
)

// A job that comes back with another guarantee is another kind of job: it goes by the other clock, and leaves nothing with the one before.
func TestGuaranteeChanged(t *testing.T) {
	t.Parallel()
	w := newTower(t, timing(), "a")
	j := jobs.Job{Name: "j", Schedule: jobs.Every(10 * time.Second), Run: none}.WithDefaults()
	w.begin(j)
	w.until(15 * time.Second)
	other := j
	other.Guarantee = jobs.Efficiency
	w.tell(0, JobsChanged{Jobs: []jobs.Job{other}})
	if _, ok := w.cores[0].storeDues.first(); ok {
		t.Error("an efficiency job is still looked at by the store's time")
	}
	n := w.calls["Decide"]
	w.until(60 * time.Second)
	if w.calls["Decide"] != n {
		t.Errorf("%d further openings of an efficiency job", w.calls["Decide"]-n)
	}
	w.tell(0, JobsChanged{Jobs: []jobs.Job{j}})
	if _, ok := w.cores[0].wallDues.first(); ok {
		t.Error("a correctness job is still looked at by the host's time")
	}
}
