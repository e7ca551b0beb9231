package crontab

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/belfry-go/belfry/jobs/internal/zone"
)

func rule(t interface{ Fatal(...any) }, text, name string) *Rule {
	s, err := Parse(text)
	if err != nil {
		t.Fatal(text, err)
	}
	return s.In(load(t, name))
}

func unix(t *testing.T, text string) int64 {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at.Unix()
}

func TestRareDays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text, after string
		want        []string
	}{
		{"0 0 29 2 *", "2092-03-01", []string{"2096-02-29", "2104-02-29", "2108-02-29"}},
		{"0 0 29 2 *", "2396-03-01", []string{"2400-02-29", "2404-02-29"}},
		{"0 0 L-28 2 *", "2096-02-02", []string{"2104-02-01"}},
		{"0 0 * 2 MON#5", "2016-03-01", []string{"2044-02-29", "2072-02-29", "2112-02-29"}},
		{"0 0 29 2 MON#5", "2096-03-01", []string{"2104-02-29"}},
		{"0 0 31W 2,5 *", "2026-01-01", []string{"2026-05-29", "2027-05-31"}},
		{"0 0 31 12 *", "9999-01-01", []string{"9999-12-31"}},
	} {
		after := unix(t, c.after+"T00:00:00Z")
		for _, name := range []string{"UTC", "America/New_York", "Pacific/Chatham"} {
			r := rule(t, c.text, name)
			at := after
			for _, want := range c.want {
				due, ok := r.Next(at)
				if got := time.Unix(wall(r.zone.Location(), due), 0).UTC().Format(time.DateOnly); !ok || got != want {
					t.Errorf("%s in %s after %d: %s, want %s", c.text, name, at, got, want)
				}
				if back, ok := r.Prev(due + 1); !ok || back != due {
					t.Errorf("%s in %s before %d: %d", c.text, name, due+1, back)
				}
				at = due
			}
		}
	}
}

// The first and the last second that can be named, and questions from beyond them.
func TestEdges(t *testing.T) {
	t.Parallel()
	for _, name := range oddZones {
		r := rule(t, "* * * * * *", name)
		if due, ok := r.Next(math.MinInt64); !ok || due != minUnix {
			t.Errorf("%s: first due %d, %t", name, due, ok)
		}
		if due, ok := r.Prev(math.MaxInt64); !ok || due != maxUnix-1 && due != maxUnix {
			t.Errorf("%s: last due %d, %t", name, due, ok)
		}
		for _, after := range []int64{maxUnix, maxUnix + 1, math.MaxInt64} {
			if due, ok := r.Next(after); ok {
				t.Errorf("%s: %d after %d", name, due, after)
			}
		}
		for _, before := range []int64{minUnix, minUnix - 1, math.MinInt64} {
			if due, ok := r.Prev(before); ok {
				t.Errorf("%s: %d before %d", name, due, before)
			}
		}
		if r.Has(minUnix-1) || r.Has(maxUnix+1) || !r.Has(minUnix) || !r.Has(maxUnix-1) {
			t.Errorf("%s: Has is wrong at an edge", name)
		}
		if all, want := r.Count(math.MinInt64, math.MaxInt64), int64(maxUnix-minUnix+1); all != want {
			t.Errorf("%s: %d seconds in all, want %d", name, all, want)
		}
		yearly := rule(t, "0 0 1 1 *", name)
		if n := yearly.Count(math.MinInt64, math.MaxInt64); n < 9998 || n > 10000 {
			t.Errorf("%s: %d new years", name, n)
		}
	}
}

var countYears = []struct {
	text string
	want int64 // in 2026
}{
	{"* * * * *", 365 * 1440},
	{"* * * * * *", 365 * day},
	{"0 * * * *", 365 * 24},
	{"30 1 * * *", 365},
	{"0 1/23 * * *", 365 + 1},
	{"30 2 * * *", 365},
	{"0 2/22 * * *", 365 - 1},
	{"*/7 2 * * *", 365*9 - 8},    // one due for nine readings
	{"*/7 2-3 * * *", 365*18 - 9}, // which is that of 03:00
}

