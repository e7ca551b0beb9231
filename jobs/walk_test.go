package jobs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/belfry-go/belfry/jobs/internal/zone"
)

// fieldText is a cron field of which the test knows the meaning by another way than
// the parser's bits.
type fieldText struct {
	text  string
	match func(v int) bool
}

func drawFieldText(t *rapid.T, name string, low, high int, stars bool) fieldText {
	kinds := []string{"one", "list", "range"}
	if stars {
		kinds = append(kinds, "star", "step")
	}
	a := rapid.IntRange(low, high).Draw(t, name)
	b := rapid.IntRange(low, high).Draw(t, name)
	a, b = min(a, b), max(a, b)
	switch rapid.SampledFrom(kinds).Draw(t, name+" kind") {
	case "one":
		return fieldText{fmt.Sprint(a), func(v int) bool { return v == a }}
	case "list":
		return fieldText{fmt.Sprintf("%d,%d", b, a), func(v int) bool { return v == a || v == b }}
	case "range":
		return fieldText{fmt.Sprintf("%d-%d", a, b), func(v int) bool { return a <= v && v <= b }}
	case "step":
		step := rapid.IntRange(2, 6).Draw(t, name+" step")
		return fieldText{fmt.Sprintf("*/%d", step), func(v int) bool { return (v-low)%step == 0 }}
	}
	return fieldText{"*", func(int) bool { return true }}
}

type line struct{ minute, hour, dom, month, dow fieldText }

func (l line) String() string {
	return strings.Join([]string{l.minute.text, l.hour.text, l.dom.text, l.month.text, l.dow.text}, " ")
}

// match judges one reading of the wall clock, held as if it were UTC.
func (l line) match(wall time.Time) bool {
	day := l.dom.match(wall.Day())
	week := l.dow.match(int(wall.Weekday()))
	either := l.dom.text != "*" && l.dow.text != "*"
	return l.minute.match(wall.Minute()) && l.hour.match(wall.Hour()) && l.month.match(int(wall.Month())) &&
		(day && week || either && (day || week))
}

// slow walks minute by minute over instants and applies the policy for changing
// clocks word by word. It begins two days early, to know which readings were
// seen before.
func (l line) slow(loc *time.Location, from, to time.Time) []time.Time {
	elapsed := strings.ContainsAny(l.hour.text, "*/")
	reading := func(t time.Time) time.Time {
		_, offset := t.In(loc).Zone()
		return t.Add(time.Duration(offset) * time.Second)
	}
	var dues []time.Time
	start := from.Add(-48 * time.Hour)
	latest := reading(start.Add(-time.Minute))
	for t := start; !t.After(to); t = t.Add(time.Minute) {
		wall := reading(t)
		fires := l.match(wall)
		if !elapsed {
			fires = fires && wall.After(latest)
			for missed := latest.Add(time.Minute); missed.Before(wall); missed = missed.Add(time.Minute) {
				fires = fires || l.match(missed)
			}
		}
		if wall.After(latest) {
			latest = wall
		}
		if fires && t.After(from) {
			dues = append(dues, t)
		}
	}
	return dues
}

var zoneNames = []string{
	"UTC", "America/New_York", "Europe/London", "Europe/Dublin", "Australia/Lord_Howe", "America/Sao_Paulo",
	"Pacific/Apia", "Asia/Kathmandu", "Africa/Casablanca", "America/Caracas", "Antarctica/Troll", "Asia/Tehran",
}

// drawFrom picks an instant near a change of the zone's clock, or anywhere.
func drawFrom(t *rapid.T, loc *time.Location) time.Time {
	begin := time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)
	at := begin.AddDate(0, 0, rapid.IntRange(0, 70*365).Draw(t, "day"))
	if _, end := at.In(loc).ZoneBounds(); !end.IsZero() {
		at = end.Truncate(time.Minute)
	}
	if at.Year() == 2011 && loc.String() == "Pacific/Apia" {
		at = time.Date(2011, 12, 30, 10, 0, 0, 0, time.UTC) // the day that never was
	}
	return at.UTC().Add(-time.Duration(rapid.IntRange(0, 2000).Draw(t, "minutes before")) * time.Minute)
}

