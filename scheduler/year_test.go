package scheduler_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/sqlite"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/scheduler"
)

var yearJobs = flag.Int("year.jobs", yearMany, "how many jobs TestYear has")

const (
	yearAway    = 365*24*time.Hour + 30*time.Second // from the beginning of a bubble to the return
	yearHorizon = 24 * time.Hour
)

// recorded is a store that people can look into.
type recorded interface {
	idempotency.Store
	idempotency.History
}

// TestYear takes a replica away for a year and lets it come back to 1,000 jobs (100 with the race detector) that were due each minute (F57, T20). What came meanwhile
// is decided in one stroke a job, and recorded due by due: each has one record, and the counts are exact.
func TestYear(t *testing.T) {
	t.Parallel()
	memory := idempotency.NewMemory(nil)
	path := filepath.Join(t.TempDir(), "year.db")
	for name, open := range map[string]func(*testing.T) (recorded, func() error){
		"memory": func(*testing.T) (recorded, func() error) { return memory, func() error { return nil } },
		"sqlite": func(t *testing.T) (recorded, func() error) {
			s, err := sqlite.Open(context.Background(), path, nil)
			if err != nil {
				t.Fatal(err)
			}
			return s, s.Close
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { yearly(t, open, 90*time.Second, nil) })
			begun := time.Now() // outside the bubbles, whose clocks are fake
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(yearAway)
				yearly(t, open, 20*time.Second, tiled)
			})
			took := time.Since(begun)
			t.Logf("T20: %s: %d jobs, a year of minutes each: decided, run and looked at in %s, %.2f ms a job", name, *yearJobs, took.Round(time.Millisecond),
				took.Seconds()*1000/float64(*yearJobs))
		})
	}
}

// yearly lets a replica run the jobs for a while, and looks at the store.
func yearly(t *testing.T, open func(*testing.T) (recorded, func() error), lasts time.Duration, look func(*testing.T, recorded)) {
	store, closed := open(t)
	s, err := scheduler.New(scheduler.Config{
		Namespace: "test", Store: store, Concurrency: 64, Horizon: yearHorizon, Retention: 2 * 365 * 24 * time.Hour, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	list := make([]jobs.Job, *yearJobs)
	for i := range list {
		list[i] = jobs.Job{Name: fmt.Sprintf("job%05d", i), Schedule: jobs.Every(time.Minute), Run: func(context.Context, jobs.Occurrence) error { return nil }}
	}
	if err := s.Add(list...); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	time.Sleep(lasts)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if look != nil {
		look(t, store)
	}
	if err := closed(); err != nil {
		t.Error(err)
	}
}

// span is a record of some dues of a job: a run, or a range.
type span struct {
	from, to time.Time
	count    int64
	what     string
}

// tiled demands of each job that its records cover each minute once, and that so many are of each kind as the policy says.
func tiled(t *testing.T, store recorded) {
	ctx := context.Background()
	all := map[string][]span{}
	for r, err := range store.List(ctx, idempotency.Filter{Namespace: "test"}) {
		if err != nil {
			t.Fatal(err)
		}
		what := "done"
		if r.State != idempotency.Ended || r.Outcome != idempotency.Done {
			what = "not done"
		}
		all[r.ID.Job] = append(all[r.ID.Job], span{r.ID.Due, r.ID.Due, 1, what})
	}
	for r, err := range store.Ranges(ctx, "test", "") {
		if err != nil {
			t.Fatal(err)
		}
		all[r.Job] = append(all[r.Job], span{r.From, r.To, r.Count, r.Reason})
	}
	if len(all) != *yearJobs {
		t.Errorf("%d jobs have records, not %d", len(all), *yearJobs)
	}
	sum := int64(0)
	wants := map[time.Time]map[string]int64{}
	for name, list := range all {
		slices.SortFunc(list, func(a, b span) int { return cmp.Compare(a.from.Unix(), b.from.Unix()) })
		next, got := list[0].from, map[string]int64{}
		for _, s := range list {
			if minutes := int64(s.to.Sub(s.from)/time.Minute) + 1; !s.from.Equal(next) || s.count != minutes {
				t.Fatalf("%s: %s to %s is %q and counts %d; the record before ends a minute before %s", name, s.from, s.to, s.what, s.count, next)
			}
			next = s.to.Add(time.Minute)
			got[s.what] += s.count
		}
		first := list[0].from
		if wants[first] == nil {
			wants[first] = bruteYear(first)
		}
		if want := wants[first]; !maps.Equal(got, want) {
			t.Fatalf("%s: of a year's minutes it has %v, want %v", name, got, want)
		}
		sum += got["age"] + got["late"]
	}
	t.Logf("%d dues are recorded as missed, each once", sum)
}

// bruteYear walks minute by minute from the first due to the return: what the default policy says of each. The first replica ran
// the first minutes itself.
func bruteYear(first time.Time) map[string]int64 {
	begin := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	back := begin.Add(yearAway)
	want := map[string]int64{}
	for due := first; !due.After(back); due = due.Add(time.Minute) {
		switch age := back.Sub(due); {
		case due.Before(begin.Add(90 * time.Second)):
			want["done"]++
		case age <= time.Minute: // it is not late
			want["done"]++
		case age <= 2*time.Minute: // the latest of the late ones
			want["done"]++
		case age <= yearHorizon:
			want["late"]++
		default:
			want["age"]++
		}
	}
	return want
}
