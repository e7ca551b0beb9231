package scheduler_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/scheduler"
)

// era is one store through which replicas come and go, one at a time.
type era struct {
	t           *testing.T
	store       *idempotency.Memory
	concurrency int

	mu   sync.Mutex
	runs map[string][]start // by job
}

// start is that of a handler.
type start struct{ due, at time.Time }

// inEra runs f in fake time, from the beginning of the year 2000.
func inEra(t *testing.T, f func(e *era)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f(&era{t: t, store: idempotency.NewMemory(nil), concurrency: 8, runs: map[string][]start{}})
	})
}

// up lets a replica run from one instant to another; until the first nothing runs.
func (e *era) up(from, to time.Time, list ...jobs.Job) {
	e.t.Helper()
	time.Sleep(time.Until(from))
	s, err := scheduler.New(scheduler.Config{
		Namespace: "test", Store: e.store, Concurrency: e.concurrency,
		Lease: 10 * time.Minute, Grace: time.Minute, Sweep: time.Minute, // little to do in days of fake time
		Logger: slog.New(slog.DiscardHandler),
		Middleware: []scheduler.Middleware{func(next jobs.Handler) jobs.Handler {
			return func(ctx context.Context, o jobs.Occurrence) error {
				e.mu.Lock()
				e.runs[o.Job] = append(e.runs[o.Job], start{o.Due, time.Now().UTC()})
				e.mu.Unlock()
				return next(ctx, o)
			}
		}},
	})
	if err == nil {
		err = s.Add(list...)
	}
	if err != nil {
		e.t.Fatal(err)
	}
	ctx, stop := context.WithDeadline(e.t.Context(), to)
	defer stop()
	if err := s.Run(ctx); err != nil {
		e.t.Fatal(err)
	}
}

// ran demands the dues of all runs of a job, in order.
func (e *era) ran(job string, want ...time.Time) {
	e.t.Helper()
	got := make([]time.Time, 0, len(e.runs[job]))
	for _, r := range e.runs[job] {
		got = append(got, r.due)
	}
	if !slices.EqualFunc(got, want, time.Time.Equal) {
		e.t.Errorf("job %s ran for %v, want %v", job, got, want)
	}
}

// ranges demands the range rows of a job, oldest first: count and reason.
func (e *era) ranges(job string, want ...string) {
	e.t.Helper()
	var got []string
	for r, err := range e.store.Ranges(e.t.Context(), "test", job) {
		if err != nil {
			e.t.Fatal(err)
		}
		got = append(got, fmt.Sprint(r.Count, " ", r.Reason))
	}
	if !slices.Equal(got, want) {
		e.t.Errorf("job %s has the ranges %q, want %q", job, got, want)
	}
}

func day(d, hour, minute int) time.Time { return time.Date(2000, 1, d, hour, minute, 0, 0, time.UTC) }

// CU-01: the only daily run falls into a stop of 30 minutes.
func TestOneDailyRunMissed(t *testing.T) {
	for name, c := range map[string]struct {
		missed jobs.Missed
		runs   []time.Time
		ranges []string
	}{
		"latest": {jobs.Missed{MaxAge: 6 * time.Hour}, []time.Time{day(2, 2, 0), day(3, 2, 0), day(4, 2, 0)}, nil},
		"skip":   {jobs.Missed{Policy: jobs.MissedSkip}, []time.Time{day(2, 2, 0), day(4, 2, 0)}, []string{"1 late"}},
	} {
		t.Run(name, func(t *testing.T) {
			inEra(t, func(e *era) {
				report := jobs.Job{Name: "report", Schedule: jobs.Cron("0 2 * * *"), Missed: c.missed, Run: quick}
				e.up(day(2, 1, 0), day(2, 3, 0), report)
				e.up(day(3, 1, 0), day(3, 1, 50), report)
				e.up(day(3, 2, 20), day(4, 2, 1), report)
				e.ran("report", c.runs...)
				e.ranges("report", c.ranges...)
				if r := e.runs["report"]; len(r) == 3 && r[1].at.Sub(day(3, 2, 20)) > time.Second {
					t.Errorf("the missed run began at %v", r[1].at)
				}
			})
		})
	}
}

// CU-03: no number of missed dues switches a job off.
func TestLongOutageSwitchesNothingOff(t *testing.T) {
	for name, c := range map[string]struct {
		down   time.Duration
		ranges []string
	}{
		"101 minutes": {101 * time.Minute, []string{"99 late"}},
		"15 days":     {15 * 24 * time.Hour, []string{"20160 age", "1438 late"}},
	} {
		t.Run(name, func(t *testing.T) {
			inEra(t, func(e *era) {
				each := jobs.Job{Name: "each", Schedule: jobs.Cron("* * * * *"), Run: quick}
				stop := day(2, 2, 0).Add(30 * time.Second)
				e.up(day(2, 1, 50).Add(time.Second), stop, each)
				back := stop.Add(c.down)
				e.up(back, back.Add(time.Hour), each)
				first := slices.IndexFunc(e.runs["each"], func(s start) bool { return s.due.After(back) })
				if ordinary := e.runs["each"][first:]; len(ordinary) != 60 || first != 10+2 {
					t.Errorf("%d runs before the hour and %d in it, want 10 before the outage, 2 for it, and 60", first, len(ordinary))
				} else if late := ordinary[59].at.Sub(ordinary[59].due); late > time.Second {
					t.Errorf("the last one began %v late", late)
				}
				e.ranges("each", c.ranges...)
			})
		})
	}
}

