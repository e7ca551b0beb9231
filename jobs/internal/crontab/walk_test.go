package crontab

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/belfry-go/belfry/jobs/internal/zone"
)

// oddZones change their clocks, or have changed them, in every way there is: by half an hour, by two, by a day, at
// midnight, to a standard time that is ahead of summer time, by the moon, and from odd seconds of local mean time.
var oddZones = []string{
	"UTC", "America/New_York", "Europe/London", "Europe/Dublin", "Australia/Lord_Howe", "America/Sao_Paulo", "Pacific/Apia",
	"Pacific/Kwajalein", "Pacific/Chatham", "Africa/Cairo", "Africa/Casablanca", "Antarctica/Troll", "Asia/Kathmandu",
	"America/Caracas", "Asia/Tehran", "Africa/Monrovia", "Asia/Manila", "America/Juneau", "America/St_Johns", "Europe/Amsterdam",
}

func load(t interface{ Fatal(...any) }, name string) *zone.Zone {
	z, err := zone.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// wall is what the wall clock of a place shows, held as if it were UTC.
func wall(loc *time.Location, t int64) int64 {
	_, offset := time.Unix(t, 0).In(loc).Zone()
	return t + int64(offset)
}

// seams are the instants in (from, to] where package time sees a change of the clock.
func seams(loc *time.Location, from, to int64) (all []int64) {
	for t := from; t <= to; {
		_, end := time.Unix(t, 0).In(loc).ZoneBounds()
		if end.IsZero() || end.Unix() > to {
			break
		}
		if next := end.Unix(); next > t {
			t = next
			all = append(all, t)
		} else {
			t += day // past its last listed change package time ends leap years a day early
		}
	}
	return all
}

// slow walks second by second and applies the policy for changing clocks word by word.
func (l *drawnLine) slow(loc *time.Location, from, to int64) (dues []int64) {
	reading := func(sec int64) bool { return l.match(time.Unix(sec, 0).UTC()) }
	latest := wall(loc, from)
	for _, seam := range seams(loc, from-2*day, from) {
		latest = max(latest, wall(loc, seam-1))
	}
	for t := from + 1; t <= to; t++ {
		w := wall(loc, t)
		fires := reading(w)
		if !l.elapsed() {
			fires = fires && w > latest
			for missed := latest + 1; missed < w && !fires; missed++ {
				fires = reading(missed)
			}
			latest = max(latest, w)
		}
		if fires {
			dues = append(dues, t)
		}
	}
	return dues
}

// byReading finds the dues of a line with few readings a day over years: each reading's instants by themselves.
func (l *drawnLine) byReading(loc *time.Location, from, to int64) []int64 {
	dues := make(map[int64]bool)
	all := seams(loc, from-5*day, to+5*day)
	for date := (from/day - 2) * day; date <= to+2*day; date += day {
		if !l.matchDay(time.Unix(date, 0).UTC()) {
			continue
		}
		i, _ := slices.BinarySearch(all, date-2*day)
		j, _ := slices.BinarySearch(all, date+3*day)
		near := all[i:j]
		for clock := int64(0); clock < day; clock += 30 * 60 {
			if w := time.Unix(date+clock, 0).UTC(); l[hour].match(w) && l[minute].match(w) {
				l.instants(loc, date+clock, near, dues)
			}
		}
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(dues)), func(t int64) bool { return t <= from || t > to })
}

// instants adds those at which a reading fires: each that shows it for elapsed time, else the first that shows it or
// a later one. near are the seams of its days.
func (l *drawnLine) instants(loc *time.Location, reading int64, near []int64, dues map[int64]bool) {
	candidates := slices.Clone(near)
	for _, t := range append([]int64{reading - 2*day}, near...) {
		candidates = append(candidates, reading-(wall(loc, t)-t))
	}
	slices.Sort(candidates)
	for _, t := range candidates {
		switch w := wall(loc, t); {
		case l.elapsed() && w == reading:
			dues[t] = true
		case !l.elapsed() && w >= reading:
			dues[t] = true
			return
		}
	}
}

