package sim_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/internal/sim"
)

var (
	hours = flag.Float64("sim.hours", 6, "how many cluster-hours TestHours lives")
	each  = flag.Float64("sim.each", .4, "of how many hours each of its worlds is")
	rate  = flag.String("sim.rate", "", "the rate of faults of all of them, light or heavy (default: one in eight is heavy)")
	twice = flag.Int("sim.twice", 4, "how many seeds TestHoursAgain runs twice")
)

// rateOf is the rate of faults of a seed.
func rateOf(seed uint64) sim.Rate {
	switch {
	case *rate != "":
		return sim.Rate(*rate)
	case seed%8 == 0:
		return sim.Heavy
	}
	return sim.Light
}

// T1: clusters live for hours under light and heavy faults, and nothing is broken that was promised. A seed that fails is printed
// with what is left of it when it is shrunk, and with the command that shows it again. make long-T1 lives for long.
func TestHours(t *testing.T) {
	if *trace {
		r := sim.Trial{Seed: *from, Hours: *each, Faults: rateOf(*from), Trace: os.Stdout}.Run(t.Context())
		t.Log(r.Err)
		return
	}
	begin, sums, bad := time.Now(), map[sim.Rate]*sim.Summary{}, 0
	worlds := int(*hours / *each + .999)
	for seed := *from; seed < *from+uint64(worlds) && bad < 100; {
		n := 1
		for seed+uint64(n) < *from+uint64(worlds) && rateOf(seed+uint64(n)) == rateOf(seed) {
			n++
		}
		x := sim.Trial{Seed: seed, Hours: *each, Faults: rateOf(seed)}
		if sums[x.Faults] == nil {
			sums[x.Faults] = &sim.Summary{}
		}
		err := x.Each(t.Context(), n, runtime.GOMAXPROCS(0), func(x sim.Trial, r sim.Report) {
			if sums[x.Faults].Add(r); r.Err != nil {
				if bad++; bad <= 3 {
					tellTrial(t, x, r)
				} else {
					t.Errorf("seed %d at %v: %v", x.Seed, r.At, r.Err)
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		seed += uint64(n)
	}
	var all sim.Summary
	for _, s := range sums {
		all.Trials, all.Faults, all.Occurrences, all.Lived, all.Violations = all.Trials+s.Trials, all.Faults+s.Faults, all.Occurrences+s.Occurrences, all.Lived+s.Lived, all.Violations+s.Violations
	}
	t.Logf("T1: %.1f cluster-hours, %d seeds from %d, %d faults (%.0f an hour), %d runs and dues, %d violations, %v",
		all.Hours(), all.Trials, *from, all.Faults, float64(all.Faults)/all.Hours(), all.Occurrences, all.Violations, time.Since(begin).Round(time.Second))
	if per := float64(all.Faults) / all.Hours(); per < 10 {
		t.Errorf("%.1f faults in an hour, want 10 at least", per)
	}
}

// tellTrial fails the test with the least of a trial that breaks its law.
func tellTrial(t *testing.T, x sim.Trial, r sim.Report) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s := x.Shrink(ctx, r, 200)
	var moves strings.Builder
	for _, m := range s.Report.Moves {
		fmt.Fprintf(&moves, "  %v\n", m)
	}
	t.Errorf("seed %d at %v: %v\nof %d moves %d are enough:\n%s%s\nreplay: belfry sim %s\nall of it: go test ./internal/sim -run TestHours -sim.from %d -sim.each %v -sim.rate %s -sim.trace -v",
		x.Seed, r.At, r.Err, len(r.Moves), len(s.Report.Moves), moves.String(), strings.Join(s.Trace[max(0, len(s.Trace)-12):], "\n"), s.Trial.Flags(),
		x.Seed, x.Hours, x.Faults)
}

// T2: a trial is its own reproduction, on any number of processors.
func TestHoursAgain(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	begin, differ := time.Now(), 0
	for seed := *from; seed < *from+uint64(*twice); seed++ {
		x := sim.Trial{Seed: seed, Hours: .2, Faults: rateOf(seed)}
		said := [2]string{}
		for i := range said {
			runtime.GOMAXPROCS(i + 1)
			r := x.Run(t.Context())
			said[i] = fmt.Sprint(r.Digest, r.Events, r.Faults, r.Occurrences, r.Err)
		}
		if said[0] != said[1] {
			differ++
			t.Errorf("seed %d: %s, and then %s", seed, said[0], said[1])
		}
	}
	t.Logf("T2: %d seeds twice, with GOMAXPROCS 1 and 2: %d differ, %v", *twice, differ, time.Since(begin).Round(time.Second))
}

// A move that is left out leaves all others as they are.
func TestMovesStay(t *testing.T) {
	t.Parallel()
	x := sim.Trial{Seed: 3, Hours: .4}
	whole := x.Run(t.Context()).Moves
	x.Without = []int{2, 5}
	want := slices.DeleteFunc(slices.Clone(whole), func(m sim.Move) bool { return slices.Contains(x.Without, m.N) })
	if got := x.Run(t.Context()).Moves; !slices.Equal(got, want) {
		t.Errorf("without moves 2 and 5 there are\n%v, want\n%v", got, want)
	}
	x.Without, x.Only = nil, []int{2, 5}
	if got := x.Run(t.Context()).Moves; len(got) != 2 || got[0] != whole[1] || got[1] != whole[4] {
		t.Errorf("with moves 2 and 5 alone there are %v, want %v and %v", got, whole[1], whole[4])
	}
	x.Only = []int{0}
	if r := x.Run(t.Context()); len(r.Moves) > 0 || r.Faults > 0 || r.Err != nil {
		t.Errorf("without any move there are %v, %d faults, and %v", r.Moves, r.Faults, r.Err)
	}
}

// A trial that breaks a law is shrunk to a few moves that break the same.
func TestShrink(t *testing.T) {
	t.Parallel()
	x := sim.Trial{Seed: 1, Hours: 1, Faults: sim.Heavy, Store: func(s idempotency.Store) idempotency.Store { return led{forgiving{s}, s.(idempotency.Leaders)} }}
	r := x.Run(t.Context())
	if sim.Law(r.Err) != "I10" {
		t.Fatalf("a store that counts no crashes breaks %v, want I10", r.Err)
	}
	s := x.Shrink(t.Context(), r, 60)
	t.Logf("%d moves before, and after %d tries %v; belfry sim %s", len(r.Moves), s.Tries, s.Report.Moves, s.Trial.Flags())
	if sim.Law(s.Report.Err) != "I10" || len(s.Report.Moves) > 3 || s.Tries > 60 {
		t.Errorf("shrunk to %d moves in %d tries, of which comes %v; want up to 3, and I10", len(s.Report.Moves), s.Tries, s.Report.Err)
	}
	if last := s.Trace[len(s.Trace)-1]; !strings.Contains(last, "VIOLATION") {
		t.Errorf("the history ends with %q, want the violation", last)
	}
	if again := s.Trial.Run(t.Context()); again.Digest != s.Report.Digest {
		t.Errorf("what was shrunk runs as %s, and again as %s", s.Report.Digest, again.Digest)
	}
}

// led is a broken store that elects the leader as ever.
type led struct {
	store
	idempotency.Leaders
}

// Broken stores are found by worlds of hours too.
func TestHoursFindBugs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		laws  string
		store func(store) store
	}{
		"nobody is marked dead":       {"I2 I6", func(s store) store { return lazy{s} }},
		"finishes are forgotten":      {"I2 I4 overlap", func(s store) store { n := 0; return unsynced{s, &n} }},
		"bits are written too early":  {"I2 open", func(s store) store { return hasty{s} }},
		"lapsed sessions are renewed": {"I4 I5", func(s store) store { return lenient{s} }},
		"two claimers win":            {"I1 I3 I4", func(s store) store { n := int64(1 << 20); return generous{s, &n} }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(10) {
				x := sim.Trial{Seed: seed, Hours: .2, Faults: sim.Heavy, Store: func(s idempotency.Store) idempotency.Store { return led{c.store(s), s.(idempotency.Leaders)} }}
				r := x.Run(t.Context())
				if r.Err == nil {
					continue
				}
				if !slices.Contains(strings.Fields(c.laws), sim.Law(r.Err)) {
					t.Errorf("seed %d breaks %v, want one of %s", seed, r.Err, c.laws)
				}
				return
			}
			t.Error("no seed of 10 finds it")
		})
	}
}
