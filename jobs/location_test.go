package jobs_test

import (
	"runtime"
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
		"union(TZ=Europe/Berlin 0 2 * * *; @every 1h)":              "Europe/Berlin",
		"union(TZ=Europe/Berlin 0 2 * * *;TZ=Asia/Tokyo 0 2 * * *)": "UTC",
		"union(TZ=Asia/Tokyo 0 2 * * *; TZ=Asia/Tokyo 0 3 * * *)":   "Asia/Tokyo",
		"until(2030-01-01T00:00:00Z;TZ=Asia/Tokyo 0 2 * * *)":       "Asia/Tokyo",
		"except(0 2 * * *;TZ=Asia/Tokyo 0 2 2 * *)":                 "Asia/Tokyo",
	} {
		if s, err := jobs.ParseSchedule(text); err != nil || s.Location().String() != want {
			t.Errorf("%s: %s, %v; want %s", text, s.Location(), err, want)
		}
	}
}

// A zoned schedule costs its pointer, once there is one of its kind.
func TestZonedScheduleIsSmall(t *testing.T) {
	const n = 20_000
	kept := make([]jobs.Schedule, n)
	kept[0] = jobs.Cron("30 2 * * 1-5").In("America/New_York")
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := 1; i < n; i++ {
		kept[i] = jobs.Cron("30 2 * * 1-5").In("America/New_York")
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := float64(int64(after.HeapAlloc)-int64(before.HeapAlloc)) / n
	t.Logf("%.1f bytes a schedule, besides the 8 of the value itself", each)
	if each > 56 {
		t.Errorf("%.0f bytes a schedule, want at most 64 with the value itself", each)
	}
	runtime.KeepAlive(kept)
}
