package oracle_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/belfry-go/belfry/internal/oracle"
)

// Read off a printed calendar. 2026: 1 February is a Sunday, as is 1 March; May begins on a Friday and ends on a Sunday;
// 1 August is a Saturday, 31 October too. 2028 is a leap year; its 29 February is a Tuesday.
func TestDays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		dom, dow string
		year     int
		month    time.Month
		want     []int
	}{
		{"L", "*", 2026, 2, []int{28}},
		{"L", "*", 2028, 2, []int{29}},
		{"L", "?", 2026, 4, []int{30}},
		{"L-1", "*", 2028, 2, []int{28}},
		{"L-27", "*", 2026, 2, []int{1}},
		{"L-28", "*", 2026, 2, nil},
		{"L-28", "*", 2028, 2, []int{1}},
		{"L-30", "*", 2026, 1, []int{1}},
		{"LW", "*", 2026, 5, []int{29}},  // the 31st is a Sunday
		{"LW", "*", 2026, 10, []int{30}}, // a Saturday
		{"LW", "*", 2028, 2, []int{29}},
		{"L-1W", "*", 2026, 5, []int{29}}, // the 30th is a Saturday
		{"L-7W", "*", 2026, 5, []int{25}}, // the 24th is a Sunday
		{"L-30W", "*", 2026, 8, []int{3}}, // the 1st is a Saturday
		{"L-30W", "*", 2026, 2, nil},
		{"15W", "*", 2026, 1, []int{15}},
		{"15W", "*", 2026, 2, []int{16}}, // a Sunday
		{"15W", "*", 2026, 8, []int{14}}, // a Saturday
		{"1W", "*", 2026, 8, []int{3}},   // a Saturday, but not into July
		{"1W", "*", 2026, 2, []int{2}},
		{"31W", "*", 2026, 5, []int{29}},  // a Sunday, but not into June
		{"31W", "*", 2026, 10, []int{30}}, // a Saturday
		{"31W", "*", 2026, 4, nil},
		{"1,L", "*", 2026, 2, []int{1, 28}},
		{"LW,15W,3", "*", 2026, 2, []int{3, 16, 27}},
		{"*", "L", 2026, 2, []int{7, 14, 21, 28}}, // each Saturday
		{"*", "0L", 2026, 5, []int{31}},
		{"*", "7L", 2026, 5, []int{31}},
		{"?", "5L", 2026, 2, []int{27}},
		{"*", "FRIL", 2026, 10, []int{30}},
		{"*", "5#2", 2026, 5, []int{8}},
		{"*", "fri#1", 2026, 5, []int{1}},
		{"*", "7#5", 2026, 5, []int{31}},
		{"*", "0#5", 2026, 2, nil},
		{"*", "6#4", 2026, 2, []int{28}},
		{"*", "1#1,5L", 2026, 2, []int{2, 27}},
		{"L", "1#1", 2026, 2, []int{2, 28}}, // both restricted: either
		{"13", "5", 2026, 2, []int{6, 13, 20, 27}},
		{"*/1", "0", 2026, 2, []int{1, 8, 15, 22}},
		{"1-31", "0", 2026, 4, allDays(30)},
		{"*/10", "*", 2026, 1, []int{1, 11, 21, 31}},
		{"*", "0-7", 2026, 2, allDays(28)},
		{"*", "5-7", 2026, 5, []int{1, 2, 3, 8, 9, 10, 15, 16, 17, 22, 23, 24, 29, 30, 31}},
		{"*", "*/3", 2026, 2, []int{1, 4, 7, 8, 11, 14, 15, 18, 21, 22, 25, 28}}, // Sunday, Wednesday, Saturday
		{"10/7", "*", 2026, 1, []int{10, 17, 24, 31}},
	} {
		line := fmt.Sprintf("0 12 %s %d %s", c.dom, c.month, c.dow)
		spec, err := oracle.Parse(line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		var got []int
		first := time.Date(c.year, c.month, 1, 0, 0, 0, 0, time.UTC)
		for _, due := range spec.Dues(time.UTC, first, first.AddDate(0, 1, 0)) {
			got = append(got, due.Day())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s in %d: days %v, want %v", line, c.year, got, c.want)
		}
	}
}

func allDays(n int) (days []int) {
	for d := range n {
		days = append(days, d+1)
	}
	return days
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"0 0 L-0 * *", "0 0 L-31 * *", "0 0 L3 * *", "0 0 0W * *", "0 0 32W * *", "0 0 W * *", "0 0 WL * *", "0 0 1-5W * *", "0 0 L/2 * *",
		"0 0 LL * *", "0 0 L- * *", "0 0 *W * *", "0 0 5#2 * *", "0 0 L * L-1", "0 0 * * 8L", "0 0 * * 5#0", "0 0 * * 5#6", "0 0 * * #2", "0 0 * * 5#",
		"0 0 * * 8", "0 0 * * 1-5L", "0 0 * * 5W", "0 L * * *", "0 0 * L *", "H * * * *", "0 0 * * MONDAY", "0 0 * FEBR *", "*/0 * * * *", "0 0 */31 * *",
		"0 0 * */12 *", "0 0 * * */7", "* * * * * * *", "@every 1h", "0 0 * * 7-1", "0 0 * * 7/2",
	} {
		if _, err := oracle.Parse(line); err == nil {
			t.Errorf("%q is accepted", line)
		}
	}
}
