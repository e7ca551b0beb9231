package core

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/ring"
)

// tower is cores around one memory store, in virtual time: answers come at once,
// handlers and streams only as the test says.
type tower struct {
	t     *testing.T
	now   time.Duration
	skew  time.Duration // of the memory store's clock
	wrong time.Duration // of the hosts' wall clocks
	store idempotency.Store
	cores []*Core

	// call decides what becomes of a call; nil error: it is made.
	call func(core int, name string) error
	mute func(core int, name string) bool // no answer, ever
	act  func(core int, a Action) []Event
	keep func(core int, c *Call) bool // the test makes the call, or answers it, when it likes

	calls  map[string]int
	failed map[string]error
	acts   []Action
}

var errDown = errors.New("store: connection refused")

func timing() Config {
	return Config{
		Namespace: "n", Partitions: 16, Concurrency: 4, Store: true,
		Lease: 10 * time.Second, Grace: time.Second, Sweep: time.Second, Drain: 5 * time.Second,
		MissedAfter: time.Minute, Horizon: time.Hour, Retention: 2 * time.Hour, Tolerance: 100 * time.Millisecond,
	}
}

func newTower(t *testing.T, c Config, names ...string) *tower {
	w := &tower{t: t, calls: map[string]int{}, failed: map[string]error{}}
	w.store = idempotency.NewMemory(func() time.Time { return epoch.Add(w.now + w.skew) })
	for i, n := range names {
		c.Replica, c.Boot = n, n
		c.Rand = rand.New(rand.NewPCG(1, uint64(i)))
		w.cores = append(w.cores, New(c))
	}
	return w
}

func (w *tower) tell(i int, events ...Event) {
	for first := true; first || len(events) > 0; first = false {
		now := events
		events = nil
		at := Instant{Mono: w.now, Wall: epoch.Add(w.now + w.wrong)}
		for _, a := range slices.Clone(w.cores[i].Step(at, now...)) { // what an action leads to may be told before the next one
			w.acts = append(w.acts, a)
			if call, ok := a.(*Call); ok {
				w.calls[call.Name]++
				if w.keep != nil && w.keep(i, call) {
					continue
				}
				if w.mute != nil && w.mute(i, call.Name) {
					continue
				}
				var err error
				if w.call != nil {
					err = w.call(i, call.Name)
				}
				r := call.Fail(err)
				if err == nil {
					r = call.Do(context.Background(), w.store)
				}
				if r.Err() != nil {
					w.failed[call.Name] = r.Err()
				}
				events = append(events, r)
				continue
			}
			if w.act != nil {
				events = append(events, w.act(i, a)...)
			}
		}
	}
}

// begin tells all cores of jobs and of a ring of them all.
func (w *tower) begin(list ...jobs.Job) {
	var names []string
	for i := range list {
		list[i] = list[i].WithDefaults()
	}
	for _, c := range w.cores {
		names = append(names, c.cfg.Replica)
	}
	r, err := ring.New(names, &ring.Options{Partitions: w.cores[0].cfg.Partitions, VirtualNodes: 20, Load: 1.5})
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range w.cores {
		w.tell(i, JobsChanged{Jobs: list}, RingChanged{Ring: r})
	}
}

// until lets time pass, in steps of 50 ms at most.
func (w *tower) until(end time.Duration) {
	for w.now < end {
		next := min(end, w.now+50*time.Millisecond)
		for _, c := range w.cores {
			if !c.stopped { // nobody asks it when to wake it any more
				next = min(next, max(c.Wake(), w.now+time.Microsecond))
			}
		}
		w.now = next
		for i := range w.cores {
			w.tell(i)
		}
	}
}

func (w *tower) rows() (list []idempotency.Run) {
	for r, err := range w.store.(idempotency.History).List(context.Background(), idempotency.Filter{Namespace: "n"}) {
		if err != nil {
			w.t.Fatal(err)
		}
		list = append(list, r)
	}
	return list
}

func none(context.Context, jobs.Occurrence) error { return nil }

// list answers streams of the keys k0 to k(n-1), and ends handlers at once.
func list(n int) func(int, Action) []Event {
	asked := map[[2]int64]jobs.KeyRange{}
	return func(i int, a Action) []Event {
		switch a := a.(type) {
		case Start:
			return []Event{Ended{Handle: a.Handle}}
		case OpenStream:
			asked[[2]int64{int64(i), a.Stream}] = a.Range
		case Pull:
			var keys []string
			for k := range n {
				if key := fmt.Sprintf("k%02d", k); asked[[2]int64{int64(i), a.Stream}].Contains(key) {
					keys = append(keys, key)
				}
			}
			return []Event{Streamed{Stream: a.Stream, Keys: keys, End: true}}
		}
		return nil
	}
}

func keyed(s jobs.Schedule) jobs.Job {
	return jobs.Job{Name: "keyed", Schedule: s, Keys: jobs.KeyList("k00"), Run: none}
}
