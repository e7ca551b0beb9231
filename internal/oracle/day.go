package oracle

import (
	"fmt"
	"strings"
	"time"
)

// date is a day of the calendar.
type date struct {
	year    int
	month   time.Month
	day     int
	weekday time.Weekday
}

// last is the number of the month's last day.
func (d date) last() int { return time.Date(d.year, d.month+1, 0, 0, 0, 0, 0, time.UTC).Day() }

// nearest is the weekday, Monday to Friday, of the same month that is nearest to
// its day n; 0 where the month has no day n. There is no tie: beside a Saturday
// or Sunday one of the two weekdays is always nearer.
func (d date) nearest(n int) int {
	if n < 1 || n > d.last() {
		return 0
	}
	best, distance := 0, 99
	for day := 1; day <= d.last(); day++ {
		switch time.Date(d.year, d.month, day, 0, 0, 0, 0, time.UTC).Weekday() {
		case time.Saturday, time.Sunday:
			continue
		}
		if away := max(day-n, n-day); away < distance {
			best, distance = day, away
		}
	}
	return best
}

// days reads a day field: a predicate for each member, and whether one of them
// is a bare star, or a star with step 1.
func days(list string, member func(string) (func(date) bool, error)) (all []func(date) bool, unrestricted bool, err error) {
	for text := range strings.SplitSeq(list, ",") {
		switch strings.TrimSuffix(text, "/1") {
		case "*", "?":
			unrestricted = true
		}
		one, err := member(text)
		if err != nil {
			return nil, false, err
		}
		all = append(all, one)
	}
	return all, unrestricted, nil
}

// ofMonth reads a member of the day of month field.
func ofMonth(text string) (func(date) bool, error) {
	body, nearest := strings.CutSuffix(text, "W")
	back, fromEnd := strings.CutPrefix(body, "L")
	if !nearest && !fromEnd {
		days, err := doms.member(text)
		return func(d date) bool { return days[d.day] }, err
	}
	var n int // 0 for L itself
	var err error
	switch {
	case !fromEnd:
		n, err = doms.value(body)
	case back != "":
		minus, ok := strings.CutPrefix(back, "-")
		if n, err = number(minus); err == nil && (!ok || n < 1 || n > 30) {
			err = fmt.Errorf("day of month: %q is not L-1 to L-30", text)
		}
	}
	return func(d date) bool {
		day := n
		if fromEnd {
			day = d.last() - n
		}
		if nearest {
			day = d.nearest(day)
		}
		return d.day == day
	}, err
}

// ofWeek reads a member of the day of week field.
func ofWeek(text string) (func(date) bool, error) {
	if text == "L" {
		return func(d date) bool { return d.weekday == time.Saturday }, nil
	}
	if body, ok := strings.CutSuffix(text, "L"); ok {
		n, err := weekdays.value(body)
		return func(d date) bool { return int(d.weekday) == n%7 && d.day+7 > d.last() }, err
	}
	if body, which, ok := strings.Cut(text, "#"); ok {
		n, err := weekdays.value(body)
		k, err2 := number(which)
		if err2 != nil || k < 1 || k > 5 {
			return nil, fmt.Errorf("day of week: %q is not the first to the fifth (#1 to #5)", text)
		}
		return func(d date) bool { return int(d.weekday) == n%7 && (d.day-1)/7+1 == k }, err
	}
	week, err := weekdays.member(text)
	return func(d date) bool { return week[d.weekday] }, err
}