// A year in which New York's clock skips the readings from 02:00 on and shows those from 01:00 twice.
func TestCountYear(t *testing.T) {
	t.Parallel()
	for _, c := range countYears {
		r := rule(t, c.text, "America/New_York")
		from, to := unix(t, "2026-01-01T00:00:00-05:00"), unix(t, "2027-01-01T00:00:00-05:00")
		if n := r.Count(from-1, to-1); n != c.want {
			t.Errorf("%s: %d, want %d", c.text, n, c.want)
		}
		if n := r.Count(to, from); n != 0 {
			t.Errorf("%s: %d backwards", c.text, n)
		}
	}
}

// All four questions agree, wherever they are asked.
func TestAgree(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		z := load(t, rapid.SampledFrom(oddZones).Draw(t, "zone"))
		l := drawnLine{drawField(t, second), drawField(t, minute), drawField(t, hour), drawField(t, dom), drawField(t, month), drawField(t, dow)}
		s, err := Parse(l.String())
		if err != nil {
			t.Skip(err)
		}
		r := s.In(z)
		at := rapid.Int64Range(minUnix, maxUnix).Draw(t, "at")
		if rapid.Bool().Draw(t, "edge") {
			at = rapid.SampledFrom([]int64{minUnix, maxUnix, 0, 4107542400, 13569465600}).Draw(t, "near") + rapid.Int64Range(-day, day).Draw(t, "off")
		}
		from, dues := at, []int64(nil)
		for range 30 {
			due, ok := r.Next(at)
			if !ok {
				break
			}
			if due <= at || due < minUnix || due > maxUnix || !r.Has(due) || r.Count(at, due) != 1 || due > at+2 && r.Has(at+1+(due-at-1)/2) {
				t.Fatalf("%s in %v: %d follows %d; Has %t, Count %d", l.String(), z.Location(), due, at, r.Has(due), r.Count(at, due))
			}
			dues, at = append(dues, due), due
		}
		if n := r.Count(from, at); n != int64(len(dues)) {
			t.Fatalf("%s in %v: %d dues in (%d, %d], Next gives %d", l.String(), z.Location(), n, from, at, len(dues))
		}
		for _, due := range slices.Backward(dues) {
			if got, ok := r.Prev(at + 1); !ok || got != due {
				t.Fatalf("%s in %v: %d before %d, want %d", l.String(), z.Location(), got, at+1, due)
			}
			at = due - 1
		}
	})
}

func TestNoAllocation(t *testing.T) {
	for _, text := range []string{"0 0 * * *", "*/5 * * * *", "0 0 29 2 *", "0 0 LW * 5#2"} {
		r := rule(t, text, "America/New_York")
		at := unix(t, "2026-03-08T00:00:00Z")
		if n := testing.AllocsPerRun(100, func() {
			due, _ := r.Next(at)
			r.Prev(due)
			r.Has(due)
			r.Count(at, at+365*day)
		}); n != 0 {
			t.Errorf("%s: %v allocations", text, n)
		}
	}
}

func TestHashedHasNoDues(t *testing.T) {
	t.Parallel()
	s, err := Parse("H H(0-3) * * *")
	if err != nil || !s.Hashed() {
		t.Fatal(err)
	}
	r := s.In(zone.UTC)
	if due, ok := r.Next(0); ok {
		t.Errorf("next %d", due)
	}
	if due, ok := r.Prev(0); ok {
		t.Errorf("prev %d", due)
	}
	for hour := int64(0); hour < 24; hour++ {
		if r.Has(hour * 3600) {
			t.Errorf("has %d", hour*3600)
		}
	}
	if n := r.Count(minUnix, maxUnix); n != 0 {
		t.Errorf("%d dues", n)
	}
}