// CU-04: the store comes back as it was three days ago, as far as a fleet that begins anew can tell.
func TestOldNewsIsNotDelivered(t *testing.T) {
	inEra(t, func(e *era) {
		daily := func(name string, maxAge time.Duration) jobs.Job {
			return jobs.Job{Name: name, Schedule: jobs.Cron("0 2 * * *"), Missed: jobs.Missed{MaxAge: maxAge}, Run: quick}
		}
		list := []jobs.Job{daily("news", 2*time.Hour), daily("bill", 24*time.Hour)}
		e.up(day(2, 1, 0), day(2, 3, 0), list...)
		e.up(day(5, 12, 0), day(5, 13, 0), list...)
		e.ran("news", day(2, 2, 0))
		e.ranges("news", "3 age")
		e.ran("bill", day(2, 2, 0), day(5, 2, 0))
		e.ranges("bill", "2 age")
	})
}

// CU-05: a job that was never there has missed nothing, and nobody looks for it in the past.
func TestNewJobHasMissedNothing(t *testing.T) {
	inEra(t, func(e *era) {
		asked := 0
		minute := jobs.Custom("minute", func(after time.Time) time.Time {
			if asked++; after.Before(day(1, 23, 0)) {
				t.Errorf("the calendar is asked for %v", after)
			}
			return after.Truncate(time.Minute).Add(time.Minute)
		})
		e.up(day(2, 0, 0).Add(time.Second), day(2, 0, 3).Add(time.Second),
			jobs.Job{Name: "minute", Schedule: minute, Missed: jobs.Missed{Policy: jobs.MissedAll}, Run: quick},
			jobs.Job{Name: "yearly", Schedule: jobs.Cron("@yearly"), Missed: jobs.Missed{Policy: jobs.MissedAll}, Run: quick})
		e.ran("minute", day(2, 0, 1), day(2, 0, 2), day(2, 0, 3))
		e.ran("yearly")
		e.ranges("")
		if asked > 60 {
			t.Errorf("the calendar was asked %d times for three runs", asked)
		}
	})
}

// CU-07: the night in which 02:30 does not exist falls into a stop: the missed run is the one that the clock's jump made.
func TestDownAcrossSpringChange(t *testing.T) {
	inEra(t, func(e *era) {
		at := func(day, hour, minute int) time.Time { return time.Date(2025, 3, day, hour, minute, 0, 0, time.UTC) }
		nightly := jobs.Job{Name: "nightly", Schedule: jobs.Cron("30 2 * * *").In("America/New_York"), Run: quick}
		e.up(at(9, 5, 0), at(9, 6, 0), nightly)
		e.up(at(9, 9, 0), at(10, 7, 30), nightly)
		e.ran("nightly", at(9, 7, 0), at(10, 6, 30))
		e.ranges("nightly")
	})
}

// DP-01: the time of day is edited after today's run, to one that has passed today as well.
func TestEditedTimeOfDayDoesNotFireAtOnce(t *testing.T) {
	inEra(t, func(e *era) {
		report := func(spec string) jobs.Job {
			return jobs.Job{Name: "report", Schedule: jobs.Cron(spec), Missed: jobs.Missed{Policy: jobs.MissedAll}, Run: quick}
		}
		e.up(day(2, 0, 30), day(2, 1, 30), report("0 1 * * *"))
		e.up(day(2, 15, 0), day(3, 2, 1), report("0 2 * * *"))
		e.ran("report", day(2, 1, 0), day(3, 2, 0))
		e.ranges("report")
	})
}

// CU-08: 2,000 jobs are overdue by one run when the only replica starts. All run, no more at a time than it has workers;
// and a job that is due meanwhile does not wait for all of these.
func TestEverythingOverdueAtOnce(t *testing.T) {
	inEra(t, func(e *era) {
		e.concurrency = 20
		var running, most atomic.Int32
		work := func(context.Context, jobs.Occurrence) error {
			if n := running.Add(1); n > most.Load() {
				most.Store(n)
			}
			time.Sleep(3 * time.Second)
			running.Add(-1)
			return nil
		}
		list := []jobs.Job{{Name: "now", Schedule: jobs.Every(time.Minute).Phase(30 * time.Second), Run: work},
			{Name: "now-keyed", Schedule: jobs.Every(time.Minute).Phase(45 * time.Second), Keys: jobs.KeyList("a", "b", "c"), Run: work}}
		for i := range 2000 {
			list = append(list, jobs.Job{Name: fmt.Sprint("hourly-", i), Schedule: jobs.Every(time.Hour), Run: work})
		}
		e.up(day(2, 0, 50), day(2, 0, 51), list...)
		clear(e.runs)
		e.up(day(2, 1, 20), day(2, 1, 40), list...)
		var last time.Time
		for _, j := range list[2:] {
			e.ran(j.Name, day(2, 1, 0))
			if r := e.runs[j.Name]; len(r) > 0 && r[0].at.After(last) {
				last = r[0].at
			}
		}
		if n := most.Load(); n != 20 {
			t.Errorf("%d ran at once, want 20", n)
		}
		if took := last.Sub(day(2, 1, 20)); took < 5*time.Minute || took > 6*time.Minute {
			t.Errorf("the last of the backlog began after %v, want 2,000 x 3 s / 20, and a little", took)
		}
		for job, want := range map[string]int{"now": 20, "now-keyed": 3 * 20} {
			for _, r := range e.runs[job] {
				if late := r.at.Sub(r.due); r.due.After(day(2, 1, 20)) && late > 4*time.Second {
					t.Errorf("job %s, due at %v and behind a backlog, began %v late", job, r.due, late)
				}
			}
			// And two dues for the stop, of whose runs one that is due now may find its key taken.
			if n := len(e.runs[job]); n < want || n > want+want/10 {
				t.Errorf("job %s ran %d times, want %d for 20 dues, and up to two dues for the stop", job, n, want)
			}
		}
	})
}
