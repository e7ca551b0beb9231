package sim_test

import (
	"testing"
	"time"

	"github.com/belfry-go/belfry/internal/sim"
)

// F54: one host's clock is eight years ahead, another's says 1970. Correctness jobs run on the store's time and do not
// notice.
func TestHostClocksWrongByYears(t *testing.T) {
	t.Parallel()
	const year = 365 * 24 * time.Hour
	s := newScene(t, sim.Config{Timing: sim.Normal(), Jobs: []sim.Job{
		{Name: "keyed", Plans: every(10 * time.Second), Source: sim.NewSource(20)},
		{Name: "plain", Plans: every(3 * time.Second)},
	}})
	s.Replica(0).SetClock(8*year, 0)
	s.play(2*time.Minute - ms)
	s.late("plain", time.Second)
	s.At(2*time.Minute, func() { s.Replica(1).SetClock(-56*year, 0) })
	s.settle(5*time.Minute, 4*time.Minute+30*time.Second)
	if n := s.Stats.Missed["keyed"] + s.Stats.Missed["plain"]; n > 0 {
		t.Errorf("%d dues are missed", n)
	}
	s.late("plain", 3*time.Second)
}
