package sim_test

import (
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/internal/sim"
)

var (
	hours = flag.Float64("sim.hours", 4, "how many cluster-hours TestHours lives")
	each  = flag.Float64("sim.each", .4, "of how many hours each of its worlds is")
	rate  = flag.String("sim.rate", "light", "the rate of faults, light or heavy")
)

func TestHours(t *testing.T) {
	begin := time.Now()
	lived, faults, bad, events, occ := 0., 0, 0, 0, 0
	for seed := *from; lived < *hours; seed++ {
		x := sim.Trial{Seed: seed, Hours: *each, Faults: sim.Rate(*rate)}
		if *trace {
			x.Trace = os.Stdout
		}
		r := x.Run(t.Context())
		lived += r.At.Hours()
		faults += r.Faults
		events += r.Events
		occ += r.Occurrences
		if r.Err != nil {
			t.Errorf("seed %d at %v: %v", seed, r.At, strings.SplitN(r.Err.Error(), "goroutine", 2)[0])
			if bad++; bad > 20 {
				break
			}
		}
	}
	t.Logf("%.1f hours, %d faults, %d events, %d occurrences, %v", lived, faults, events, occ, time.Since(begin))
}
