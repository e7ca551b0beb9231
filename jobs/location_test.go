package jobs_test

import (
	"testing"
	"time"

	"github.com/belfry-go/belfry/jobs"
)

func TestLocation(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		schedule jobs.Schedule
		want     string
	}{
		{jobs.Schedule{}, "UTC"},
		{jobs.Cron("0 2 * * *"), "UTC"},
		{jobs.Cron("0 2 * * *").In("Europe/Berlin"), "Europe/Berlin"},
		{jobs.Cron("CRON_TZ=Asia/Tokyo 0 2 * * *").In("Europe/Berlin"), "Asia/Tokyo"},
		{jobs.Cron("TZ=Asia/Nowhere 0 2 * * *"), "UTC"},
		{jobs.Cron("0 2 * *").In("Europe/Berlin"), "UTC"},
		{jobs.Every(time.Hour).In("Europe/Berlin"), "UTC"},
		{jobs.Custom("TZ=Europe/Berlin", func(time.Time) time.Time { return time.Time{} }), "UTC"},
	} {
		if got := c.schedule.Location().String(); got != c.want {
			t.Errorf("%q: %s, want %s", c.schedule, got, c.want)
		}
	}
}

func TestLocationOfCombinations(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"union(TZ=Europe/Berlin 0 2 * * *; @every 1h)":                                        "Europe/Berlin",
		"union(TZ=Europe/Berlin 0 2 * * *;TZ=Asia/Tokyo 0 2 * * *)":                           "UTC",
		"union(TZ=Asia/Tokyo 0 2 * * *; TZ=Asia/Tokyo 0 3 * * *)":                             "Asia/Tokyo",
		"until(2030-01-01T00:00:00Z;TZ=Asia/Tokyo 0 2 * * *)":                                 "Asia/Tokyo",
		"except(0 2 * * *;TZ=Asia/Tokyo 0 2 2 * *)":                                           "Asia/Tokyo",
		"union(0 2 * * *; TZ=Europe/Berlin 0 3 * * *)":                                        "Europe/Berlin",
		"union(H 2 * * *; TZ=Europe/Berlin H 3 * * *)":                                        "Europe/Berlin",
		"union(TZ=UTC 0 2 * * *; TZ=Europe/Berlin 0 3 * * *)":                                 "UTC",
		"union(TZ=Asia/Tokyo 0 1 * * *; TZ=Europe/Berlin 0 3 * * *; TZ=Asia/Tokyo 0 2 * * *)": "UTC",
	} {
		if s, err := jobs.ParseSchedule(text); err != nil || s.Location().String() != want {
			t.Errorf("%s: %s, %v; want %s", text, s.Location(), err, want)
		}
	}
}
