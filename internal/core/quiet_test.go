package core

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

func local1(name string, s jobs.Schedule) jobs.Job {
	return jobs.Job{Name: name, Schedule: s, Run: none, Guarantee: jobs.Efficiency}
}

func refusals(acts []Action, cause string) (n int) {
	for _, a := range acts {
		if r, ok := a.(Refused); ok && r.Cause == cause {
			n++
		}
	}
	return n
}

// What an efficiency job does while members are missing, by its posture: its dues are refused, once each, or run; when they are back the
// next due runs. Correctness jobs do not care.
func TestPosture(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		posture          jobs.Posture
		missing, inSight int
		runs             bool
	}{
		{jobs.PostureRun, 4, 1, true},
		{jobs.PostureHold, 0, 1, true},
		{jobs.PostureHold, 1, 9, false},
		{jobs.PostureMajority, 0, 1, true},
		{jobs.PostureMajority, 1, 2, true},
		{jobs.PostureMajority, 2, 2, false},
		{jobs.PostureMajority, 3, 2, false},
		{jobs.PostureMajority, 1, 1, false},
	} {
		for _, keys := range []int{0, 3} {
			w := newCrowd(t, eight(), keys, "a")
			j := local1("local", ats(5, 10, 15))
			if keys > 0 {
				j.Keys = jobs.KeyList("k00")
			}
			j.Posture = c.posture
			w.begin(j, other1("store", ats(5)))
			w.until(ms(4000))
			w.tell(0, MissingChanged{Missing: c.missing, InSight: c.inSight})
			w.until(ms(14_000))
			each := max(keys, 1)
			want, refused := 0, 2
			if c.runs {
				want, refused = each, 0 // the second due finds its keys at work
			}
			if n := w.started["local"]; n != want {
				t.Errorf("%+v, %d keys: %d started, want %d", c, keys, n, want)
			}
			if n := refusals(w.acts, causePosture); n != refused {
				t.Errorf("%+v, %d keys: %d refused, want %d", c, keys, n, refused)
			}
			if w.started["store"] != 1 {
				t.Errorf("%+v: the correctness job ran %d times, want 1", c, w.started["store"])
			}
			w.end("local", each)
			w.tell(0, MissingChanged{InSight: c.missing + c.inSight})
			w.until(ms(16_000))
			if n := w.started["local"]; n != want+each {
				t.Errorf("%+v, %d keys: %d started in all when nobody is missing any more, want %d", c, keys, n, want+each)
			}
		}
	}
}

// What waits for a worker when members go missing does not start, nor what waits for its next attempt.
func TestPostureHoldsWhatWaits(t *testing.T) {
	t.Parallel()
	c := timing()
	c.Concurrency = 1
	w := newCrowd(t, c, 0, "a")
	first, second := local1("first", ats(5)), local1("second", ats(5))
	first.Posture, second.Posture = jobs.PostureHold, jobs.PostureHold
	first.Retry = jobs.Retry{Attempts: 3, First: time.Second, Max: time.Second}
	w.begin(first, second)
	w.until(ms(5500))
	w.tell(0, MissingChanged{Missing: 1, InSight: 2})
	for h := range w.running["first"] {
		w.tell(0, Return(h>>8, errDown))
	}
	w.until(ms(9000))
	if w.started["first"] != 1 || w.started["second"] != 0 || refusals(w.acts, causePosture) != 2 {
		t.Errorf("started: %v, refused: %d; want the first alone, once, and two refused", w.started, refusals(w.acts, causePosture))
	}
}

// On every replica that serves each due of such a job runs, all its keys, whoever owns them; one that drains runs none.
func TestEveryReplica(t *testing.T) {
	t.Parallel()
	for _, store := range []bool{true, false} {
		for _, keys := range []int{0, 5} {
			c := eight()
			c.Store = store
			w := newCrowd(t, c, keys, "a", "b", "c")
			j := local1("cache", ats(5, 10))
			j.Placement = jobs.EveryReplica
			if keys > 0 {
				j.Keys, j.Spread = jobs.KeyList("k00"), time.Second
			}
			w.begin(j)
			w.until(ms(8000))
			each := max(keys, 1)
			by := make([]int, 3)
			for _, i := range w.running["cache"] {
				by[i]++
			}
			if !slices.Equal(by, []int{each, each, each}) {
				t.Errorf("store: %t, %d keys: the replicas ran %v", store, keys, by)
			}
			w.end("cache", 3*each)
			w.tell(1, Stop{Why: "a test"})
			w.until(ms(12_000))
			if n := w.started["cache"]; n != 5*each {
				t.Errorf("store: %t, %d keys: %d started, want %d: one replica drains", store, keys, n, 5*each)
			}
		}
	}
}

