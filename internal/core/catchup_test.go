package core

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

// What is due after an outage is more than one decision takes. The decisions after the first catch up like it: none of their
// dues is skipped since a run of the first has the key.
func TestCatchUpInParts(t *testing.T) {
	t.Parallel()
	c := timing()
	c.Horizon, c.Retention = 4*time.Hour, 5*time.Hour
	w := newTower(t, c, "a")
	const dues, each = idempotency.MaxBatch + 1, 10 * time.Second
	w.begin(jobs.Job{Name: "j", Schedule: jobs.Every(each), Missed: jobs.Missed{Policy: jobs.MissedAll, Max: 10_000}, Run: none})
	w.until(time.Second)
	w.call = func(int, string) error { return errDown }
	w.until(dues*each + time.Second)
	w.call = nil
	w.until((dues+1)*each - time.Second)
	rows := w.rows()
	if len(rows) != dues {
		t.Fatalf("%d runs, want %d", len(rows), dues)
	}
	for _, r := range rows {
		if r.State == idempotency.Ended || r.State == idempotency.Running && !r.ID.Due.Equal(at(10)) {
			t.Errorf("%v is in state %d (%s): want the oldest running, and all others waiting", r.ID.Due, r.State, r.Reason)
		}
	}
	if n := w.calls["Decide"]; n > 3 {
		t.Errorf("%d calls for two decisions", n)
	}
}

// weighed notes how many runs each call of Decide opens.
type weighed struct {
	idempotency.Store
	calls *[]int
}

func (w weighed) Decide(ctx context.Context, s idempotency.Session, nonce int64, d []idempotency.Decision) ([]idempotency.Decided, error) {
	n := 0
	for _, x := range d {
		n += len(x.Run)
	}
	*w.calls = append(*w.calls, n)
	return w.Store.Decide(ctx, s, nonce, d)
}

// Many jobs catch up with many dues each: no call opens more runs than fit into a batch, or it would never be done in its time.
func TestCatchUpOfManyJobs(t *testing.T) {
	t.Parallel()
	w := newTower(t, timing(), "a")
	var calls []int
	w.store = weighed{w.store, &calls}
	var list []jobs.Job
	for i := range 30 {
		list = append(list, jobs.Job{Name: fmt.Sprint("j", i), Schedule: jobs.Every(10 * time.Second), Missed: jobs.Missed{Policy: jobs.MissedAll, Max: 300}, Run: none})
	}
	w.begin(list...)
	w.until(time.Second)
	w.call = func(int, string) error { return errDown }
	w.until(20 * time.Minute)
	w.call, calls = nil, nil
	w.until(20*time.Minute + 5*time.Second)
	total := 0
	for _, n := range calls {
		if total += n; n > idempotency.MaxBatch {
			t.Errorf("one call opens %d runs", n)
		}
	}
	if total != 30*120 || len(calls) > 5 {
		t.Errorf("%d runs are opened in %d calls, want %d in 4", total, len(calls), 30*120)
	}
}
