package sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/belfry-go/belfry/internal/sim"
	"github.com/belfry-go/belfry/internal/sim/oracle"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/ring"
)

// spreadScene is a scene of jobs whose starts are spread, with the instants at which handlers started.
type spreadScene struct {
	*scene
	partitions int
	starts     map[oracle.ID][]time.Duration
	takes      func(o jobs.Occurrence) time.Duration // by handlers; nil: 5 ms
}

func newSpread(t *testing.T, c sim.Config) *spreadScene {
	t.Helper()
	if c.Timing.Lease == 0 {
		c.Timing = sim.Normal()
	}
	return &spreadScene{scene: newScene(t, c), partitions: c.Timing.Partitions, starts: map[oracle.ID][]time.Duration{}}
}

// add adds a job of so many keys; with 0 it has none.
func (s *spreadScene) add(name string, keys int, p ...sim.Plan) {
	j := sim.Job{Name: name, Plans: p, Timeout: time.Minute, Work: func(_ *sim.Replica, o jobs.Occurrence) sim.Work {
		id := oracle.ID{Job: o.Job, Key: o.Key, Due: o.Due.Unix()}
		s.starts[id] = append(s.starts[id], s.Now())
		if s.takes == nil {
			return sim.Work{Takes: 5 * ms}
		}
		return sim.Work{Takes: s.takes(o)}
	}}
	if keys > 0 {
		j.Source = sim.NewSource(keys)
	}
	s.Add(j)
}

// delay is that of a key's partition.
func (s *spreadScene) delay(key string, spread time.Duration) time.Duration {
	return spread * time.Duration(ring.Slot(key)%s.partitions) / time.Duration(s.partitions)
}

// ran demands that the keys of a job ran once each for a due, from their starts to so much later.
func (s *spreadScene) ran(job string, keys int, due, spread, least, most time.Duration) {
	s.t.Helper()
	for i := range max(keys, 1) {
		key := fmt.Sprintf("k%03d", i)
		if keys == 0 {
			key = job
		}
		start := due + s.delay(key, spread)
		if at := s.starts[s.id(job, key, due)]; len(at) != 1 || at[0] < start+least || at[0] > start+most {
			s.t.Errorf("%s/%s of due %v ran at %v, want once from %v to %v", job, key, due, at, start+least, start+most)
		}
	}
}

// In a calm fleet every key starts in its time and on its owner, and at the same instant of each night; the source is
// asked once for a stride of partitions, not for each of them.
func TestSpreadInCalm(t *testing.T) {
	t.Parallel()
	const spread, night = 50 * time.Second, 2 * time.Minute
	s := newSpread(t, sim.Config{})
	s.add("keyed", 300, sim.Plan{Every: night, Spread: spread})
	s.settle(2*night+time.Minute, 2*night)
	s.tally("keyed", done(600))
	s.ran("keyed", 300, night, spread, 0, 1200*ms)
	s.ran("keyed", 300, 2*night, spread, 0, 1200*ms)
	for i := range 300 {
		key := fmt.Sprintf("k%03d", i)
		one, two := s.starts[s.id("keyed", key, night)][0]-night, s.starts[s.id("keyed", key, 2*night)][0]-2*night
		if one-two > 200*ms || two-one > 200*ms {
			t.Errorf("%s starts %v after one due and %v after the next", key, one, two)
		}
	}
	streams := len(s.lines("stream opens"))
	if most := 2 * 3 * (50 + 2); streams > most {
		t.Errorf("%d streams of keys, want at most %d: one a second, due and replica", streams, most)
	}
	if s.Stats.Hedged > 0 || len(s.Stats.Refused) > 0 {
		t.Errorf("in calm %d claims are hedged, and refused: %v", s.Stats.Hedged, s.Stats.Refused)
	}
	t.Logf("%d streams for 2 dues of 3 replicas; the latest start is %v late", streams, s.Stats.Late["keyed"])
}

