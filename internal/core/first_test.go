package core

import (
	"slices"
	"testing"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

// firsts tell of each end of a job's attempts and runs whether it was told as that of a first start.
func (w *tower) firsts(job string) (list []bool) {
	for _, a := range w.acts {
		if f, ok := a.(Finished); ok && f.Job == job {
			list = append(list, f.First)
		}
	}
	return list
}

func (w *tower) wantFirsts(job string, want ...bool) {
	w.t.Helper()
	if got := w.firsts(job); !slices.Equal(got, want) {
		w.t.Errorf("job %s: first starts %v, want %v", job, got, want)
	}
}

// A run starts for the first time once, also where its first attempt is repeated by another replica, since it was given back.
func TestFirstStartIsOne(t *testing.T) {
	t.Parallel()
	w := newTower(t, timing(), "a", "b")
	at := 0
	w.act = func(core int, a Action) []Event {
		if _, ok := a.(Start); ok {
			at = core
		}
		return nil
	}
	end := func(err error) {
		t.Helper()
		s := w.starts("j")
		w.tell(at, Return(s[len(s)-1].Handle, err))
	}
	w.begin(once("j"))
	w.until(11 * second)
	first := at
	w.tell(at, Stop{}, Hurry{})
	end(jobs.ErrDraining)
	w.until(20 * second)
	if s := w.starts("j"); len(s) != 2 || at == first || s[1].Occurrence.Attempt != 1 {
		t.Fatalf("%+v, want the first attempt once more, elsewhere", s)
	}
	end(jobs.RetryAfter(second, errWork))
	w.until(25 * second)
	end(nil)
	w.until(30 * second)
	w.want("j", "done")
	w.wantFirsts("j", true, false, false)
}

func TestFirstStartOfLocalRuns(t *testing.T) {
	t.Parallel()
	w := newTower(t, timing(), "a")
	j := once("j")
	j.Guarantee = jobs.Efficiency
	w.begin(j)
	w.until(11 * second)
	w.returned(w.starts("j")[0], jobs.RetryAfter(second, errWork))
	w.until(15 * second)
	w.returned(w.starts("j")[1], nil)
	w.wantFirsts("j", true, false)
}

// What a person asked for is no first start of the schedule's, nor is the end of a run that did not start.
func TestFirstStartIsTheSchedules(t *testing.T) {
	t.Parallel()
	w := newTower(t, timing(), "a")
	manual := jobs.Job{Name: "triggered", Schedule: jobs.Manual(), Run: none}
	w.begin(once("retried"), once("backfilled"), manual)
	w.until(5 * second)
	w.by(idempotency.Skip, due("backfilled", 10*second))
	w.until(11 * second)
	w.returned(w.starts("retried")[0], jobs.Permanent(errWork))
	w.until(12 * second)
	w.by(idempotency.Retry, due("retried", 10*second))
	w.until(13 * second)
	w.by(idempotency.Backfill, idempotency.ID{Job: "backfilled"}, epoch.Add(10*second))
	w.until(14 * second)
	w.by(idempotency.Trigger, idempotency.ID{Job: "triggered"})
	w.until(20 * second)
	w.returned(w.starts("retried")[1], nil)
	w.returned(w.starts("backfilled")[0], nil)
	w.returned(w.starts("triggered")[0], nil)
	w.until(21 * second)
	w.wantFirsts("retried", true, false)
	w.wantFirsts("backfilled", false)
	w.wantFirsts("triggered", false)
	stray := held{begun: true, occ: jobs.Occurrence{Attempt: 1, Request: "r"}} // nobody knows of what past any more
	if stray.first() {
		t.Error("a run that was asked for passes for one of the schedule")
	}
}