// Without an owner's place in the ring too, and not before the replica serves.
func TestEveryReplicaNeedsNoRing(t *testing.T) {
	t.Parallel()
	w := newCrowd(t, eight(), 0, "a")
	j := local1("cache", ats(5, 10))
	j.Placement = jobs.EveryReplica
	down := true
	w.call = func(int, string) error {
		if down {
			return errDown
		}
		return nil
	}
	w.tell(0, JobsChanged{Jobs: []jobs.Job{j.WithDefaults()}})
	w.until(ms(7000))
	if n := w.started["cache"]; n != 0 {
		t.Errorf("%d started before the replica serves", n)
	}
	down = false
	w.until(ms(11_000))
	if n := w.started["cache"]; n != 1 {
		t.Errorf("%d started, want 1", n)
	}
}

func (w *crowd) submit(t *testing.T, c idempotency.Command) {
	t.Helper()
	c.Actor = "test"
	if _, err := w.store.(idempotency.Control).Submit(t.Context(), "n", c); err != nil {
		t.Fatal(err)
	}
}

func (w *crowd) entry(t *testing.T, job string) idempotency.Entry {
	t.Helper()
	o, err := w.store.(idempotency.History).Overview(t.Context(), "n")
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(o.Entries, func(e idempotency.Entry) bool { return e.Job == job })
	if i < 0 {
		t.Fatalf("the store has no entry of job %s", job)
	}
	return o.Entries[i]
}

// An efficiency job is announced to the store, which decides none of its dues; another definition of it is put in force.
func TestEfficiencyEntry(t *testing.T) {
	t.Parallel()
	w := newCrowd(t, eight(), 0, "a")
	w.begin(local1("local", jobs.Every(10*time.Second)))
	w.turnOver(25_000, 100, "local")
	e := w.entry(t, "local")
	if !e.Opened.IsZero() || !e.Next.IsZero() || e.Schedule == "" {
		t.Errorf("the entry is %+v; want neither Opened nor Next", e)
	}
	if n := w.started["local"]; n != 2 || w.calls["Decide"] != 0 || len(w.rows()) != 0 {
		t.Errorf("%d started, %d decisions, rows: %v; want 2 and none", n, w.calls["Decide"], w.rows())
	}
	w.tell(0, JobsChanged{Jobs: []jobs.Job{local1("local", jobs.Every(20*time.Second)).WithDefaults()}})
	w.turnOver(60_000, 100, "local")
	if e := w.entry(t, "local"); e.Schedule != jobs.Every(20*time.Second).String() || e.Hash != e.InForce || !e.Opened.IsZero() {
		t.Errorf("the entry after an edit: %+v", e)
	}
	if w.calls["Decide"] != 1 {
		t.Errorf("%d decisions, want the one that puts the new definition in force", w.calls["Decide"])
	}
	// As a correctness job it begins now.
	w.tell(0, JobsChanged{Jobs: []jobs.Job{other1("local", jobs.Every(20*time.Second)).WithDefaults()}})
	before := w.now
	w.turnOver(30_000, 100, "local")
	if e := w.entry(t, "local"); e.Opened.Before(epoch.Add(before)) {
		t.Errorf("it is opened up to %v, and became a correctness job at %v", e.Opened, epoch.Add(before))
	}
	rows := w.rows()
	if len(rows) == 0 || rows[0].ID.Due.Before(epoch.Add(before)) {
		t.Errorf("rows of the correctness job: %v, want some, of dues from %v on", rows, epoch.Add(before))
	}
}