// While starts are spread, processes are killed, others leave and come back, and the views of who is there differ:
// nothing is lost, done twice or started before its time, whoever owns it when.
func TestSpreadThroughChanges(t *testing.T) {
	t.Parallel()
	timing := sim.Normal()
	timing.Partitions = 64
	for seed := range uint64(4) {
		s := newSpread(t, sim.Config{Seed: seed + 1, Replicas: 4, Timing: timing})
		s.add("keyed", 120, sim.Plan{Every: time.Minute, Spread: 40 * time.Second})
		s.add("plain", 0, sim.Plan{Every: time.Minute, Spread: 40 * time.Second})
		s.add("often", 0, sim.Plan{Every: 10 * time.Second, Spread: 25 * time.Second})
		for due := time.Minute; due <= 2*time.Minute; due += time.Minute {
			n := int(seed) + int(due/time.Minute)
			r := func(i int) *sim.Replica { return s.Replica((n + i) % 4) }
			s.At(due+time.Duration(3+seed)*time.Second, func() { r(0).Kill(); r(0).Restart(6 * time.Second) })
			s.At(due+12*time.Second, func() { r(1).Drain(func() { r(1).Restart(4 * time.Second) }) })
			s.At(due+20*time.Second, func() { r(2).Omit(r(3).Name); r(3).Stale(8 * time.Second) })
			s.At(due+25*time.Second, func() { s.Owner("plain").Kill(); s.Owner("plain").Restart(2 * time.Second) })
			s.At(due+28*time.Second, func() { r(2).Omit() })
		}
		s.settle(175*time.Second, 2*time.Minute)
		s.tally("keyed", done(240))
		s.tally("plain", done(2))
		if got := s.Oracle.Tally("often"); got[oracle.Missed]+got[oracle.Failed] > 0 || got[oracle.Done] < 14 {
			t.Errorf("seed %d: often ended as %v", seed+1, got)
		}
	}
}

// A successor waits its grace from the start, and not from the due.
func TestSpreadIsNotHedgedEarly(t *testing.T) {
	t.Parallel()
	const spread, due = 40 * time.Second, time.Minute
	s := newSpread(t, sim.Config{})
	s.add("keyed", 100, sim.Plan{At: []time.Duration{due}, Spread: spread})
	s.add("plain", 0, sim.Plan{At: []time.Duration{due}, Spread: spread})
	// It is there for all, and does not have the jobs.
	lacks := s.Owner("plain")
	s.At(due-10*time.Second, func() { lacks.Lacks = []string{"keyed", "plain"}; lacks.Change(0) })
	s.settle(2*time.Minute, due)
	s.ran("plain", 0, due, spread, time.Second, 3200*ms)
	s.ran("keyed", 100, due, spread, 0, 3200*ms)
	for i := range 100 {
		key := fmt.Sprintf("k%03d", i)
		if at := s.starts[s.id("keyed", key, due)][0] - due - s.delay(key, spread); s.Owner(key) == lacks && at < time.Second {
			t.Errorf("%s is hedged %v after its start, want a grace at least", key, at)
		}
	}
	s.demand(10, "hedged", "keyed/")
	s.demand(1, "hedged", "plain/")
}

// A job of every minute without keys starts in the same second of each; more than that, its missed and overlap
// policies judge the start: a run that is over by then hinders none.
func TestSpreadWithoutKeys(t *testing.T) {
	t.Parallel()
	const spread = 50 * time.Second
	s := newSpread(t, sim.Config{})
	s.takes = func(jobs.Occurrence) time.Duration { return 55 * time.Second }
	for i := range 6 {
		s.add(fmt.Sprint("job-", i), 0, sim.Plan{Every: time.Minute, Spread: spread})
	}
	s.settle(7*time.Minute, 5*time.Minute)
	for i := range 6 {
		for due := time.Minute; due <= 5*time.Minute; due += time.Minute {
			s.ran(fmt.Sprint("job-", i), 0, due, spread, 0, 200*ms)
		}
	}
}

