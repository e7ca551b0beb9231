package core

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

func eight() Config {
	c := timing()
	c.Concurrency = 8
	return c
}

func other1(name string, s jobs.Schedule) jobs.Job {
	return jobs.Job{Name: name, Schedule: s, Run: none}
}

// How many runs of a job are at work on a replica at once, by Limit.PerReplica, for the store's and for local ones.
func TestLimitPerReplica(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ concurrency, limit, others, want int }{
		{8, 0, 0, 8}, // nobody to leave a worker to
		{8, 0, 1, 7}, // one in eight
		{32, 0, 1, 28},
		{2, 0, 1, 1},
		{1, 0, 1, 1},
		{8, -1, 1, 8},
		{8, 3, 1, 3},
		{8, 20, 0, 8},
	} {
		for _, g := range []jobs.Guarantee{jobs.Correctness, jobs.Efficiency} {
			conf := timing()
			conf.Concurrency = c.concurrency
			w := newCrowd(t, conf, 40, "a")
			j := keyed(ats(5))
			j.Guarantee, j.Limit.PerReplica = g, c.limit
			all := []jobs.Job{j}
			for i := range c.others {
				all = append(all, other1(fmt.Sprint("other-", i), jobs.Every(time.Hour)))
			}
			w.begin(all...)
			w.until(ms(8000))
			if n := w.most["keyed"]; n != c.want {
				t.Errorf("%+v, guarantee %d: %d run at once", c, g, n)
			}
			w.end("keyed", 1)
			w.until(ms(8200))
			if n := w.started["keyed"]; n != c.want+1 {
				t.Errorf("%+v, guarantee %d: %d started when one had ended, want %d", c, g, n, c.want+1)
			}
		}
	}
}

// A handler that ignores that its context has ended keeps its place until it returns, though its run is recorded.
func TestStuckHandlerKeepsItsPlace(t *testing.T) {
	t.Parallel()
	w := newCrowd(t, eight(), 10, "a")
	j := keyed(ats(5))
	j.Limit.PerReplica, j.Timeout = 2, 3*time.Second
	w.begin(j)
	w.until(time.Minute)
	if n := w.started["keyed"]; n != 2 {
		t.Errorf("%d handlers were started, want 2: both are stuck", n)
	}
	w.end("keyed", 2)
	w.until(time.Minute + time.Second)
	if n := w.started["keyed"]; n != 4 {
		t.Errorf("%d handlers were started after both had returned, want 4", n)
	}
}

// What waits of a job at its limit goes on as its runs end, and not once a sweep; and does not keep out what waits of others.
func TestWaitingBehindLimit(t *testing.T) {
	t.Parallel()
	w := newCrowd(t, eight(), 0, "a")
	ctx := t.Context()
	j := keyed(jobs.Every(time.Hour))
	j.Limit.PerReplica = 1
	w.begin(j, other1("later", jobs.Every(time.Hour)))
	w.until(time.Second)
	submit := func(job, key, request string) {
		t.Helper()
		c := idempotency.Command{Request: request, Kind: idempotency.Trigger, Actor: "test", ID: idempotency.ID{Job: job, Key: key}}
		if _, err := w.store.(idempotency.Control).Submit(ctx, "n", c); err != nil {
			t.Fatal(err)
		}
	}
	const n = 200
	for i := range n {
		submit("keyed", fmt.Sprintf("k%03d", i), fmt.Sprint("r", i))
	}
	w.until(ms(4000))
	submit("later", "later", "last")
	w.until(ms(6100))
	if w.started["later"] != 1 {
		t.Error("a run waits for two sweeps behind those of a job that is at its limit")
	}
	w.turnOver(22_000, 100, "keyed") // 2 s of which are spare
	if got := w.done("keyed"); got != n || w.most["keyed"] != 1 {
		t.Errorf("%d of %d are done after as many times 150 ms, %d ran at once", got, n, w.most["keyed"])
	}
}

