package core

import (
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

const year = 365 * 24 * time.Hour

// walked is a schedule that can only be walked, each d.
func walked(d time.Duration, calls *int) jobs.Schedule {
	return jobs.Custom("walked", func(after time.Time) time.Time {
		*calls++
		return after.Truncate(d).Add(d)
	})
}

// catchUp makes one decision after the other until nothing is due, and returns how many they were, and of how many
// dues each is the fate.
func catchUp(t testing.TB, p planner, e idempotency.Entry) (decisions int, run []time.Time, missed map[string]int64) {
	t.Helper()
	missed = map[string]int64{}
	for decisions = 1; ; decisions++ {
		d, _ := p.plan(e)
		if err := d.Validate(); err != nil {
			t.Fatalf("decision %d: %v", decisions, err)
		}
		if len(d.Ranges) > 6 {
			t.Fatalf("decision %d writes %d ranges", decisions, len(d.Ranges))
		}
		run = append(run, d.Run...)
		for _, r := range d.Ranges {
			missed[r.Reason] += r.Count
		}
		if !d.Opened.Before(p.until(e)) {
			return decisions, run, missed
		}
		if !d.Opened.After(e.Opened) || d.Next.After(p.now) {
			t.Fatalf("decision %d opens up to %v, after %v, and goes on at %v", decisions, d.Opened, e.Opened, d.Next)
		}
		e.Opened, e.Next = d.Opened, d.Next
	}
}

// F57: a job that is due every minute, or second, was not opened for a year. Each due has one fate, exactly counted;
// what can be counted takes one decision, and one that can only be walked a few, with each due looked at about once.
func TestYearOfDues(t *testing.T) {
	t.Parallel()
	const hour, day = 60, 24 * 60
	calls := 0
	for _, c := range []struct {
		name      string
		schedule  jobs.Schedule
		missed    jobs.Missed
		decisions int
		run       int
		want      map[string]int64
	}{
		{"every minute, the latest", jobs.Every(time.Minute), jobs.Missed{}, 1, 3, map[string]int64{"age": 364 * day, "late": day - 3}},
		{"every minute, skipped", jobs.Every(time.Minute), jobs.Missed{Policy: jobs.MissedSkip}, 1, 2, map[string]int64{"late": 365*day - 2}},
		{"every minute, a hundred", jobs.Every(time.Minute), jobs.Missed{Policy: jobs.MissedAll}, 1, 102, map[string]int64{"age": 364 * day, "max": day - 102}},
		{"every minute, an hour", jobs.Every(time.Minute), jobs.Missed{Policy: jobs.MissedAll, MaxAge: time.Hour - time.Second}, 1, hour, map[string]int64{"age": 365*day - hour}},
		{"every second", jobs.Every(time.Second), jobs.Missed{}, 1, 62, map[string]int64{"age": 364 * day * 60, "late": day*60 - 62}},
		{"every second, ten thousand", jobs.Every(time.Second), jobs.Missed{Policy: jobs.MissedAll, Max: 10_000}, 11, 10_061, map[string]int64{"age": 364 * day * 60, "max": day*60 - 10_061}},
		{"a crontab line", jobs.Cron("* * * * *"), jobs.Missed{}, 1, 3, map[string]int64{"age": 364 * day, "late": day - 3}},
		{"one in a zone", jobs.Cron("TZ=America/New_York */5 * * * *"), jobs.Missed{}, 1, 2, map[string]int64{"age": 364 * day / 5, "late": day/5 - 2}},
		{"a calendar", walked(time.Minute, &calls), jobs.Missed{}, 12, 3, map[string]int64{"age": 364 * day, "late": day - 3}},
		{"a calendar, five hundred", walked(time.Minute, &calls), jobs.Missed{Policy: jobs.MissedAll, Max: 500}, 12, 502, map[string]int64{"age": 364 * day, "max": day - 502}},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := epoch.Add(year)
			calls = 0
			decisions, run, missed := catchUp(t, plannerOf(c.schedule, now, time.Minute, 24*time.Hour-time.Second, c.missed),
				idempotency.Entry{Definition: idempotency.Definition{Job: "j", Hash: "h"}, Opened: epoch})
			if decisions > c.decisions || len(run) != c.run || len(missed) != len(c.want) {
				t.Errorf("%d decisions, %d run, missed %v; want %d, %d and %v", decisions, len(run), missed, c.decisions, c.run, c.want)
			}
			for reason, n := range c.want {
				if missed[reason] != n {
					t.Errorf("%d are missed for %q, want %d", missed[reason], reason, n)
				}
			}
			if last := run[len(run)-1]; !last.Equal(now) {
				t.Errorf("the last that runs is %v, want %v", last, now)
			}
			if calls > 366*day+20*day {
				t.Errorf("the calendar was asked %d times for %d dues", calls, 365*day)
			}
		})
	}
}

func BenchmarkPlanYear(b *testing.B) {
	calls := 0
	for name, s := range map[string]jobs.Schedule{
		"every": jobs.Every(time.Minute), "cron": jobs.Cron("* * * * *"), "zoned": jobs.Cron("TZ=America/New_York */5 * * * *"),
		"seconds": jobs.Cron("* * * * * *"), "walked": walked(time.Minute, &calls),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			decisions := 0
			for b.Loop() {
				decisions, _, _ = catchUp(b, plannerOf(s, epoch.Add(year), time.Minute, 24*time.Hour, jobs.Missed{}),
					idempotency.Entry{Definition: idempotency.Definition{Job: "j", Hash: "h"}, Opened: epoch})
			}
			b.ReportMetric(float64(decisions), "decisions/op")
		})
	}
}
