package sim_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/belfry-go/belfry/internal/sim"
)

// TestSeeds runs the seeds again that once failed.
func TestSeeds(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/seeds.txt")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		cells := strings.Split(line, " | ")
		if len(cells) != 4 {
			t.Fatalf("%q is not: seed | flags, or - | what was broken | mended by", line)
		}
		seed, err := strconv.ParseUint(cells[0], 10, 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		n++
		if _, err := sim.Explore(seed, flagged(t, cells[1])); err != nil {
			t.Errorf("seed %d, where once %s: %v\nreplay: go test ./internal/sim -run TestExplore -sim.seeds 1 -sim.from %d %s -sim.trace",
				seed, cells[2], err, seed, strings.TrimSuffix(cells[1], "-"))
		}
	}
	if t.Logf("%d seeds that once failed", n); n == 0 {
		t.Error("there are no seeds")
	}
}

// flagged are the options that a line's flags stand for.
func flagged(t *testing.T, flags string) (o sim.Options) {
	t.Helper()
	words := strings.Fields(flags)
	for i := 0; i+1 < len(words); i += 2 {
		f, err := sim.ParseFault(words[i+1])
		if err != nil {
			t.Fatal(err)
		}
		switch words[i] {
		case "-sim.only":
			o.Only = f
		case "-sim.with":
			o.With = f
		default:
			t.Fatalf("flag %q of a seed: there are -sim.only and -sim.with", words[i])
		}
	}
	return o
}