// Others leave the keys of a job at its limit alone while its runs turn over; but where its handlers hang, and
// those of other jobs do not, they take what it has not begun.
func TestHedgedBehindLimit(t *testing.T) {
	t.Parallel()
	for _, hangs := range []bool{false, true} {
		w := newCrowd(t, eight(), 40, "a", "b")
		j := keyed(ats(5))
		j.Limit.PerReplica, j.Timeout = 1, 4*time.Second
		w.begin(j, other1("busy", jobs.Every(time.Second)))
		for w.now < ms(30_000) {
			w.until(w.now + ms(500))
			w.end("busy", 9)
			for h, i := range w.running["keyed"] {
				if !hangs || i == 1 {
					delete(w.running["keyed"], h)
					w.tell(i, Ended{Handle: h >> 8})
				}
			}
		}
		hedged := 0
		for _, a := range w.acts {
			if _, ok := a.(Hedged); ok {
				hedged++
			}
		}
		if n := len(w.rows()) - int(w.now/time.Second); n < 40 {
			t.Errorf("handlers hang: %t; %d of 40 keys began", hangs, n)
		}
		if hangs != (hedged > 0) {
			t.Errorf("handlers hang: %t; %d keys were hedged", hangs, hedged)
		}
	}
}

// Starts are spaced by Limit.PerSecond, in bursts of a second's worth; and the core is not called for nothing meanwhile.
func TestLimitPerSecond(t *testing.T) {
	t.Parallel()
	for _, g := range []jobs.Guarantee{jobs.Correctness, jobs.Efficiency} {
		for _, rate := range []float64{5, 2.5, 0.5} {
			w := newCrowd(t, eight(), 30, "a")
			var starts []time.Duration
			steps := 0
			source := list(30)
			w.act = func(i int, a Action) []Event {
				if _, ok := a.(Start); ok {
					starts = append(starts, w.now)
				}
				return source(i, a)
			}
			j := keyed(ats(5))
			j.Guarantee, j.Limit.PerSecond = g, rate
			w.begin(j)
			w.until(ms(5000))
			for end := 70 * time.Second; w.now < end; steps++ {
				w.now = max(w.cores[0].Wake(), w.now+1)
				w.tell(0)
			}
			burst := max(1, int(rate+0.9))
			if len(starts) < 30 {
				t.Fatalf("guarantee %d, %v a second: %d of 30 started", g, rate, len(starts))
			}
			for i := range starts[:len(starts)-burst] {
				if gap := (starts[i+burst] - starts[i]).Seconds(); gap < 1/rate-0.001 {
					t.Fatalf("guarantee %d, %v a second: start %d came %.3f s after start %d", g, rate, i+burst, gap, i)
				}
			}
			for i := burst + 1; i < 30; i++ {
				if gap := (starts[i] - starts[i-1]).Seconds(); gap > 1/rate+0.001 {
					t.Fatalf("guarantee %d, %v a second: start %d came %.3f s after the one before", g, rate, i, gap)
				}
			}
			took := (starts[29] - starts[0]).Seconds()
			if most := float64(30-burst)/rate + 1.1; took > most {
				t.Errorf("guarantee %d, %v a second: 30 starts took %.1f s, want at most %.1f", g, rate, took, most)
			}
			if steps > 2000 {
				t.Errorf("guarantee %d, %v a second: %d steps in 65 s", g, rate, steps)
			}
		}
	}
}

// A job removed and added again finds what still runs of it.
func TestLimitOutlivesRemoval(t *testing.T) {
	t.Parallel()
	w := newCrowd(t, eight(), 10, "a")
	j := keyed(jobs.Every(10 * time.Second))
	j.Limit.PerReplica = 2
	w.begin(j)
	w.until(ms(11_000))
	w.tell(0, JobsChanged{})
	w.until(ms(13_000))
	w.tell(0, JobsChanged{Jobs: []jobs.Job{j.WithDefaults()}})
	w.until(ms(31_000))
	if n := w.most["keyed"]; n != 2 {
		t.Errorf("%d ran at once, want 2", n)
	}
	w.tell(0, JobsChanged{})
	w.end("keyed", 2)
	w.tell(0, JobsChanged{})
	if n := len(w.cores[0].loads); n > 0 {
		t.Errorf("the loads of %d removed jobs are kept", n)
	}
}

