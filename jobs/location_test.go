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
