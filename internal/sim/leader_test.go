package sim_test

import (
	"testing"
	"time"

	"github.com/belfry-go/belfry/internal/sim"
	"github.com/belfry-go/belfry/internal/sim/oracle"
)

// The leader changes twenty times, each time at the second at which its jobs are due, in all the ways in which it can: each due is done
// once, with keys and without. F51, F52, LD-06, DP-07.
func TestLeaderChangesOnDues(t *testing.T) {
	t.Parallel()
	kill := func(_ *scene, r *sim.Replica) { r.Kill(); r.Restart(500 * ms) }
	drain := func(_ *scene, r *sim.Replica) { r.Drain(func() { r.Restart(100 * ms) }) }
	freeze := func(_ *scene, r *sim.Replica) { r.Freeze(3 * time.Second) }
	blind := func(_ *scene, r *sim.Replica) { r.Blind(3 * time.Second) }
	end := func(late time.Duration) func(*scene, *sim.Replica) {
		return func(s *scene, _ *sim.Replica) { s.EndTerm(late) }
	}
	for name, c := range map[string]struct {
		faults sim.Fault
		ways   []func(*scene, *sim.Replica)
	}{
		"store":   {0, []func(*scene, *sim.Replica){kill, drain, freeze, blind}},
		"elector": {sim.Elector, []func(*scene, *sim.Replica){end(0), end(2 * time.Second), kill, drain, freeze}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const changes, each = 20, 6 * time.Second
			s := newScene(t, sim.Config{Faults: c.faults, Jobs: []sim.Job{
				{Name: "plain", Plans: every(each), Leader: true},
				{Name: "keyed", Plans: every(each), Leader: true, Source: sim.NewSource(5)},
			}})
			changed := 0
			for i := range changes {
				// Its own clock is a little behind, and an opening takes a while: some changes come before it, some after.
				at := each*time.Duration(i+1) + time.Duration(i%7)*5*ms
				s.At(at, func() {
					if r := s.Leader(); r != nil {
						changed++
						c.ways[i%len(c.ways)](s, r)
					}
				})
			}
			s.At(each*(changes+1), s.Calm)
			s.settle(each*(changes+3)+each/2, each*(changes+3))
			s.tally("plain", done(changes+3))
			s.tally("keyed", map[oracle.Outcome]int{oracle.Done: 5 * (changes + 3)})
			if changed < changes {
				t.Errorf("somebody led at %d of %d dues", changed, changes)
			}
			s.demand(changed+1, "store: is led by")
		})
	}
}
