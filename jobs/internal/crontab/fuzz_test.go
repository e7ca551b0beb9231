package crontab

import (
	"errors"
	"strings"
	"testing"
)

// Long runs: go test ./jobs/internal/crontab -run '^$' -fuzz FuzzParse -fuzztime 10m
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"0 2 * * 1-5", "59 59 23 31 12 6", "*/15 0-23/2 ? JAN-DEC,7 SUN-SAT", "@hourly", "@DAILY", "0 0 30 2 *", "0 0 29 2 MON#5",
		"0 0 L,L-3,LW,L-30W,31W * 5L,7#5,L", "H H(0-3) H/7 H H(1-5)/2", "H H H H H H", "0 0 31 H *", "1,,2 * * * *", "*-5 * * * *", "0\u00a09 * * *",
		"", " ", "0 2-6/2 * * 5-7", "0 0 * * 7/2", "H() ( ) #", "0 0 * * H(0-7)/6", "99999999999999999999 * * * *",
	} {
		f.Add(text, int64(1_324_000_000), "renewals")
	}
	zones := make([]*Rule, 0, 3)
	for _, name := range []string{"UTC", "Pacific/Apia", "Australia/Lord_Howe"} {
		zones = append(zones, rule(f, "@daily", name))
	}
	f.Fuzz(func(t *testing.T, text string, at int64, name string) {
		s, err := Parse(text)
		if err != nil {
			var e *Error
			if s != nil || !errors.As(err, &e) || e.Column < 1 || e.Column > len(text)+1 || len(err.Error()) > 400 {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		again, err := Parse(s.String())
		if err != nil || !same(again, s) {
			t.Fatalf("%q: text %q does not come back: %v", text, s, err)
		}
		if s.Hashed() {
			if s = s.Resolve(name); s.Hashed() || strings.Contains(s.String(), "H/") {
				t.Fatalf("%q for %q: %q", text, name, s)
			}
			if again, err = Parse(s.String()); err != nil || !same(again, s) {
				t.Fatalf("%q for %q: text %q does not come back: %v", text, name, s, err)
			}
		}
		for _, z := range zones {
			walk(t, s.In(z.zone), at)
		}
	})
}

func same(a, b *Spec) bool { return *a == *b }

// walk holds all questions to their promises, round an instant.
func walk(t *testing.T, r *Rule, at int64) {
	for range 5 {
		due, ok := r.Next(at)
		if !ok {
			if at < maxUnix-400*366*day {
				t.Fatalf("%s in %v: never after %d", r, r.zone.Location(), at)
			}
			return
		}
		if due <= at || due < minUnix || due > maxUnix || !r.Has(due) || r.Count(at, due) != 1 {
			t.Fatalf("%s in %v: %d after %d; Has %t, Count %d", r, r.zone.Location(), due, at, r.Has(due), r.Count(at, due))
		}
		if back, ok := r.Prev(due + 1); !ok || back != due {
			t.Fatalf("%s in %v: %d before %d, %t", r, r.zone.Location(), back, due+1, ok)
		}
		if before, ok := r.Prev(due); ok && before > at {
			t.Fatalf("%s in %v: %d before %d, the next after %d", r, r.zone.Location(), before, due, at)
		}
		at = due
	}
}
