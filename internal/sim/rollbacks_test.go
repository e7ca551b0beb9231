package sim_test

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/belfry-go/belfry/internal/sim"
)

var rollbacks = flag.Int("sim.rollbacks", 120, "how many seeds TestRollbacks runs")

// TestRollbacks lets the stores of clusters forget. All ways for that to go have to come.
func TestRollbacks(t *testing.T) {
	t.Parallel()
	begin, bad := time.Now(), 0
	var kept, unseen, noticed, anew int
	for seed := *from; seed < *from+uint64(*rollbacks); seed++ {
		r := sim.Rollback{Seed: seed}
		if *trace {
			r.Trace = os.Stdout
		}
		f := r.Run()
		if f.Err != nil {
			t.Errorf("seed %d at %v: %v\nreplay: go test ./internal/sim -run TestRollbacks -sim.rollbacks 1 -sim.from %d -sim.trace", seed, f.At, f.Err, seed)
			if bad++; bad >= *fails {
				break
			}
		}
		switch {
		case f.Kept:
			kept++
		case f.Noticed > 0:
			noticed++
		default:
			unseen++
		}
		if f.Anew {
			anew++
		}
	}
	t.Logf("%d stores forgot, from seed %d: %d were noticed, %d lost numbers that nobody came to miss, %d lost none; %d fleets were started again; %d violations, %v",
		*rollbacks, *from, noticed, unseen, kept, anew, bad, time.Since(begin).Round(time.Millisecond))
	if *rollbacks >= 40 && (kept < 3 || noticed < 10 || anew < 10) {
		t.Error("these seeds do not show what they are for")
	}
}
