package scheduler_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/scheduler"
)

// client is a client of the fleet's store.
func (f *fleet) client() *scheduler.Client {
	f.t.Helper()
	c, err := scheduler.NewClient("test", f.store)
	if err != nil {
		f.t.Fatal(err)
	}
	return c
}

// changed demands of a command that it was done, and changed so much.
func (f *fleet) changed(want int) func(idempotency.Command, error) idempotency.Command {
	return func(c idempotency.Command, err error) idempotency.Command {
		f.t.Helper()
		if err != nil || c.Changed != want {
			f.t.Fatalf("%v of %+v changed %d, want %d: %v", c.Kind, c.ID, c.Changed, want, err)
		}
		return c
	}
}

// done demands the seconds of the scheduled dues, every ten, of which so many keys each are done.
func (f *fleet) done(job string, keys int, want ...int) {
	f.t.Helper()
	done := map[int]int{}
	for _, r := range f.runs(job)[idempotency.Done] {
		if s := int(r.ID.Due.Sub(day(1, 0, 0)).Seconds()); s%10 == 0 {
			done[s]++
		}
	}
	for _, s := range want {
		if done[s] != keys {
			f.t.Errorf("of the due at %d s %d keys are done, want %d", s, done[s], keys)
		}
		delete(done, s)
	}
	if len(done) > 0 {
		f.t.Errorf("done are also keys of %v", done)
	}
}

func until(second int) { time.Sleep(time.Until(day(1, 0, 0).Add(time.Duration(second) * time.Second))) }

// What a person asks of a job reaches all replicas within two seconds, is kept while all are down, and is done once.
func TestControlsReachTheFleet(t *testing.T) {
	for name, source := range map[string]jobs.KeySource{"one key": nil, "three keys": jobs.KeyList("1", "2", "3")} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fleet) {
				job := jobs.Job{Name: "each", Schedule: jobs.Every(10 * time.Second), Keys: source, Run: quick}
				c, n := f.client(), 1
				if source != nil {
					n = 3
				}
				fleet := []*replica{f.start("a", job), f.start("b", job), f.start("c", job)}
				until(25)
				f.changed(1)(c.Pause(t.Context(), "each", ann))
				until(65)
				f.changed(1)(c.Resume(t.Context(), "each", ann))
				until(72)
				before := len(f.runs("each")[idempotency.Done])
				f.changed(1)(c.Trigger(t.Context(), "each", "", nil, by("r-1")))
				until(74)
				if got := len(f.runs("each")[idempotency.Done]) - before; got != n {
					t.Errorf("%d runs were done 2 s after they were triggered, want %d", got, n)
				}
				f.changed(1)(c.Trigger(t.Context(), "each", "", nil, by("r-1")))
				f.changed(1)(c.SkipNext(t.Context(), "each", "", by("r-2")))
				until(95)
				f.changed(1)(c.SkipNext(t.Context(), "each", "", by("r-2")))
				f.done("each", n, 10, 20, 70, 90)
				from, to := day(1, 0, 0).Add(30*time.Second), day(1, 0, 0).Add(60*time.Second)
				f.changed(3)(c.Backfill(t.Context(), "each", "", from, to, by("r-3")))
				until(97)
				f.done("each", n, 10, 20, 30, 40, 50, 70, 90)
				f.changed(1)(c.Pause(t.Context(), "each", ann))
				f.end(fleet...)
				until(125)
				fleet = []*replica{f.start("a", job), f.start("b", job)}
				until(145)
				f.end(fleet...)
				f.done("each", n, 10, 20, 30, 40, 50, 70, 90)
				if once, more := f.count(); more > 0 || once != 8*n {
					t.Errorf("%d occurrences ran once and %d more often, want %d once", once, more, 8*n)
				}
			})
		})
	}
}

// A failed run that is tried again, and one that waits and is canceled, with no replica up when they are asked for.
func TestControlsWithoutReplicas(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		job := jobs.Job{Name: "once", Schedule: jobs.At(day(1, 0, 0).Add(10 * time.Second)), Run: quick, Retry: jobs.Retry{Attempts: -1}}
		failing := job
		failing.Run = func(_ context.Context, _ jobs.Occurrence) error { return errDeclined }
		c := f.client()
		a := f.start("a", failing)
		until(15)
		f.end(a)
		id := idempotency.ID{Job: "once", Due: day(1, 0, 0).Add(10 * time.Second)}
		f.changed(1)(c.Retry(t.Context(), id, ann))
		triggered := f.changed(1)(c.Trigger(t.Context(), "once", "", nil, by("r-1"))).ID
		triggered.Request = "r-1"
		f.changed(1)(c.Cancel(t.Context(), triggered, ann))
		a = f.start("a", job)
		until(30)
		f.end(a)
		runs := f.runs("once")
		if len(runs[idempotency.Done]) != 1 || len(runs[idempotency.Skipped]) != 1 || len(f.ran) != 1 {
			t.Errorf("the runs are %+v, and %v ran", runs, f.ran)
		}
		done := runs[idempotency.Done][0]
		if !slices.Equal(f.ran[jobs.Occurrence{Namespace: "test", Job: "once", Key: "once", Due: done.ID.Due}.ID()], []string{"a", "a"}) {
			t.Errorf("%v ran", f.ran)
		}
	})
}
