package core

import (
	"context"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/ring"
)

// exact is Spread x p / P in 128 bits.
func exact(spread time.Duration, p, partitions int) time.Duration {
	hi, lo := bits.Mul64(uint64(spread), uint64(p))
	q, _ := bits.Div64(hi, lo, uint64(partitions))
	return time.Duration(q)
}

// Each partition starts once, at its exact time within [due, due+Spread), in order, and is begun soon after.
func TestStarts(t *testing.T) {
	t.Parallel()
	for _, partitions := range []int{8, 256, 4096, 1 << 16} {
		for _, spread := range []time.Duration{1, 7, time.Second, 59 * time.Second, 10*time.Minute + 1, time.Hour, 24*time.Hour - 1, 24 * time.Hour} {
			walkStarts(t, newStarts(spread, time.Second, partitions))
		}
	}
}

// walkStarts goes from one stride to the next.
func walkStarts(t *testing.T, s starts) {
	t.Helper()
	pace := min(max(time.Second, s.spread/maxStrides), s.spread)
	n, strides := s.ready(-1), 0
	if n != 0 {
		t.Fatalf("%+v: %d partitions are begun before the due", s, n)
	}
	for last := time.Duration(0); n < s.partitions; strides++ {
		since := s.next(n)
		if since < last || since >= s.spread || s.ready(since-1) != n {
			t.Fatalf("%+v: more than %d are begun at %v; before it %d are, and the stride before was at %v", s, n, since, s.ready(since-1), last)
		}
		m := s.ready(since)
		for p := n; p < m; p++ {
			start := s.delay(p)
			if start != exact(s.spread, p, s.partitions) || start > since || since-start > s.coarse() {
				t.Fatalf("%+v: partition %d starts at %v and is begun at %v", s, p, start, since)
			}
		}
		if m <= n {
			t.Fatalf("%+v: at %v still %d are begun", s, since, m)
		}
		n, last = m, since
	}
	if s.coarse() > pace+1 || strides > maxStrides || strides > int(s.spread/time.Second)+1 {
		t.Errorf("%+v: %d strides, and starts up to %v late", s, strides, s.coarse())
	}
}

// What has started is a prefix, whatever the instant.
func TestStartedAgreesWithDelay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		spread := time.Duration(rapid.Int64Range(1, int64(24*time.Hour)).Draw(t, "spread"))
		s := newStarts(spread, time.Duration(rapid.Int64Range(1, int64(time.Minute)).Draw(t, "sweep")), 1<<rapid.IntRange(3, 16).Draw(t, "bits"))
		since := time.Duration(rapid.Int64Range(-int64(time.Hour), int64(spread)+int64(time.Hour)).Draw(t, "since"))
		n := s.started(since)
		if n > 0 && s.delay(n-1) > since || n < s.partitions && s.delay(n) <= since {
			t.Fatalf("%d of %d have started after %v of %v", n, s.partitions, since, spread)
		}
		ready := s.ready(since)
		for i := range s.partitions / 8 {
			if b := below(ready, i); b != 0xff && b != 0 && (8*i >= ready || ready > 8*i+8) {
				t.Fatalf("%d partitions have byte %d as %08b", ready, i, b)
			}
		}
		if p := rapid.IntRange(0, s.partitions-1).Draw(t, "p"); has([]byte{below(ready, p/8)}, p%8) != (p < ready) {
			t.Fatalf("whether partition %d is one of the first %d is told wrongly", p, ready)
		}
	})
}

// spreading is a tower whose handlers end at once, and the instants at which they started, by key and due.
type spreading struct {
	*tower
	at map[string][]time.Duration
}

