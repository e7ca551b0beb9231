package sim_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/internal/sim"
	"github.com/belfry-go/belfry/internal/sim/oracle"
	"github.com/belfry-go/belfry/jobs"
)

// plan is one period with a missed policy.
func plan(d time.Duration, m jobs.Missed) []sim.Plan { return []sim.Plan{{Every: d, Missed: m}} }

// A fleet that was down longer than MissedAfter does what each job's policy says, with keys and without. Of the dues
// 6 … 24, those younger than 8 s at 24.5 s run in any case, 18 and on; late are 6 … 16, older than the horizon 6 … 12.
func TestMissedPolicies(t *testing.T) {
	t.Parallel()
	policies := map[string]struct {
		missed jobs.Missed
		runs   int // late dues that do
	}{
		"latest": {jobs.Missed{}, 1},
		"aged":   {jobs.Missed{MaxAge: 8*time.Second + 200*ms}, 0},
		"skip":   {jobs.Missed{Policy: jobs.MissedSkip}, 0},
		"one":    {jobs.Missed{Policy: jobs.MissedAll, Max: 1}, 1},
		"all":    {jobs.Missed{Policy: jobs.MissedAll}, 2},
	}
	c := sim.Config{}
	for _, name := range []string{"latest", "aged", "skip", "one", "all"} {
		c.Jobs = append(c.Jobs, sim.Job{Name: name, Plans: plan(2*time.Second, policies[name].missed)},
			sim.Job{Name: name + "-keyed", Plans: plan(2*time.Second, policies[name].missed), Source: sim.NewSource(6)})
	}
	s := newScene(t, c)
	s.down(5*time.Second, 24500*ms)
	s.settle(45*time.Second, 40*time.Second)
	const late, before, after = 6, 2, 4 + 8 + 2 // 2 and 4; 18 … 44
	for name, p := range policies {
		missed, ran := late-p.runs, before+after+p.runs
		s.tally(name, map[oracle.Outcome]int{oracle.Done: ran, oracle.Missed: missed})
		s.tally(name+"-keyed", map[oracle.Outcome]int{oracle.Done: 6 * ran, oracle.Missed: missed})
	}
}

// The late dues of one job run one after the other, oldest first, without a pause in between, and without asking for
// what cannot be had yet.
func TestCatchUpInOrder(t *testing.T) {
	t.Parallel()
	timing := sim.Normal()
	timing.Horizon = time.Hour
	var order []time.Time
	s := newScene(t, sim.Config{Timing: timing, Jobs: []sim.Job{{Name: "plain", Plans: plan(10*time.Second, jobs.Missed{Policy: jobs.MissedAll, Max: 50}),
		Work: func(_ *sim.Replica, o jobs.Occurrence) sim.Work {
			order = append(order, o.Due)
			return sim.Work{Takes: 100 * ms}
		}}}})
	s.down(5*time.Second, 20*time.Minute+time.Second)
	s.settle(20*time.Minute+39*time.Second, 20*time.Minute+30*time.Second)
	const ran = 50 + 6 + 3 // late; young at 1201 s, 1150 … 1200; in the rest of the scene
	s.tally("plain", map[oracle.Outcome]int{oracle.Done: ran, oracle.Missed: 120 - 56})
	if len(order) != ran || !slices.IsSortedFunc(order, time.Time.Compare) {
		t.Errorf("%d runs, in the order %v; want %d, oldest first", len(order), order, ran)
	}
	if n := s.Stats.Refused["busy"]; n > 10 { // the others look too, and may come when the next one has been taken
		t.Errorf("%d claims were refused as busy", n)
	}
	if done := s.lines("finished", "plain/"); len(done) >= 56 && strings.TrimSpace(done[55]) > "1209" {
		t.Errorf("the last of 56 that take 100 ms each ended at %s", done[55])
	}
}

// The late dues of a job with keys are opened all at once, and their keys are read a few streams at a time, oldest due
// first. That the others wait for a stream does not make an owner look idle.
func TestCatchUpReadsKeysInTurn(t *testing.T) {
	t.Parallel()
	timing := sim.Normal()
	timing.Horizon = time.Hour
	source, slow := sim.NewSource(40), 1500*ms // longer than the grace
	began, most := map[string][]time.Duration{}, 0
	s := newScene(t, sim.Config{Timing: timing})
	source.Flow = func(r *sim.Replica, _ time.Duration, _ int) (sim.Flow, bool) {
		open := 1
		for _, at := range began[r.Name] { // each stream is read by one pull
			if s.Now()-at < slow {
				open++
			}
		}
		most = max(most, open)
		began[r.Name] = append(began[r.Name], s.Now())
		return sim.Flow{Takes: slow}, true
	}
	s.Add(sim.Job{Name: "keyed", Plans: plan(10*time.Second, jobs.Missed{Policy: jobs.MissedAll, Max: 30}), Source: source})
	s.down(5*time.Second, 20*time.Minute+time.Second)
	s.settle(21*time.Minute, 20*time.Minute+40*time.Second)
	if n := s.Oracle.Tally("keyed")[oracle.Missed]; n != 120-36 {
		t.Errorf("%d dues are missed, want %d", n, 120-36)
	}
	if most != 4 {
		t.Errorf("up to %d streams of one job are read at once on a replica, want 4", most)
	}
	if s.Stats.Hedged > 0 {
		t.Errorf("%d claims are hedged", s.Stats.Hedged)
	}
}