// Claims that are not answered yet count.
func TestLimitCountsClaims(t *testing.T) {
	t.Parallel()
	w := newCrowd(t, eight(), 10, "a")
	j := keyed(ats(5))
	j.Limit.PerReplica = 2
	w.mute = func(_ int, name string) bool { return name == "Claim" }
	w.begin(j)
	w.until(ms(6500))
	if n := w.cores[0].jobs["keyed"].load.reserved; n != 2 {
		t.Errorf("%d claims are under way, want 2", n)
	}
	w.cores[0].lose("a test")
	if n := w.cores[0].jobs["keyed"].load.reserved; n != 0 {
		t.Errorf("%d claims of a lost session count", n)
	}
}

// order of the jobs whose handlers started.
func startsOf(acts []Action) (names []string) {
	for _, a := range acts {
		if s, ok := a.(Start); ok {
			names = append(names, s.Job.Name)
		}
	}
	return names
}

// Of runs that wait for one worker those of the higher priority start first: openings, keys, what waits in the
// store, and local runs among each other.
func TestPriority(t *testing.T) {
	t.Parallel()
	c := timing()
	c.Concurrency = 1
	for _, g := range []jobs.Guarantee{jobs.Correctness, jobs.Efficiency} {
		w := newCrowd(t, c, 2, "a")
		jam := other1("jam", ats(2, 4))
		var all []jobs.Job
		for _, p := range []int{1, 3, 2, -1} {
			j := other1(fmt.Sprint("plain", p), ats(5))
			j.Guarantee, j.Priority = g, p
			k := keyed(ats(5))
			k.Name, k.Guarantee, k.Priority = fmt.Sprint("keyed", p), g, p
			all = append(all, j, k)
		}
		w.begin(append(all, jam)...)
		w.until(ms(3000))
		w.end("jam", 1) // so the workers turn over, and passes wait for them here
		w.until(ms(8000))
		w.end("jam", 1)
		for range 20 {
			w.until(w.now + ms(500))
			for job := range w.running {
				w.end(job, 9)
			}
		}
		names := startsOf(w.acts)[2:]
		if len(names) != 4+2*4 {
			t.Fatalf("guarantee %d: %d started, want 12: %v", g, len(names), names)
		}
		levels := make([]string, len(names))
		for i, n := range names {
			levels[i] = n[5:]
		}
		if want := []string{"3", "3", "3", "2", "2", "2", "1", "1", "1", "-1", "-1", "-1"}; !slices.Equal(levels, want) {
			t.Errorf("guarantee %d: started in the order %v", g, names)
		}
	}
}

// A due that comes takes no worker that has just become free from a run of a higher priority that waits.
func TestOpeningYieldsToPriority(t *testing.T) {
	t.Parallel()
	c := timing()
	c.Concurrency = 1
	w := newCrowd(t, c, 3, "a")
	high := keyed(ats(5))
	high.Priority = 1
	w.begin(high, other1("low", ats(8)))
	w.until(ms(7999))
	for h := range w.running["keyed"] { // its worker is free as the low one comes due
		delete(w.running["keyed"], h)
		for _, a := range slices.Clone(w.cores[0].Step(Instant{Mono: w.now, Wall: epoch.Add(w.now)}, Ended{Handle: h >> 8})) {
			if call, ok := a.(*Call); ok && call.Name == "Finish" {
				w.now = ms(8000)
				w.tell(0, call.Do(t.Context(), w.store))
			}
		}
	}
	w.until(ms(8100))
	if got := startsOf(w.acts); !slices.Equal(got, []string{"keyed", "keyed"}) {
		t.Errorf("started: %v, want the second key of the higher priority", got)
	}
}

// A job that has another priority after a change of the jobs is taken by that one.
func TestPriorityChanges(t *testing.T) {
	t.Parallel()
	c := timing()
	c.Concurrency = 1
	w := newCrowd(t, c, 0, "a")
	list := []jobs.Job{other1("jam", ats(4)), other1("x", ats(5)), other1("y", ats(5))}
	for i := range list {
		list[i].Guarantee = jobs.Efficiency
		list[i].Priority = []int{9, 2, 1}[i]
	}
	w.begin(list...)
	w.until(ms(6000))
	list = slices.Clone(list)
	list[1].Priority = 0
	w.tell(0, JobsChanged{Jobs: list})
	w.end("jam", 1)
	w.until(ms(6500))
	if got := startsOf(w.acts); !slices.Equal(got, []string{"jam", "y"}) {
		t.Errorf("started: %v", got)
	}
}