func spreadTower(t *testing.T, c Config, names ...string) *spreading {
	s := &spreading{newTower(t, c, names...), map[string][]time.Duration{}}
	answer := list(60)
	s.act = func(i int, a Action) []Event {
		if x, ok := a.(Start); ok {
			o := x.Occurrence
			id := fmt.Sprint(o.Key, "@", o.Due.Sub(epoch))
			s.at[id] = append(s.at[id], s.now)
			if late := s.now - o.Due.Sub(epoch) - x.Job.Spread*time.Duration(ring.Slot(o.Key)%c.Partitions)/time.Duration(c.Partitions); x.Late-late > time.Millisecond || late-x.Late > time.Millisecond {
				t.Errorf("%s is told to be %v late, it is %v", id, x.Late, late)
			}
		}
		return answer(i, a)
	}
	return s
}

// turn tells the cores that are left of a ring of them.
func (s *spreading) turn(names ...string) {
	s.t.Helper()
	r, err := ring.New(names, &ring.Options{Partitions: s.cores[0].cfg.Partitions, VirtualNodes: 20, Load: 1.5})
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range s.cores {
		s.tell(i, RingChanged{Ring: r})
	}
}

// ran demands that each key ran once for a due, at its start or at most so much later.
func (s *spreading) ran(due, spread, most time.Duration) {
	s.t.Helper()
	partitions := s.cores[0].cfg.Partitions
	for k := range 60 {
		key := fmt.Sprintf("k%02d", k)
		start := due + exact(spread, ring.Slot(key)%partitions, partitions)
		if at := s.at[fmt.Sprint(key, "@", due)]; len(at) != 1 || at[0] < start || at[0] > start+most {
			s.t.Errorf("%s of due %v ran at %v, want once from %v to %v", key, due, at, start, start+most)
		}
	}
}

func local(s jobs.Schedule, spread time.Duration) jobs.Job {
	j := keyed(s)
	j.Guarantee, j.Spread = jobs.Efficiency, spread
	return j
}

// join brings one more core into being.
func (s *spreading) join(name string, j jobs.Job) {
	c := s.cores[0].cfg
	c.Replica, c.Boot, c.Rand = name, name, rand.New(rand.NewPCG(1, 99))
	s.cores = append(s.cores, New(c))
	s.tell(len(s.cores)-1, JobsChanged{Jobs: []jobs.Job{j.WithDefaults()}})
}

// The keys of an efficiency job start spread. Whoever owns a partition when it starts runs it: when a replica dies,
// when one comes that was not there at the due, and when one leaves, each key still runs once, and in time.
func TestLocalSpread(t *testing.T) {
	t.Parallel()
	const spread, minute = 40 * time.Second, time.Minute
	c := timing()
	c.Partitions = 256
	w := spreadTower(t, c, "a", "b", "c")
	j := local(jobs.Every(minute), spread)
	w.begin(j)
	w.until(minute + 10*time.Second)
	w.cores = w.cores[:2] // c dies
	w.turn("a", "b")
	w.until(minute + 20*time.Second)
	w.join("d", j)
	w.turn("a", "b", "d")
	w.until(minute + 30*time.Second)
	w.tell(0, Stop{Why: "test"})
	w.turn("b", "d")
	w.until(2*minute + spread + time.Second)
	w.ran(minute, spread, time.Second)
	w.ran(2*minute, spread, time.Second)
	if n := len(w.cores[1].passes); n > 0 {
		t.Errorf("%d passes are left", n)
	}
}

// What waits for the others of its stride is not too late for that.
func TestLongLocalSpread(t *testing.T) {
	t.Parallel()
	const spread = 40 * time.Minute // 2.3 s a stride
	c := timing()
	c.Partitions, c.MissedAfter = 4096, time.Second
	w := spreadTower(t, c, "a")
	w.begin(local(jobs.Every(time.Hour), spread))
	w.until(time.Hour + spread)
	w.ran(time.Hour, spread, 2500*time.Millisecond)
}