func TestCronAgainstSlowWalk(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := line{
			drawFieldText(t, "minute", 0, 59, true), drawFieldText(t, "hour", 0, 23, true),
			drawFieldText(t, "dom", 1, 28, true), fieldText{"*", func(int) bool { return true }},
			drawFieldText(t, "dow", 0, 6, true),
		}
		if rapid.Bool().Draw(t, "seasonal") {
			l.month = drawFieldText(t, "month", 1, 12, true)
		}
		name := rapid.SampledFrom(zoneNames).Draw(t, "zone")
		s := Cron(l.String()).In(name)
		if err := s.Err(); err != nil {
			t.Fatal(err)
		}
		z, _ := zone.Load(name)
		loc := z.Location()
		from := drawFrom(t, loc)
		to := from.Add(72 * time.Hour)
		got, want := slices.Collect(s.All(from, to)), l.slow(loc, from, to)
		if !slices.Equal(got, want) {
			t.Fatalf("%v in (%v, %v]:\n got %v\nwant %v", s, from, to, got, want)
		}
	})
}

// Whatever is asked, from whenever, the answer is later, whole, and soon.
func TestNextMovesOn(t *testing.T) {
	t.Parallel()
	specs := []string{
		"* * * * * *", "0 8 31 * *", "0 0 29 2 *", "30 2 * * *", "0 * 30 12 *", "59 59 23 31 12 *", "@every 1h30m phase 7m",
		"0 0 30 2 1", "@at 2026-10-01T04:00:00Z,9999-12-31T23:59:59Z",
	}
	rapid.Check(t, func(t *rapid.T) {
		s := Cron(rapid.SampledFrom(specs[:6]).Draw(t, "spec"))
		if rapid.Bool().Draw(t, "any") {
			s, _ = ParseSchedule(rapid.SampledFrom(specs).Draw(t, "any spec"))
		}
		s = s.In(rapid.SampledFrom(zoneNames).Draw(t, "zone"))
		at := time.Unix(rapid.Int64().Draw(t, "after"), int64(rapid.IntRange(0, 999999999).Draw(t, "ns")))
		if rapid.Bool().Draw(t, "near") {
			at = time.Unix(rapid.Int64Range(minUnix, maxUnix).Draw(t, "near after"), 999)
		}
		for range 20 {
			next, ok := s.Next(at)
			if !ok {
				return
			}
			if !next.After(at) || next.Nanosecond() != 0 || next.Location() != time.UTC || next.Year() > 9999 {
				t.Fatalf("%v after %v: %v", s, at, next)
			}
			at = next
		}
	})
}

// robfig's own walk never returns from this question: 30 December 2011 does not
// exist in Apia.
func TestNextAcrossMissingDay(t *testing.T) {
	t.Parallel()
	s := Cron("TZ=Pacific/Apia 0 8 31 * *")
	got, ok := s.Next(time.Date(2011, 12, 20, 0, 0, 0, 0, time.UTC))
	want := time.Date(2011, 12, 30, 18, 0, 0, 0, time.UTC) // 08:00 on the 31st at +14
	if !ok || !got.Equal(want) {
		t.Fatalf("got %v, %t, want %v", got, ok, want)
	}
}

// Go ends a zone's stretch a day early in leap years after its last listed
// change; a walk that trusted it would stand still.
func TestNextOnLastDayOfFarLeapYear(t *testing.T) {
	t.Parallel()
	s := Cron("TZ=Europe/London 0 12 * * *")
	at := time.Date(2096, 12, 30, 12, 0, 0, 0, time.UTC)
	for range 3 {
		next, ok := s.Next(at)
		if !ok || next.Sub(at) != 24*time.Hour {
			t.Fatalf("after %v: %v, %t", at, next, ok)
		}
		at = next
	}
}
