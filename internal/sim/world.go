package sim

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/internal/core"
	"github.com/belfry-go/belfry/internal/sim/oracle"
	"github.com/belfry-go/belfry/ring"
)

// Namespace is that of every world.
const Namespace = "sim"

// Config is what a world begins with.
type Config struct {
	Seed     uint64
	Replicas int // 0: 3
	Jobs     []Job

	// Timing holds the settings of every replica; what names one is not used.
	// Without a Lease it is Short.
	Timing core.Config

	// Faults are those that chance may do until the calm; see World.Calm.
	Faults Fault

	// Store puts a store around the memory store, such as one with a bug. Nil: none.
	Store func(idempotency.Store) idempotency.Store

	// Journal makes it a store that can be put back: see World.PutBack.
	Journal bool

	// Fatal tells the oracle of runs that kill their processes; see oracle.Rules. Nil: any may.
	Fatal func(oracle.ID) bool
	Spare int

	// Trace gets the history as text. Nil: only its digest is kept.
	Trace io.Writer
}

// Short is a timing that shows in seconds what takes minutes by default.
func Short() core.Config {
	return core.Config{
		Partitions: 16, Concurrency: 4,
		Lease: 2 * time.Second, Grace: 300 * time.Millisecond, Sweep: 200 * time.Millisecond, Drain: 1200 * time.Millisecond,
		MissedAfter: 8 * time.Second, Horizon: 12 * time.Second, Retention: 14 * time.Second, Tolerance: 20 * time.Millisecond,
	}
}

// Normal is the timing that a scheduler has by default, but for fewer partitions.
func Normal() core.Config {
	return core.Config{
		Partitions: 256, Concurrency: 8,
		Lease: 10 * time.Second, Grace: time.Second, Sweep: time.Second, Drain: 25 * time.Second,
		MissedAfter: time.Minute, Horizon: 24 * time.Hour, Retention: 7 * 24 * time.Hour, Tolerance: 100 * time.Millisecond,
	}
}

// World is one cluster and what surrounds it. It is for one goroutine.
type World struct {
	Oracle *oracle.Oracle
	Stats  Stats

	// Fate decides what becomes of a call; false leaves it to chance. Nil: chance alone.
	Fate func(r *Replica, call string) (Fate, bool)

	cfg      Config
	jobs     map[string]*Job // those of cfg, by name
	rand     *rand.Rand
	now      time.Duration
	seq      int64
	agenda   agenda
	calm     bool
	mood     Fault // of Config.Faults, those that chance does now
	replicas []*Replica
	memory   *idempotency.Memory
	journal  *journal // nil: none
	tap      *tap
	front    *front // of the tap
	loss     *loss  // nil: none is judged
	elector  *elector
	commands int           // of people
	skew     time.Duration // the store's clock minus true time
	shown    struct {      // what the store's clock showed last: it is read several times in an instant
		at   time.Duration
		time time.Time
	}
	rings    map[string]*ring.Ring
	trace    trace
	unjudged bool
	broken   error // what ended the world early
}

// New returns a world whose replicas start within its first second.
func New(c Config) *World {
	if c.Replicas == 0 {
		c.Replicas = 3
	}
	if c.Timing.Lease == 0 {
		c.Timing = Short()
	}
	c.Timing.Namespace, c.Timing.Store = Namespace, true
	w := &World{
		cfg: c, jobs: map[string]*Job{}, rand: rand.New(rand.NewPCG(c.Seed, 0x9e3779b97f4a7c15)), rings: map[string]*ring.Ring{},
		trace: newTrace(c.Trace), Stats: newStats(), mood: all,
	}
	w.shown.time = epoch
	w.memory = idempotency.NewMemory(w.StoreNow)
	w.Oracle = oracle.New(oracle.Rules{
		Tolerance: c.Timing.Tolerance, Horizon: c.Timing.Horizon, MissedAfter: c.Timing.MissedAfter, Retention: c.Timing.Retention,
		Lease: c.Timing.Lease, Sweep: c.Timing.Sweep, Attempts: attempts, Crashes: 5,
		Policy:     func(job string) oracle.Policy { return w.job(job).policy() },
		Partitions: c.Timing.Partitions,
		Fatal:      c.Fatal, Spare: c.Spare,
	})
	var inner idempotency.Store = w.memory
	if c.Journal {
		w.journal = &journal{Memory: w.memory, now: w.StoreNow, partitions: c.Timing.Partitions}
		inner = w.journal
	}
	if c.Store != nil {
		inner = c.Store(inner)
	}
	w.tap = &tap{Store: inner, oracle: w.Oracle, clock: w.StoreNow, notes: w, partitions: c.Timing.Partitions}
	w.front = &front{tap: w.tap, identity: original}
	w.elector = &elector{w: w}
	w.cfg.Jobs = nil
	for _, j := range c.Jobs {
		w.Add(j)
	}
	for i := range c.Replicas {
		r := &Replica{w: w, index: i, Name: fmt.Sprintf("r%d", i)}
		w.replicas = append(w.replicas, r)
		w.After(time.Duration(i)*10*time.Millisecond, r.Start)
	}
	return w
}

