package core

import (
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

// F61: a job that nobody has any more is reported each hour by one replica, and retired after a day; what waited of it is
// recorded. One that comes back is not retired.
func TestRetired(t *testing.T) {
	t.Parallel()
	c := timing()
	c.Lease, c.Grace, c.Sweep, c.Retention = 10*time.Minute, time.Minute, time.Minute, 48*time.Hour
	w := newTower(t, c, "a", "b")
	w.act = list(0)
	old, stays := jobs.Job{Name: "old", Schedule: jobs.Manual(), Run: none}, jobs.Job{Name: "stays", Schedule: jobs.Every(time.Hour), Run: none}
	w.begin(old, stays)
	w.until(time.Minute)
	for i := range w.cores {
		w.tell(i, JobsChanged{Jobs: []jobs.Job{stays.WithDefaults()}})
	}
	w.by(idempotency.Trigger, idempotency.ID{Job: "old"})
	w.leap(3*time.Hour + 5*time.Minute)
	if told := w.orphans(); len(told) < 3 || len(told) > 4 || told[0].Job != "old" || told[0].Retired {
		t.Fatalf("in three hours it is reported: %+v", told)
	}
	w.want("old", "waiting (by hand)")
	w.leap(25 * time.Hour)
	told := w.orphans()
	if n := len(told); n < 24 || n > 27 || !told[n-1].Retired || told[n-1].For < 24*time.Hour {
		t.Errorf("%d reports, the last one: %+v", n, told[n-1])
	}
	w.want("old", "skipped (retired)")
	n := len(told)
	w.leap(27 * time.Hour)
	if len(w.orphans()) != n {
		t.Error("a retired job is reported on and on")
	}
}

func (w *tower) orphans() (list []Orphaned) {
	for _, a := range w.acts {
		if o, ok := a.(Orphaned); ok {
			list = append(list, o)
		}
	}
	return list
}

// leap lets time pass from one event to the next.
func (w *tower) leap(end time.Duration) {
	for w.now < end {
		next := end
		for _, c := range w.cores {
			next = min(next, max(c.Wake(), w.now+time.Millisecond))
		}
		w.now = next
		for i := range w.cores {
			w.tell(i)
		}
	}
}