// Where Spread is longer than the interval, several dues of a job are open at once: each key has its runs in the order
// of their dues, none before its time, and none is skipped for a run that will be over when it starts.
func TestSpreadLongerThanInterval(t *testing.T) {
	t.Parallel()
	const spread, interval = 35 * time.Second, 10 * time.Second
	timing := sim.Normal()
	timing.Concurrency = 100
	s := newSpread(t, sim.Config{Timing: timing})
	s.takes = func(jobs.Occurrence) time.Duration { return 8 * time.Second }
	s.add("keyed", 60, sim.Plan{Every: interval, Spread: spread})
	s.settle(150*time.Second, 90*time.Second)
	for due := interval; due <= 90*time.Second; due += interval {
		s.ran("keyed", 60, due, spread, 0, 1200*ms)
	}
	if s.Stats.Hedged > 0 {
		t.Errorf("%d claims are hedged in calm", s.Stats.Hedged)
	}
}

// Where a key's run is longer than the interval, the next due skips it, as ever; an older one is never skipped for a younger.
func TestSpreadSkipsAtStart(t *testing.T) {
	t.Parallel()
	const spread, interval = 35 * time.Second, 10 * time.Second
	timing := sim.Normal()
	timing.Concurrency = 100
	s := newSpread(t, sim.Config{Timing: timing})
	s.takes = func(jobs.Occurrence) time.Duration { return 15 * time.Second }
	s.add("keyed", 30, sim.Plan{Every: interval, Spread: spread})
	s.settle(150*time.Second, 80*time.Second)
	for i := range 30 {
		for due := interval; due <= 80*time.Second; due += interval {
			r, _ := s.Oracle.Row(s.id("keyed", fmt.Sprintf("k%03d", i), due))
			want := oracle.Done
			if due/interval%2 == 0 { // the run before takes until the middle of this one's
				want = oracle.Skipped
			}
			if r.Outcome != want {
				t.Errorf("%v is %v, want %v", r.ID, r.Outcome, want)
			}
		}
	}
}

// Dues whose fleet was down while they were to start run after that: what had not started in its time, what had at once.
// None of them is late while some of it has not started.
func TestSpreadAfterOutage(t *testing.T) {
	t.Parallel()
	const spread, due = 100 * time.Second, time.Minute
	s := newSpread(t, sim.Config{})
	s.add("keyed", 100, sim.Plan{At: []time.Duration{due, due + 5*time.Second}, Spread: spread})
	s.add("plain", 0, sim.Plan{At: []time.Duration{due}, Spread: spread})
	s.down(due-2*time.Second, due+70*time.Second) // longer than MissedAfter
	s.settle(due+spread+30*time.Second, due+5*time.Second)
	s.tally("keyed", done(200))
	s.tally("plain", done(1))
	for i := range 100 {
		key := fmt.Sprintf("k%03d", i)
		start := due + s.delay(key, spread)
		if at := s.starts[s.id("keyed", key, due)]; start > due+75*time.Second && (at[0] < start || at[0] > start+1200*ms) {
			t.Errorf("%s, to start at %v, ran at %v", key, start, at)
		}
	}
}

// While a deploy changes Spread, replicas differ in when they start what is due. Nothing is lost or done twice.
func TestSpreadDeployed(t *testing.T) {
	t.Parallel()
	timing := sim.Normal()
	timing.Partitions = 64
	for _, way := range [][2]time.Duration{{0, 25 * time.Second}, {25 * time.Second, 0}, {25 * time.Second, 8 * time.Second}} {
		s := newSpread(t, sim.Config{Timing: timing})
		for name, keys := range map[string]int{"keyed": 40, "plain": 0} {
			s.add(name, keys, sim.Plan{Every: 10 * time.Second, Spread: way[0]}, sim.Plan{Every: 10 * time.Second, Spread: way[1]})
		}
		for i := range 3 {
			s.At(time.Minute+time.Duration(7*i)*time.Second, func() {
				r := s.Replica(i)
				r.Version = 1
				r.Drain(func() { r.Restart(2 * time.Second) })
			})
		}
		s.settle(150*time.Second, 2*time.Minute)
		for name, keys := range map[string]int{"keyed": 40, "plain": 1} {
			got := s.Oracle.Tally(name)
			if got[oracle.Missed] > 0 || got[oracle.Failed] > 0 || got[oracle.Done]+got[oracle.Skipped] < 12*keys {
				t.Errorf("from %v to %v: %s ended as %v", way[0], way[1], name, got)
			}
		}
	}
}