// Replica is the i-th.
func (w *World) Replica(i int) *Replica { return w.replicas[i] }

// Now is the time since the world's beginning.
func (w *World) Now() time.Duration { return w.now }

// StoreNow is what the store's clock says.
func (w *World) StoreNow() time.Time {
	if at := w.now + w.skew; at != w.shown.at {
		w.shown.at, w.shown.time = at, epoch.Add(at)
	}
	return w.shown.time
}

// StepStore sets the store's clock on by d, or back.
func (w *World) StepStore(d time.Duration) {
	w.Oracle.At(w.StoreNow())
	w.skew += d
	w.Oracle.At(w.StoreNow())
	w.Oracle.Stepped()
	w.note("", "store clock steps", d)
}

// Unjudged keeps what happens in the store from now on from the oracle, which has no notion of a store that goes back
// in time.
func (w *World) Unjudged() { w.unjudged, w.tap.unjudged = true, true }

// Calm ends what chance does.
func (w *World) Calm() {
	w.calm = true
	w.note("", "calm")
	for _, r := range w.replicas {
		r.frozen, r.blind, r.stale, r.omits = min(r.frozen, w.now), min(r.blind, w.now), min(r.stale, w.now), nil
		r.learnAll()
	}
}

// Storm lets chance do faults again, after a calm.
func (w *World) Storm() {
	w.calm = false
	w.note("", "storm")
}

// Err is what went wrong first; nil: nothing.
func (w *World) Err() error {
	if w.broken == nil {
		if v := w.Oracle.Violations(); len(v) > 0 {
			w.broken = v[0]
			w.note("", "VIOLATION", v[0].Error())
		}
	}
	return w.broken
}

func (w *World) fail(format string, a ...any) {
	if w.broken == nil {
		w.broken = fmt.Errorf(format, a...)
		w.note("", "BROKEN", w.broken.Error())
	}
}

// Settle demands that everything due up to limit has ended by now, and that
// the store holds what its answers said.
func (w *World) Settle(limit time.Duration) error {
	if err := w.Err(); err != nil {
		return err
	}
	w.Oracle.At(w.StoreNow())
	w.Oracle.Settled(epoch.Add(limit + w.skew))
	w.Oracle.Contexts()
	w.Oracle.Audit(w.Stored())
	return w.Err()
}

// chance is true with probability p, but never in the calm.
func (w *World) chance(p float64) bool { return w.rand.Float64() < p && !w.calm }

// fault is whether chance does one of a kind.
func (w *World) fault(f Fault, p float64) bool { return w.cfg.Faults&w.mood&f != 0 && w.chance(p) }

// between is a duration from low to high.
func (w *World) between(low, high time.Duration) time.Duration {
	return low + time.Duration(w.rand.Int64N(int64(high-low)+1))
}

// ring is that of a view; nil where it is empty.
func (w *World) ring(names []string) *ring.Ring {
	if len(names) == 0 {
		return nil
	}
	id := strings.Join(names, ",")
	if w.rings[id] == nil {
		r, err := w.newRing(names)
		if err != nil {
			w.fail("ring of %v: %w", names, err)
		}
		w.rings[id] = r
	}
	return w.rings[id]
}

func (w *World) newRing(names []string) (*ring.Ring, error) {
	return ring.New(names, &ring.Options{Partitions: w.cfg.Timing.Partitions, VirtualNodes: 20, Load: 1.5})
}

// Owner is the replica that goes first for a key when all serve.
func (w *World) Owner(key string) *Replica {
	var names []string
	for _, r := range w.replicas {
		names = append(names, r.Name)
	}
	name := w.ring(names).Owner(key)
	return w.replicas[slices.Index(names, name)]
}

// Prune removes what is old as a replica's session would, but when the caller
// wants: what relies on rows being there is found out sooner.
func (w *World) Prune() {
	ctx, c := context.Background(), w.cfg.Timing
	s, _, err := w.memory.OpenSession(ctx, idempotency.Opening{
		Namespace: Namespace, Replica: "janitor", Boot: "janitor", Partitions: c.Partitions,
		Lease: time.Second, Horizon: c.Horizon, Retention: c.Retention, Tolerance: c.Tolerance,
	})
	if err == nil {
		_, err = w.memory.Prune(ctx, s, idempotency.MaxBatch)
	}
	if err == nil {
		err = w.memory.CloseSession(ctx, s)
	}
	if err != nil {
		w.fail("janitor: %w", err)
	}
}