// judge compares all four questions with the dues in (from, to].
func judge(t *rapid.T, l *drawnLine, r *Rule, want []int64, from, to int64) {
	show := func(dues []int64) string {
		var texts []string
		for _, due := range dues[:min(len(dues), 20)] {
			texts = append(texts, time.Unix(due, 0).In(r.zone.Location()).Format(time.RFC3339))
		}
		return strings.Join(texts, " ")
	}
	what := l.String() + " in " + r.zone.Location().String()
	var next, prev []int64
	for due, ok := r.Next(from); ok && due <= to; due, ok = r.Next(due) {
		next = append(next, due)
	}
	if !slices.Equal(next, want) {
		t.Fatalf("%s: Next gives %s\nwant %s", what, show(next), show(want))
	}
	for due, ok := r.Prev(to + 1); ok && due > from; due, ok = r.Prev(due) {
		prev = append(prev, due)
	}
	if slices.Reverse(prev); !slices.Equal(prev, want) {
		t.Fatalf("%s: Prev gives %s\nwant %s", what, show(prev), show(want))
	}
	for range 5 {
		a := rapid.Int64Range(from, to).Draw(t, "from")
		b := rapid.Int64Range(a, to).Draw(t, "to")
		n := int64(0)
		for _, due := range want {
			if due > a && due <= b {
				n++
			}
		}
		if got := r.Count(a, b); got != n {
			t.Fatalf("%s: %d dues in (%d, %d], want %d", what, got, a, b, n)
		}
	}
	for at := from + 1; at <= min(to, from+4*3600); at++ {
		if _, due := slices.BinarySearch(want, at); r.Has(at) != due {
			t.Fatalf("%s: Has(%d) is %t", what, at, r.Has(at))
		}
	}
	for _, due := range want {
		if !r.Has(due) {
			t.Fatalf("%s: Has(%d) is false", what, due)
		}
	}
}

// drawHoursNear draws the hours round one, as a list, a range or steps.
func drawHoursNear(t *rapid.T, h int) drawn {
	a := rapid.IntRange(max(0, h-2), h).Draw(t, "from hour")
	b := rapid.IntRange(h, min(23, h+2)).Draw(t, "to hour")
	among := func(w time.Time) bool { return w.Hour() >= a && w.Hour() <= b }
	switch rapid.SampledFrom([]string{"list", "range", "steps"}).Draw(t, "hours") {
	case "list":
		return drawn{fmt.Sprintf("%d,%d", b, a), false, func(w time.Time) bool { return w.Hour() == a || w.Hour() == b }}
	case "range":
		return drawn{fmt.Sprintf("%d-%d", a, b), false, among}
	}
	return drawn{fmt.Sprintf("%d-%d/1", a, b), false, among}
}

// Where clocks change, second by second.
func TestAgainstSlowWalk(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		z := load(t, rapid.SampledFrom(oddZones).Draw(t, "zone"))
		l := drawnLine{fixed(second, 0), drawField(t, minute), drawField(t, hour), drawField(t, dom), drawField(t, month), drawField(t, dow)}
		if rapid.IntRange(0, 2).Draw(t, "any day") > 0 {
			l[dom], l[month], l[dow] = everything, everything, everything
		}
		if rapid.IntRange(0, 4).Draw(t, "seconds") == 0 {
			l[second] = drawField(t, second)
		}
		at := rapid.Int64Range(-3_000_000_000, 2_500_000_000).Draw(t, "at")
		if near := seams(z.Location(), at, at+400*day); len(near) > 0 {
			at = rapid.SampledFrom(near).Draw(t, "seam")
		}
		if rapid.IntRange(0, 3).Draw(t, "any hour") > 0 {
			l[hour] = drawHoursNear(t, time.Unix(wall(z.Location(), at-1), 0).UTC().Hour())
		}
		s, err := Parse(l.String())
		if err != nil {
			t.Skip(err)
		}
		from := at - rapid.Int64Range(0, 4*3600).Draw(t, "before")
		to := at + rapid.Int64Range(0, 4*3600).Draw(t, "after")
		judge(t, &l, s.In(z), l.slow(z.Location(), from, to), from, to)
	})
}

var everything = drawn{"*", true, func(time.Time) bool { return true }}

// Few readings a day, over years.
func TestAgainstReadings(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		z := load(t, rapid.SampledFrom(oddZones).Draw(t, "zone"))
		halves := rapid.SampledFrom([]int{0, 30}).Draw(t, "minute")
		l := drawnLine{fixed(second, 0), fixed(minute, halves), fixed(hour, rapid.IntRange(0, 23).Draw(t, "hour")), drawField(t, dom), drawField(t, month), drawField(t, dow)}
		if rapid.IntRange(0, 2).Draw(t, "elapsed") == 0 {
			l[hour].text += "-" + l[hour].text + "/1"
		}
		if rapid.Bool().Draw(t, "no weekday") {
			l[dow] = everything
		}
		s, err := Parse(l.String())
		if err != nil {
			t.Skip(err)
		}
		from := rapid.Int64Range(-4_000_000_000, 4_500_000_000).Draw(t, "at")
		to := from + 5*366*day
		judge(t, &l, s.In(z), l.byReading(z.Location(), from, to), from, to)
	})
}
