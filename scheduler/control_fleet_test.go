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

// done demands the seconds of the scheduled dues, every four, of which so many keys each are done.
func (f *fleet) done(job string, keys int, want ...int) {
	f.t.Helper()
	done := map[int]int{}
	for _, r := range f.runs(job)[idempotency.Done] {
		if s := int(r.ID.Due.Sub(day(1, 0, 0)).Seconds()); s%4 == 0 {
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

// till is how long it is to a second of the first day.
func till(second int) time.Duration {
	return time.Until(day(1, 0, 0).Add(time.Duration(second) * time.Second))
}

// What a person asks of a job reaches all replicas within two seconds, is kept while all are down, and is done once.
func TestControlsReachTheFleet(t *testing.T) {
	for name, source := range map[string]jobs.KeySource{"one key": nil, "three keys": jobs.KeyList("1", "2", "3")} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fleet) {
				job := jobs.Job{Name: "each", Schedule: jobs.Every(4 * time.Second), Keys: source, Run: quick}
				c, n := f.client(), 1
				if source != nil {
					n = 3
				}
				fleet := []*replica{f.start("a", job), f.start("b", job)}
				time.Sleep(till(9))
				f.changed(1)(c.Pause(t.Context(), "each", ann))
				time.Sleep(till(18))
				f.changed(1)(c.Resume(t.Context(), "each", ann))
				time.Sleep(till(21))
				before := len(f.runs("each")[idempotency.Done])
				f.changed(1)(c.Trigger(t.Context(), "each", "", nil, by("r-1")))
				time.Sleep(till(23))
				if got := len(f.runs("each")[idempotency.Done]) - before; got != n {
					t.Errorf("%d runs were done 2 s after they were triggered, want %d", got, n)
				}
				f.changed(1)(c.Trigger(t.Context(), "each", "", nil, by("r-1")))
				f.changed(1)(c.SkipNext(t.Context(), "each", "", by("r-2")))
				time.Sleep(till(29))
				f.changed(1)(c.SkipNext(t.Context(), "each", "", by("r-2")))
				f.done("each", n, 4, 8, 20, 28)
				from := day(1, 0, 0).Add(12 * time.Second)
				f.changed(2)(c.Backfill(t.Context(), "each", "", from, from.Add(8*time.Second), by("r-3")))
				time.Sleep(till(31))
				f.done("each", n, 4, 8, 12, 16, 20, 28)
				f.changed(1)(c.Pause(t.Context(), "each", ann))
				f.end(fleet...)
				time.Sleep(till(33))
				fleet = []*replica{f.start("a", job), f.start("b", job)}
				time.Sleep(till(41))
				f.end(fleet...)
				f.done("each", n, 4, 8, 12, 16, 20, 28)
				if once, more := f.count(); more > 0 || once != 7*n {
					t.Errorf("%d occurrences ran once and %d more often, want %d once", once, more, 7*n)
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
		time.Sleep(till(15))
		f.end(a)
		id := idempotency.ID{Job: "once", Due: day(1, 0, 0).Add(10 * time.Second)}
		f.changed(1)(c.Retry(t.Context(), id, ann))
		triggered := f.changed(1)(c.Trigger(t.Context(), "once", "", nil, by("r-1"))).ID
		triggered.Request = "r-1"
		f.changed(1)(c.Cancel(t.Context(), triggered, ann))
		a = f.start("a", job)
		time.Sleep(till(30))
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