// A process that stood still leaves out what it is late for by more than MissedAfter, and runs the rest at once.
func TestLocalSpreadAfterPause(t *testing.T) {
	t.Parallel()
	const spread, minute = 40 * time.Second, time.Minute
	c := timing()
	c.Partitions = 256
	w := spreadTower(t, c, "a")
	w.begin(local(jobs.Every(10*minute), spread))
	w.until(10*minute + 5*time.Second)
	w.now = 11*minute + 15*time.Second // since 5 s after the due it stood still
	w.tell(0)
	w.until(w.now + 5*time.Second)
	for _, a := range w.acts {
		if r, ok := a.(Refused); ok && exact(spread, ring.Slot(r.Key)%256, 256) < 13*time.Second {
			t.Errorf("%s was read from its source, to be left out", r.Key)
		}
	}
	for k := range 60 {
		key := fmt.Sprintf("k%02d", k)
		delay := exact(spread, ring.Slot(key)%256, 256)
		want := 1
		if delay > 5*time.Second && delay < 14*time.Second {
			want = 0
		}
		if at := w.at[fmt.Sprint(key, "@", 10*minute)]; len(at) != want && (delay < 4*time.Second || delay > 5*time.Second) && (delay < 14*time.Second || delay > 15*time.Second) {
			t.Errorf("%s, to start %v after the due, ran at %v, want %d runs", key, delay, at, want)
		}
	}
}

// A job without keys starts at the delay of its name's partition, its due stays. Spread may be longer than the interval.
func TestLocalSpreadWithoutKeys(t *testing.T) {
	t.Parallel()
	w := spreadTower(t, timing(), "a", "b")
	j := local(jobs.Every(10*time.Second), 25*time.Second) // longer than the interval
	j.Keys = nil
	w.begin(j)
	w.until(90 * time.Second)
	delay := exact(25*time.Second, ring.Slot("keyed")%16, 16)
	for due := 10 * time.Second; due+delay < 90*time.Second; due += 10 * time.Second {
		if at := w.at[fmt.Sprint("keyed@", due)]; len(at) != 1 || at[0] != due+delay {
			t.Errorf("due %v ran at %v, want %v", due, at, due+delay)
		}
	}
}

// offered counts the entries that sweeps bring.
type offered struct {
	idempotency.Store
	n *int
}

func (o offered) Lagging(ctx context.Context, s idempotency.Session, q idempotency.LagQuery) (idempotency.Lag, error) {
	l, err := o.Store.Lagging(ctx, s, q)
	*o.n += len(l.Entries)
	return l, err
}

// Between its due and its start no sweep brings a job without keys, and none after it.
func TestSpreadEntriesAreNotOffered(t *testing.T) {
	t.Parallel()
	w := newTower(t, timing(), "a", "b")
	n := 0
	w.store = offered{w.store, &n}
	w.act = list(0)
	var many []jobs.Job
	for i := range 20 {
		many = append(many, jobs.Job{Name: fmt.Sprint("job-", i), Schedule: jobs.At(at(60)), Spread: 10 * time.Minute, Run: none})
	}
	w.begin(many...)
	w.until(12 * time.Minute)
	if n > len(many) {
		t.Errorf("sweeps brought %d entries, want each once at most, when it starts", n)
	}
	for _, c := range w.cores {
		for _, j := range c.jobs {
			if c.rank(j.partition) == 0 && !j.entry.Opened.Equal(at(60)) {
				t.Errorf("%s is opened up to %v at %v, want up to its due", j.Name, j.entry.Opened, at(60).Add(j.delay))
			}
		}
	}
}

// While starts are spread, the passes are begun by timers: the store is swept no more often than ever.
func TestSpreadSweepsNoMore(t *testing.T) {
	t.Parallel()
	c := timing()
	c.Partitions = 256
	w := spreadTower(t, c, "a")
	j := local(jobs.Every(time.Hour), 100*time.Second)
	j.Guarantee = jobs.Correctness
	w.begin(j)
	w.until(time.Hour)
	w.calls["Lagging"] = 0
	w.until(time.Hour + 99*time.Second)
	if n := w.calls["Lagging"]; n > 105 {
		t.Errorf("%d sweeps in 99 s, want one a second", n)
	}
	w.until(time.Hour + 102*time.Second)
	w.ran(time.Hour, 100*time.Second, time.Second)
}
