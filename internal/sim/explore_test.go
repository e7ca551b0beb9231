package sim_test

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/belfry-go/belfry/internal/sim"
)

var (
	seeds = flag.Int("sim.seeds", 80, "how many seeds TestExplore runs")
	from  = flag.Uint64("sim.from", 1, "the first of them")
	trace = flag.Bool("sim.trace", false, "print the history of each seed")
	with  = flag.String("sim.with", "", "these faults too, by name, with commas")
	only  = flag.String("sim.only", "", "exactly these faults, by name, with commas")
	fails = flag.Int("sim.fails", 20, "after how many seeds that fail TestExplore stops")
)

func options(t *testing.T) sim.Options {
	t.Helper()
	f, err := sim.ParseFault(*only)
	if err != nil {
		t.Fatal(err)
	}
	more, err := sim.ParseFault(*with)
	if err != nil {
		t.Fatal(err)
	}
	o := sim.Options{Only: f, With: more}
	if *trace {
		o.Trace = os.Stdout
	}
	return o
}

// TestExplore lets clusters live through random faults. A seed that fails is
// printed with the command that shows it again.
func TestExplore(t *testing.T) {
	t.Parallel()
	o := options(t)
	begin, events, tried, bad := time.Now(), 0, 0, 0
	for seed := *from; seed < *from+uint64(*seeds); seed++ {
		tried++
		w, err := sim.Explore(seed, o)
		events += w.Stats.Events
		if err != nil {
			t.Errorf("seed %d at %v: %v\nreplay: go test ./internal/sim -run TestExplore -sim.seeds 1 -sim.from %d -sim.only '%s' -sim.with '%s' -sim.trace",
				seed, w.Now(), err, seed, *only, *with)
			if bad++; bad >= *fails {
				break
			}
		}
	}
	t.Logf("T1: %d clusters of a minute, from seed %d, %d events, %d violations, %v", tried, *from, events, bad, time.Since(begin).Round(time.Millisecond))
}

// TestReplay demands that a seed is its own reproduction, on any number of processors.
func TestReplay(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	digest := func(seed uint64) string {
		w, err := sim.Explore(seed, sim.Options{})
		return fmt.Sprint(w.Digest(), w.Stats.Events, err)
	}
	for seed := range uint64(20) {
		runtime.GOMAXPROCS(1)
		one := digest(seed)
		runtime.GOMAXPROCS(2)
		if two := digest(seed); one != two {
			t.Errorf("seed %d: %s, and then %s", seed, one, two)
		}
	}
}
