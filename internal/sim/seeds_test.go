package sim_test

import (
	_ "embed"
	"flag"
	"strconv"
	"strings"
	"testing"

	"github.com/belfry-go/belfry/internal/sim"
)

//go:embed testdata/seeds.txt
var failedOnce string

// TestSeeds replays the seeds that failed once; testdata/seeds.txt says what its lines are.
func TestSeeds(t *testing.T) {
	t.Parallel()
	n := 0
	for line := range strings.Lines(failedOnce) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		field := strings.Split(line, " | ")
		if len(field) != 4 {
			t.Fatalf("want seed | flags | what was broken | mended by, have %q", line)
		}
		n++
		seed, err := strconv.ParseUint(field[0], 10, 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if err := replay(t, seed, field[1]); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	if n < 5 {
		t.Errorf("%d seeds are on record, want all that there were", n)
	}
	t.Logf("%d seeds that failed once, replayed", n)
}

// replay plays a seed again: as TestExplore does with flags of its own, or as belfry sim does.
func replay(t *testing.T, seed uint64, flags string) error {
	t.Helper()
	set := flag.NewFlagSet("seeds", flag.ContinueOnError)
	with, only := set.String("sim.with", "", ""), set.String("sim.only", "", "")
	hours, faults := set.Float64("hours", 0, ""), set.String("faults", string(sim.Light), "")
	if flags == "-" {
		flags = ""
	}
	if err := set.Parse(strings.Fields(flags)); err != nil {
		return err
	}
	if *hours > 0 {
		return sim.Trial{Seed: seed, Hours: *hours, Faults: sim.Rate(*faults)}.Run(t.Context()).Err
	}
	more, err := sim.ParseFault(*with)
	if err != nil {
		return err
	}
	exactly, err := sim.ParseFault(*only)
	if err != nil {
		return err
	}
	_, err = sim.Explore(seed, sim.Options{With: more, Only: exactly})
	return err
}
