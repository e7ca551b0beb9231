package oracle_test

import (
	"slices"
	"testing"
	"time"
)

// It makes no difference where a walk begins, be it in the second pass of a day that was twice.
func TestWalkBeginsAnywhere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		zone string
		from time.Time
	}{
		{"Pacific/Kwajalein", time.Date(1969, 9, 29, 0, 0, 0, 0, time.UTC)}, // 23 hours back
		{"America/Juneau", time.Date(1867, 10, 18, 0, 0, 0, 0, time.UTC)},   // 24 hours back
		{"Pacific/Apia", time.Date(2011, 12, 29, 0, 0, 0, 0, time.UTC)},     // 24 hours on
		{"Antarctica/Troll", time.Date(2024, 10, 26, 0, 0, 0, 0, time.UTC)},
	} {
		loc, to := location(t, c.zone), c.from.AddDate(0, 0, 3)
		spec := parse(t, "7,38 0-23 * * *")[0]
		all := spec.Dues(loc, c.from, to)
		for from := c.from; from.Before(to); from = from.Add(187 * time.Minute) {
			i, _ := slices.BinarySearchFunc(all, from.Add(1), time.Time.Compare)
			if got := spec.Dues(loc, from, to); !slices.Equal(got, all[i:]) {
				t.Errorf("%s from %v: %v, want %v", c.zone, from, got, all[i:])
			}
		}
	}
}