// An edit of the schedule brings forward what was due by the old one and had not started: nobody would know of it later.
func TestSpreadAndNewSchedule(t *testing.T) {
	t.Parallel()
	const spread, due = 50 * time.Second, time.Minute
	s := newSpread(t, sim.Config{})
	s.add("late", 0, sim.Plan{At: []time.Duration{due}, Spread: spread}, sim.Plan{At: []time.Duration{due + 5*time.Minute}, Spread: spread})
	if s.delay("late", spread) < 20*time.Second {
		t.Fatal("the name's partition starts too soon for this scene")
	}
	for i := range 3 {
		s.At(due+10*time.Second, func() { s.Replica(i).Change(1) })
	}
	s.settle(due+7*time.Minute, due+5*time.Minute)
	s.ran("late", 0, due+5*time.Minute, spread, 0, 200*ms)
	if at := s.starts[s.id("late", "late", due)]; len(at) != 1 || at[0] < due+10*time.Second || at[0] > due+15*time.Second {
		t.Errorf("the due of the old schedule ran at %v, want soon after the edit, %v", at, due+10*time.Second)
	}
}

// Owners whose workers are all taken while their keys go on starting keep them: they get on, and nobody hedges.
func TestSpreadBusyOwner(t *testing.T) {
	t.Parallel()
	const spread, due = 20 * time.Second, 30 * time.Second
	timing := sim.Normal()
	timing.Concurrency = 4
	s := newSpread(t, sim.Config{Timing: timing})
	s.takes = func(jobs.Occurrence) time.Duration { return 2500 * ms }
	s.add("keyed", 200, sim.Plan{At: []time.Duration{due}, Spread: spread})
	s.settle(2*time.Minute, due)
	s.ran("keyed", 200, due, spread, 0, time.Minute)
	if s.Stats.Hedged > 0 {
		t.Errorf("%d claims are hedged", s.Stats.Hedged)
	}
}

// A source that fails now and then, over a whole Spread, is asked again soon each time: what failed long ago counts no more.
func TestSpreadSourceFailsNowAndThen(t *testing.T) {
	t.Parallel()
	const spread, due = 100 * time.Second, 10 * time.Second
	s := newSpread(t, sim.Config{})
	pulls := 0
	source := sim.NewSource(100)
	source.Flow = func(*sim.Replica, time.Duration, int) (sim.Flow, bool) {
		if pulls++; pulls%6 == 0 {
			return sim.Flow{Takes: ms, Err: errTest}, true
		}
		return sim.Flow{Takes: ms}, true
	}
	s.Add(sim.Job{Name: "keyed", Plans: []sim.Plan{{At: []time.Duration{due}, Spread: spread}}, Source: source})
	s.settle(due+spread+10*time.Second, due)
	s.tally("keyed", done(100))
	s.late("keyed", 6*time.Second)
}

// A deploy brings a Spread to a job whose entry is offered at its due still: a successor waits its grace from the start
// all the same.
func TestSpreadDeployedIsNotHedgedEarly(t *testing.T) {
	t.Parallel()
	const spread, due = 50 * time.Second, time.Minute
	s := newSpread(t, sim.Config{})
	var names []string
	for i := range 6 {
		names = append(names, fmt.Sprint("job-", i))
		s.add(names[i], 0, sim.Plan{At: []time.Duration{due}}, sim.Plan{At: []time.Duration{due}, Spread: spread})
	}
	s.At(due-20*time.Second, func() {
		for i := range 3 {
			s.Replica(i).Change(1)
		}
	})
	s.At(due-10*time.Second, func() { s.Replica(0).Lacks = names; s.Replica(0).Change(1) })
	s.settle(due+spread+20*time.Second, due)
	for _, name := range names {
		if s.Owner(name) == s.Replica(0) {
			s.ran(name, 0, due, spread, time.Second, 3200*ms)
		}
	}
	s.demand(1, "hedged", "job-")
}
