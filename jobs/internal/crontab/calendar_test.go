package crontab

import (
	"testing"
	"time"
)

// Every date there is, counted on by hand.
func TestCalendar(t *testing.T) {
	t.Parallel()
	lengths := [...]uint32{0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}
	date := firstOf(minYear, 1)
	wd := uint32(6) // 1 January of year 0 was a Saturday
	for y := uint32(minYear); y <= maxYear; y++ {
		lengths[2] = 28
		if y%4 == 0 && y%100 != 0 || y%400 == 0 {
			lengths[2] = 29
		}
		for m := uint32(1); m <= 12; m++ {
			if firstOf(y, m) != date || daysIn(y, m) != lengths[m] || weekday(date) != wd {
				t.Fatalf("%d-%d: date %d, %d days, weekday %d; want %d, %d, %d", y, m, firstOf(y, m), daysIn(y, m), weekday(date), date, lengths[m], wd)
			}
			for d := uint32(1); d <= lengths[m]; d++ {
				if gy, gm, gd := civil(date); gy != y || gm != m || gd != d {
					t.Fatalf("date %d: %d-%d-%d, want %d-%d-%d", date, gy, gm, gd, y, m, d)
				}
				date, wd = date+1, (wd+1)%7
			}
		}
	}
	for _, unix := range []int64{minUnix, 0, maxUnix} {
		at := time.Unix(unix, 0).UTC()
		y, m, d := civil(uint32((unix + epoch) / day))
		if int(y) != at.Year() || int(m) != int(at.Month()) || int(d) != at.Day() {
			t.Errorf("%v: %d-%d-%d", at, y, m, d)
		}
	}
}
