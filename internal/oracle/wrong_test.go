package oracle_test

import (
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/belfry-go/belfry/jobs"
)

// Schedules that are wrong in the ways in which schedulers are: each is caught.
func TestWrongIsCaught(t *testing.T) {
	t.Parallel()
	from := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	to := from.AddDate(1, 0, 0)
	for _, c := range []struct {
		name, zone, line string
		wrong            func(line string, loc *time.Location) iter.Seq[time.Time]
	}{
		{"skips what was jumped over", "America/New_York", "30 2 * * *", func(line string, loc *time.Location) iter.Seq[time.Time] {
			return keep(cron(line, loc, from, to), func(t time.Time) bool { return t.In(loc).Minute() == 30 })
		}},
		{"leaves the jump to package time", "America/New_York", "30 2 * * *", daily(2, 30, from, to)},
		{"makes up at the full hour", "Australia/Lord_Howe", "15 2 * * *", func(line string, loc *time.Location) iter.Seq[time.Time] {
			return alter(cron(line, loc, from, to), func(t time.Time) time.Time {
				if t.In(loc).Minute() == 15 {
					return t
				}
				return t.Add(30 * time.Minute)
			})
		}},
		{"fires in both passes", "America/New_York", "30 1 * * *", func(_ string, loc *time.Location) iter.Seq[time.Time] {
			return cron("30 1-1/1 * * *", loc, from, to)
		}},
		{"fires in the second pass", "America/New_York", "30 1 * * *", func(line string, loc *time.Location) iter.Seq[time.Time] {
			return alter(cron(line, loc, from, to), func(t time.Time) time.Time {
				if later := t.Add(time.Hour).In(loc); later.Hour() == 1 {
					return later
				}
				return t
			})
		}},
		{"fires for the jumped and the real reading", "America/New_York", "0 2,3 * * *", func(line string, loc *time.Location) iter.Seq[time.Time] {
			all := slices.Collect(cron(line, loc, from, to))
			all = append(all, time.Date(2024, 3, 10, 7, 0, 0, 0, time.UTC))
			slices.SortFunc(all, time.Time.Compare)
			return slices.Values(all)
		}},
		{"does not follow elapsed time", "Europe/Berlin", "0 * * * *", func(_ string, loc *time.Location) iter.Seq[time.Time] {
			return cron("0 0-23 * * *", loc, from, to)
		}},
		{"both day fields must match", "UTC", "0 0 13 * 5", func(line string, loc *time.Location) iter.Seq[time.Time] {
			return keep(cron(line, loc, from, to), func(t time.Time) bool { return t.Day() == 13 && t.Weekday() == time.Friday })
		}},
		{"either day field may match a star", "UTC", "0 0 */1 * 1", func(_ string, loc *time.Location) iter.Seq[time.Time] {
			return cron("0 0 1-31 * 1", loc, from, to)
		}},
		{"months are clamped", "UTC", "0 0 31 * *", func(_ string, loc *time.Location) iter.Seq[time.Time] {
			return keep(cron("0 0 * * *", loc, from, to), func(t time.Time) bool { return t.AddDate(0, 0, 1).Day() == 1 })
		}},
		{"stops early", "UTC", "0 0 * * *", func(line string, loc *time.Location) iter.Seq[time.Time] {
			return cron(line, loc, from, to.Add(-time.Second))
		}},
		{"goes on", "UTC", "0 0 * * *", func(line string, loc *time.Location) iter.Seq[time.Time] {
			return cron(line, loc, from, to.AddDate(0, 0, 1))
		}},
		{"is a second late", "UTC", "0 0 * * *", func(line string, loc *time.Location) iter.Seq[time.Time] {
			return alter(cron(line, loc, from, to), func(t time.Time) time.Time { return t.Add(time.Second) })
		}},
		{"another zone", "Pacific/Chatham", "0 0 * * *", func(line string, _ *time.Location) iter.Seq[time.Time] {
			return jobs.Cron(line).In("Pacific/Auckland").All(from, to)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			loc := location(t, c.zone)
			want := dues(t, loc, from, to, c.line)[0]
			if wrong := differs(cron(c.line, loc, from, to), want, loc); wrong != "" {
				t.Errorf("the product: %s", wrong)
			}
			caught := differs(c.wrong(c.line, loc), want, loc)
			if caught == "" {
				t.Fatal("not caught")
			}
			t.Log(caught)
		})
	}
}

func cron(line string, loc *time.Location, from, to time.Time) iter.Seq[time.Time] {
	return jobs.Cron(line).In(loc.String()).All(from, to)
}

// daily is what one gets from package time, which moves a reading that is not there to another hour.
func daily(hour, minute int, from, to time.Time) func(string, *time.Location) iter.Seq[time.Time] {
	return func(_ string, loc *time.Location) iter.Seq[time.Time] {
		return func(yield func(time.Time) bool) {
			y, m, d := from.In(loc).Date()
			for {
				at := time.Date(y, m, d, hour, minute, 0, 0, loc)
				d++
				if at.After(to) || at.After(from) && !yield(at) {
					return
				}
			}
		}
	}
}

func keep(all iter.Seq[time.Time], good func(time.Time) bool) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		for t := range all {
			if good(t) && !yield(t) {
				return
			}
		}
	}
}

func alter(all iter.Seq[time.Time], as func(time.Time) time.Time) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		for t := range all {
			if !yield(as(t)) {
				return
			}
		}
	}
}
