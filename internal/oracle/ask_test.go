package oracle_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/belfry-go/belfry/jobs"
)

var seedFlag = flag.Uint64("oracle.seed", 1, "what TestAsk draws its instants from")

// Whatever is asked about, at any instant, is what the list of all dues says: the one after, the one before, whether this
// is one, and how many there are between two.
func TestAsk(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		zone string
		from int // year
	}{
		{"America/New_York", 2025}, {"Australia/Lord_Howe", 2024}, {"Africa/Casablanca", 2023}, {"Pacific/Apia", 2011}, {"Africa/Monrovia", 1971},
		{"Africa/Cairo", 2014}, {"America/Santiago", 2098},
	} {
		t.Run(c.zone, func(t *testing.T) {
			t.Parallel()
			if underRace && !slices.Contains(fewZones, c.zone) {
				t.Skip("other zones without the race detector")
			}
			loc := location(t, c.zone)
			first := time.Date(c.from, 1, 1, 0, 0, 0, 0, time.UTC)
			last := first.AddDate(2, 0, 0)
			instants := draw(rand.New(rand.NewPCG(*seedFlag, 0)), loc, first, last)
			for i, all := range dues(t, loc, first, last, lines...) {
				s := jobs.Cron(lines[i]).In(c.zone)
				if err := s.Err(); err != nil {
					t.Errorf("%q: the product refuses it: %v", lines[i], err)
					continue
				}
				for k, at := range instants {
					if wrong := ask(s, all, at, instants[(k+1)%len(instants)]); wrong != "" {
						t.Fatalf("%q: %s\nreplay: go test ./internal/oracle -run '^TestAsk$' -oracle.seed %d", lines[i], wrong, *seedFlag)
					}
				}
			}
		})
	}
}

// draw picks instants between two: half of them anywhere, half within three hours of a change of the clock; some with a
// fraction of a second.
func draw(r *rand.Rand, loc *time.Location, first, last time.Time) (all []time.Time) {
	all = append(all, first, last)
	between := slices.DeleteFunc(changes(loc), func(t time.Time) bool { return t.Before(first) || t.After(last) })
	for i := range 60 {
		at := first.Add(time.Duration(r.Int64N(int64(last.Sub(first)/time.Second))) * time.Second)
		if i%2 == 0 && len(between) > 0 {
			at = between[r.IntN(len(between))].Add(time.Duration(r.IntN(6*60)-3*60) * time.Minute)
		}
		if i%5 == 0 {
			at = at.Add(time.Duration(r.IntN(1e9)))
		}
		if !at.Before(first) && !at.After(last) {
			all = append(all, at)
		}
	}
	return all
}

// ask says what the schedule answers wrongly; all are its dues in a span that holds a and b.
func ask(s jobs.Schedule, all []int64, a, b time.Time) string {
	after := func(t time.Time) int { // the index of the first due later than t
		i, found := slices.BinarySearch(all, t.Unix())
		if found {
			i++
		}
		return i
	}
	i := after(a)
	if i < len(all) {
		if next, ok := s.Next(a); !ok || next.Unix() != all[i] {
			return fmt.Sprintf("after %v: %v, want %v", a, next, time.Unix(all[i], 0).UTC())
		}
	}
	before := i - 1
	if before >= 0 && all[before] == a.Unix() && a.Nanosecond() == 0 {
		before--
		if n := s.Count(a.Add(-time.Second), a); n != 1 {
			return fmt.Sprintf("%v is a due, but counted %d times", a, n)
		}
	}
	if before >= 0 {
		if prev, ok := s.Prev(a); !ok || prev.Unix() != all[before] {
			return fmt.Sprintf("before %v: %v, want %v", a, prev, time.Unix(all[before], 0).UTC())
		}
	}
	if a.After(b) {
		a, b = b, a
	}
	if got, want := s.Count(a, b), int64(after(b)-after(a)); got != want {
		return fmt.Sprintf("in (%v, %v]: %d dues, want %d", a, b, got, want)
	}
	return ""
}
