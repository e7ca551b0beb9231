package crontab

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/belfry-go/belfry/jobs/internal/zone"
)

// The values are frozen: another one would move the dues of every job with an H.
func TestResolve(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, name, want string }{
		{"H H(0-3) * * *", "renewals", "38 1 * * *"},
		{"H H(0-3) * * *", "reports", "17 0 * * *"},
		{"H H * * *", "renewals", "38 9 * * *"},
		{"H H H H H H", "renewals", "37 38 9 25 6 1"},
		{"h/15 h/6 * * *", "renewals", "8/15 3/6 * * *"},
		{"H(10-40)/15 H(8-17)/2 H/7 H/3 H/2", "renewals", "18-40/15 9-17/2 4/7 3/3 0/2"},
		{"5,H(30-40),H(50-59) 2 H,L * *", "renewals", "5,31,58 2 25,L * *"},
		{"0 0 * H(jan-mar) H(MON-FRI)", "renewals", "0 0 * 3 1"},
		{"0 0 H(28-31) * H(5-7)", "renewals", "0 0 28 * 5"},
		{"H H * * *", "", "39 22 * * *"},
		{"H H * * *", "kunde-é/42", "12 19 * * *"},
		{"0 2 * * MON", "renewals", "0 2 * * MON"},
		{"@daily", "renewals", "@daily"},
	} {
		s, err := Parse(c.text)
		if err != nil {
			t.Error(err)
			continue
		}
		r := s.Resolve(c.name)
		if r.Hashed() || r.String() != c.want {
			t.Errorf("%q for %q: %q, want %q", c.text, c.name, r, c.want)
		}
	}
}

// What an H becomes follows the clock as the text around it says.
func TestResolveKeepsClass(t *testing.T) {
	t.Parallel()
	for text, elapsed := range map[string]bool{
		"0 H * * *": false, "0 H(0-3) * * *": false, "0 1,H * * *": false, "0 H/6 * * *": true, "0 H(0-9)/3 * * *": true, "0 H,*/12 * * *": true, "H/5 H * * *": false,
	} {
		s, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if r := s.Resolve("renewals"); r.elapsed != elapsed || s.elapsed != elapsed {
			t.Errorf("%s: elapsed %t, as %s %t; want %t", text, s.elapsed, r, r.elapsed, elapsed)
		}
	}
}

// Names spread over all values of each field, and none other.
func TestHashSpreads(t *testing.T) {
	t.Parallel()
	for place, width := range []int{60, 60, 24, 28, 12, 7} {
		words := []string{"0", "0", "0", "1", "1", "*"}
		words[place] = "H"
		s, err := Parse(strings.Join(words, " "))
		if err != nil {
			t.Fatal(err)
		}
		seen := make(map[string]int)
		const names = 2000
		for i := range names {
			seen[strings.Fields(s.Resolve(fmt.Sprintf("job-%d", i)).String())[place]]++
		}
		if len(seen) != width {
			t.Errorf("%s: %d values, want %d", fields[place].name, len(seen), width)
		}
		for v, n := range seen {
			if n < names/width/3 || n > names/width*3 {
				t.Errorf("%s: %d of %d names take %s", fields[place].name, n, names, v)
			}
		}
	}
}

// A line with an H that is let through fires for every name.
func TestHashedFires(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		words := make([]string, len(fields))
		for place := range fields {
			words[place] = drawHash(t, place)
		}
		text := strings.Join(words, " ")
		s, err := Parse(text)
		if err != nil {
			if !strings.Contains(err.Error(), "never fires") {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		for i := range 50 {
			r := s.Resolve(fmt.Sprint(i))
			again, err := Parse(r.String())
			if err != nil || r.Hashed() || again.String() != r.String() {
				t.Fatalf("%q for %d: %q, %v", text, i, r, err)
			}
			if _, ok := r.In(zone.UTC).Next(0); !ok {
				t.Fatalf("%q for %d: %q never fires", text, i, r)
			}
		}
	})
}

// drawHash draws a field, most often with an H.
func drawHash(t *rapid.T, place int) string {
	f := &fields[place]
	a := rapid.IntRange(f.low, f.high).Draw(t, f.name)
	b := rapid.IntRange(a, f.high).Draw(t, f.name+" to")
	switch rapid.SampledFrom([]string{"*", "H", "H/n", "H()", "H()/n", "list", "value"}).Draw(t, f.name+" kind") {
	case "H":
		return "H"
	case "H/n":
		return fmt.Sprintf("H/%d", rapid.IntRange(1, f.width()-1).Draw(t, "step"))
	case "H()":
		return fmt.Sprintf("H(%d-%d)", a, b)
	case "H()/n":
		if b > a {
			return fmt.Sprintf("H(%d-%d)/%d", a, b, rapid.IntRange(1, min(b-a, f.width()-1)).Draw(t, "step"))
		}
	case "list":
		return fmt.Sprintf("%d,H(%d-%d)", b, a, b)
	case "value":
		return fmt.Sprint(a)
	}
	return "*"
}
