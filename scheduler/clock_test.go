package scheduler_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

// count is how many lines of the log have all of the words.
func (b *book) count(words ...string) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
lines:
	for line := range strings.Lines(b.buf.String()) {
		for _, w := range words {
			if !strings.Contains(line, w) {
				continue lines
			}
		}
		n++
	}
	return n
}

// wrongFor is a store whose clock is wrong by d from the first minute to the end of the next span.
func wrongFor(d, span time.Duration) idempotency.Store {
	from := time.Now().Add(time.Minute)
	return idempotency.NewMemory(func() time.Time {
		if now := time.Now(); now.After(from) && now.Before(from.Add(span)) {
			return now.Add(d)
		}
		return time.Now()
	})
}

// F53: the host's clock and the store's differ by more than a second: the log says so, by how much and which is
// ahead, and again after ten minutes.
func TestSkewIsLogged(t *testing.T) {
	for name, d := range map[string]time.Duration{`ahead="the store's"`: 5 * time.Second, `ahead="this host's"`: -5 * time.Second} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, _ *fleet) {
				log := alone(t, wrongFor(d, 15*time.Minute), 30*time.Minute, jobs.Job{Name: "j", Schedule: jobs.Every(time.Hour), Run: quick})
				if n := log.count("correctness jobs run on the store's time and are not affected", "by=5s", name); n != 2 {
					t.Errorf("told %d times in 15 minutes, want twice; the log says: %q", n, log.buf.String())
				}
			})
		})
	}
}

// CU-06, F55: the store's clock was ahead for a while, and what it opened then stays decided. The log names the job, and up
// to when it is silent; from then on it runs, and no due twice.
func TestJobsOpenedAheadAreTold(t *testing.T) {
	bubble(t, func(t *testing.T, _ *fleet) {
		begin, ran, last := time.Now(), map[time.Time]int{}, time.Time{}
		run := func(_ context.Context, o jobs.Occurrence) error {
			if ran[o.Due]++; ran[o.Due] > 1 {
				t.Errorf("due %v ran twice", o.Due)
			}
			last = o.Due
			return nil
		}
		store := wrongFor(2*time.Hour, 10*time.Minute)
		log := alone(t, store, 3*time.Hour, jobs.Job{Name: "minutely", Schedule: jobs.Every(time.Minute), Run: run})
		if n := log.count("level=ERROR", "of the jobs minutely, which are silent until then"); n != 1 {
			t.Errorf("told %d times, want once; the log says: %q", n, log.buf.String())
		}
		if want := begin.Add(3 * time.Hour).Add(-time.Second).Truncate(time.Minute); last.Before(want) {
			t.Errorf("the last run is of %v, want %v: the job did not go on", last, want)
		}
	})
}

// CK-09: a calendar that answers with what it was asked ends there; the job is not started in a loop, and others go on.
func TestCalendarThatStandsStill(t *testing.T) {
	for name, g := range map[string]jobs.Guarantee{"correctness": jobs.Correctness, "efficiency": jobs.Efficiency} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fleet) {
				stuck := time.Now().Add(90 * time.Second)
				still := jobs.Custom("still", func(after time.Time) time.Time {
					if after.Before(stuck) || after.Year() > 2000 { // Add asks it for a later year
						return after.Truncate(time.Minute).Add(time.Minute)
					}
					return after
				})
				var l tally // the key of a job without keys is its name
				alone(t, f.store, 5*time.Minute+30*time.Second,
					jobs.Job{Name: "still", Schedule: still, Guarantee: g, Run: l.run},
					jobs.Job{Name: "other", Schedule: jobs.Every(time.Minute), Guarantee: g, Run: l.run})
				if l.n["still"] != 2 || l.n["other"] != 5 {
					t.Errorf("started %v in five minutes, want 2 of the calendar that ends and 5 of the other", l.n)
				}
			})
		})
	}
}
