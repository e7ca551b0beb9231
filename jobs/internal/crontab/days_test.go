package crontab

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// monthsOfCycle has a month of each kind there is in 400 years: its name, its length, the weekday it begins with.
var monthsOfCycle = func() (all []time.Time) {
	type kind struct {
		month       time.Month
		length      int
		firstOfWeek time.Weekday
	}
	seen := make(map[kind]bool)
	for i := range 400 * 12 {
		first := time.Date(2000, time.Month(1+i), 1, 0, 0, 0, 0, time.UTC)
		k := kind{first.Month(), lastOf(first), first.Weekday()}
		if !seen[k] {
			seen[k] = true
			all = append(all, first)
		}
	}
	return all
}()

// The days of every kind of month are those of the grammar's words, and a line without any in 400 years, after which
// the calendar repeats itself, is refused; no other is.
func TestDays(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := drawnLine{fixed(second, 0), fixed(minute, 0), fixed(hour, 0), drawField(t, dom), drawField(t, month), drawField(t, dow)}
		if rapid.Bool().Draw(t, "no weekday") {
			l[dow] = drawn{"*", true, func(time.Time) bool { return true }}
		}
		s, err := Parse(l.String())
		fires := false
		for _, first := range monthsOfCycle {
			var want uint32
			for w := first; w.Month() == first.Month(); w = w.AddDate(0, 0, 1) {
				if l.matchDay(w) {
					want |= 1 << w.Day()
				}
			}
			fires = fires || want != 0
			if err != nil {
				continue
			}
			y, m := uint32(first.Year()), uint32(first.Month())
			if got := s.daysOf(y, m, firstOf(y, m)); got != want {
				t.Fatalf("%q in %s: days %032b, want %032b", l.String(), first.Format("2006-01"), got, want)
			}
		}
		if fires != (err == nil) {
			t.Fatalf("%q fires in 400 years: %t, but %v", l.String(), fires, err)
		}
		if err != nil && !strings.Contains(err.Error(), "never fires") {
			t.Fatalf("%q: %v", l.String(), err)
		}
	})
}

func TestDaysByRule(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		days, in string
		want     []int
	}{
		{"L * ?", "2100-02", []int{28}},
		{"L * ?", "2096-02", []int{29}},
		{"15,L * *", "2026-04", []int{15, 30}},
		{"L-3 * *", "2026-04", []int{27}},
		{"L-30 * *", "2026-04", nil},
		{"L-30 * *", "2026-05", []int{1}},
		{"L-28 2 *", "2028-02", []int{1}},
		{"L-28 2 *", "2027-02", nil},
		{"LW * *", "2026-05", []int{29}}, // the 31st is a Sunday
		{"LW * *", "2026-01", []int{30}}, // the 31st is a Saturday
		{"1W * *", "2026-08", []int{3}},  // the 1st is a Saturday, and W stays in its month
		{"1W * *", "2026-03", []int{2}},  // the 1st is a Sunday
		{"15W * *", "2026-08", []int{14}},
		{"15W * *", "2026-11", []int{16}},
		{"31W * *", "2026-04", nil},
		{"31W * *", "2026-05", []int{29}},
		{"L-1W * *", "2026-05", []int{29}},
		{"L-30W * *", "2026-08", []int{3}},
		{"* * L", "2026-08", []int{1, 8, 15, 22, 29}},
		{"* * 5L", "2026-05", []int{29}},
		{"* * fril", "2026-02", []int{27}},
		{"* * 7L", "2026-05", []int{31}},
		{"* * 0#1", "2026-03", []int{1}},
		{"* * FRI#2", "2026-05", []int{8}},
		{"* * 1#5", "2026-05", nil},
		{"* * 1#5", "2026-06", []int{29}},
		{"* * 5-7", "2026-03", []int{1, 6, 7, 8, 13, 14, 15, 20, 21, 22, 27, 28, 29}},
		{"* * 1-7/2", "2026-03", []int{1, 2, 4, 6, 8, 9, 11, 13, 15, 16, 18, 20, 22, 23, 25, 27, 29, 30}},
		{"* * 2/3", "2026-03", []int{3, 6, 10, 13, 17, 20, 24, 27, 31}},
		{"L * 1#1", "2026-03", []int{2, 31}},
		{"*/1 * 1#1", "2026-03", []int{2}},
		{"1,* * 1#1", "2026-03", []int{2}},
		{"1-31 * 1#1", "2026-02", []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28}},
	} {
		s, err := Parse("0 0 " + c.days)
		if err != nil {
			t.Errorf("%s: %v", c.days, err)
			continue
		}
		first, _ := time.Parse("2006-01", c.in)
		y, m := uint32(first.Year()), uint32(first.Month())
		var got []int
		for d := 1; d <= 31; d++ {
			if s.daysOf(y, m, firstOf(y, m))>>d&1 != 0 {
				got = append(got, d)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s in %s: %v, want %v", c.days, c.in, got, c.want)
		}
	}
}