// A pause makes the dues of an efficiency job be refused, within a sweep or two; also while the store is away; until it is resumed.
func TestEfficiencyPaused(t *testing.T) {
	t.Parallel()
	for _, keys := range []int{0, 3} {
		w := newCrowd(t, eight(), keys, "a")
		j := local1("local", jobs.Every(10*time.Second))
		if keys > 0 {
			j.Keys = jobs.KeyList("k00")
		}
		w.begin(j)
		w.turnOver(15_000, 100, "local")
		each := max(keys, 1)
		if n := w.started["local"]; n != each {
			t.Fatalf("%d started, want %d", n, each)
		}
		w.submit(t, idempotency.Command{Request: "p", Kind: idempotency.Pause, ID: idempotency.ID{Job: "local"}})
		w.turnOver(10_000, 100, "local")
		down := true
		w.call = func(int, string) error {
			if down {
				return errDown
			}
			return nil
		}
		w.turnOver(30_000, 100, "local")
		if n := w.started["local"]; n != each || refusals(w.acts, causePaused) < 3 {
			t.Errorf("%d keys: %d started in all, %d refused, while paused", keys, n, refusals(w.acts, causePaused))
		}
		down = false
		w.turnOver(12_000, 100, "local")
		w.submit(t, idempotency.Command{Request: "r", Kind: idempotency.Resume, ID: idempotency.ID{Job: "local"}})
		w.turnOver(12_000, 100, "local")
		if n := w.started["local"]; n < 2*each {
			t.Errorf("%d keys: %d started after it was resumed, want more than before", keys, n)
		}
	}
}

// A run that a person asked for of an efficiency job is claimed and recorded as any; local runs of its key do not run beside it.
func TestEfficiencyTriggered(t *testing.T) {
	t.Parallel()
	w := newCrowd(t, eight(), 0, "a")
	w.begin(local1("local", ats(5, 15)))
	w.until(ms(6000)) // a local run is at work
	w.submit(t, idempotency.Command{Request: "t", Kind: idempotency.Trigger, ID: idempotency.ID{Job: "local", Key: "local"}})
	w.until(ms(10_000))
	if n := w.started["local"]; n != 1 {
		t.Fatalf("%d started; the one that was asked for has to wait for the local one", n)
	}
	w.end("local", 1)
	w.until(ms(16_000))
	if n := w.started["local"]; n != 2 || refusals(w.acts, "busy") != 1 {
		t.Fatalf("%d started, %d refused; want the one that was asked for, and the due meanwhile refused", n, refusals(w.acts, "busy"))
	}
	w.end("local", 1)
	w.until(ms(18_000))
	if n := w.done("local"); n != 1 || len(w.rows()) != 1 {
		t.Errorf("rows: %v, want the one that was asked for, done", w.rows())
	}
}

// All keys of an efficiency job are asked for: they are the store's runs, each once, whoever owns them.
func TestEfficiencyTriggeredKeys(t *testing.T) {
	t.Parallel()
	w := newCrowd(t, eight(), 9, "a", "b")
	j := local1("local", ats(5))
	j.Keys = jobs.KeyList("k00")
	w.begin(j)
	w.turnOver(10_000, 100, "local")
	w.submit(t, idempotency.Command{Request: "t", Kind: idempotency.Trigger, ID: idempotency.ID{Job: "local"}})
	w.turnOver(10_000, 100, "local")
	if n := w.done("local"); n != 9 || w.started["local"] != 18 {
		t.Errorf("%d runs are done in the store, %d started; want 9 and 18", n, w.started["local"])
	}
	open := 0
	for d, err := range w.store.(idempotency.History).Dues(context.Background(), "n", "local", epoch, epoch.Add(time.Hour)) {
		if err != nil {
			t.Fatal(err)
		}
		if d.Closed.IsZero() {
			open++
		}
	}
	if open > 0 {
		t.Error("the due that was asked for is still open")
	}
}

// The owners of a limited efficiency job share it too, with no store to ask.
func TestClusterLimitOfLocalJobs(t *testing.T) {
	t.Parallel()
	c := eight()
	c.Store = false
	w := newCrowd(t, c, 12, "a", "b", "c")
	j := local1("local", ats(5))
	j.Keys, j.Limit.Cluster = jobs.KeyList("k00"), 2
	w.begin(j)
	w.turnOver(30_000, 300, "local")
	if w.most["local"] != 2 || w.started["local"] != 12 {
		t.Errorf("%d ran at once, %d of 12 in all; want 2 at once", w.most["local"], w.started["local"])
	}
}
