package crontab

import (
	"testing"
	"time"
)

// Dues next to each other, forwards and backwards, where the walk must not go past one.
func TestNeighbours(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, zone, due, next string }{
		// The second pass of a reading comes before the same date of the next year.
		{"30 1/23 2 11 *", "America/New_York", "2025-11-02T01:30:00-04:00", "2025-11-02T01:30:00-05:00"},
		{"30 1/23 2 11 *", "America/New_York", "2025-11-02T01:30:00-05:00", "2026-11-02T01:30:00-05:00"},
		{"30 1 2 11 *", "America/New_York", "2025-11-02T01:30:00-04:00", "2026-11-02T01:30:00-05:00"},
		{"45 1/23 5 4 *", "Australia/Lord_Howe", "2026-04-05T01:45:00+11:00", "2026-04-05T01:45:00+10:30"},
		{"30 2 8 3 *", "America/New_York", "2026-03-08T03:00:00-04:00", "2027-03-08T02:30:00-05:00"},
		{"0 0,12 1 * *", "UTC", "2026-03-01T12:00:00Z", "2026-04-01T00:00:00Z"},
		{"0 6,12 1 1,7 *", "Asia/Kathmandu", "2026-01-01T12:00:00+05:45", "2026-07-01T06:00:00+05:45"},
		// The wall shows the years 0 and 10000 at instants of the years 1 and 9999.
		{"0 20 31 12 *", "America/New_York", "0001-01-01T00:56:02Z", "0002-01-01T00:56:02Z"},
		{"0 0 1 1 *", "Pacific/Kiritimati", "9998-12-31T10:00:00Z", "9999-12-31T10:00:00Z"},
	} {
		r := rule(t, c.text, c.zone)
		due, next := unix(t, c.due), unix(t, c.next)
		for _, after := range []int64{due, due + 1, (due + next) / 2, next - 1} {
			if got, ok := r.Next(after); !ok || got != next {
				t.Errorf("%s in %s after %d: %s, %t, want %s", c.text, c.zone, after, time.Unix(got, 0).UTC(), ok, c.next)
			}
		}
		for _, before := range []int64{next, next - 1, (due + next) / 2, due + 1} {
			if got, ok := r.Prev(before); !ok || got != due {
				t.Errorf("%s in %s before %d: %s, %t, want %s", c.text, c.zone, before, time.Unix(got, 0).UTC(), ok, c.due)
			}
		}
		if !r.Has(due) || !r.Has(next) || r.Has(due+1) || r.Has((due+next)/2) || r.Count(due, next) != 1 || r.Count(due-1, next-1) != 1 {
			t.Errorf("%s in %s: Has or Count is wrong between %s and %s", c.text, c.zone, c.due, c.next)
		}
	}
	r := rule(t, "30 1 * * *", "America/New_York")
	second := unix(t, "2025-11-02T01:30:00-05:00")
	if due, _ := r.Prev(second + 1); r.Has(second) || due != second-3600 {
		t.Errorf("the second pass of 01:30 is a due; before it %d", due)
	}
}
