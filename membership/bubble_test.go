package membership

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/internal/sim"
	"github.com/belfry-go/belfry/internal/sim/oracle"
	"github.com/belfry-go/belfry/internal/simnet"
	"github.com/belfry-go/belfry/internal/storecut"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/ring"
	"github.com/belfry-go/belfry/scheduler"
	"github.com/hashicorp/memberlist"
)

var (
	bubbleHours = flag.Int("bubble.hours", 2, "how many cluster-hours of fake time TestBubble lets pass, two with each seed")
	bubbleSeed  = flag.Uint64("bubble.seed", 1, "the first seed")
)

// TestBubble lets fleets of real schedulers on real gossip and one store in memory live for hours of fake time, while random faults
// befall them (T3). An oracle that shares no code with the scheduler judges each answer of the store and each start of a handler; then,
// after a calm, whether every due has ended in one recorded outcome. The choice of faults comes from a seed; how goroutines interleave does not.
func TestBubble(t *testing.T) {
	t.Parallel()
	var sum tally
	t.Run("seeds", func(t *testing.T) {
		for i := range (*bubbleHours + 1) / 2 {
			seed := *bubbleSeed + uint64(i)
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { newTrial(t, seed).run(&sum) })
				if t.Failed() {
					t.Logf("repeat the choices: go test -race ./membership -run TestBubble -bubble.hours 2 -bubble.seed %d", seed)
				}
			})
		}
	})
	t.Logf("T3: %s", &sum)
	if hours := int(sum.lasted.Hours()); sum.runs < 100*hours || sum.faults < 20*hours {
		t.Errorf("so few runs and faults show nothing")
	}
}

// tally counts what trials did.
type tally struct {
	mu                         sync.Mutex
	lasted                     time.Duration // of fake time, the calm at the end included: it is judged as the rest
	runs, faults, orders, laws int
}

func (s *tally) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("%.1f cluster-hours, %d runs, %d faults, %d orders of people, %d violations",
		s.lasted.Hours(), s.runs, s.faults, s.orders, s.laws)
}

func (s *tally) add(o *tally) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lasted += o.lasted
	s.runs, s.faults, s.orders, s.laws = s.runs+o.runs, s.faults+o.faults, s.orders+o.orders, s.laws+o.laws
}

// tempo is how fast everything goes. An hour costs as much as it has events, and most of them are gossip's: one fleet in 25 has LAN's and the
// default lease, the others rest longer between two probes and sweeps, and are the longer of two minds after a fault.
type tempo struct {
	profile      Profile
	lease, sweep time.Duration
}

func tempoOf(seed uint64) tempo {
	if seed%25 == 0 {
		return tempo{LAN, 10 * time.Second, time.Second}
	}
	return tempo{WAN, 30 * time.Second, 10 * time.Second}
}

const (
	trialLasts = 2 * time.Hour
	trialCalm  = 5 * time.Minute // at its end, with the longest handler, its retries, its take-up by a replica that starts anew
	trialCrew  = 3
	trialParts = 64
)

// trial is a fleet of replicas in a bubble, and what befalls it. One goroutine chooses and undoes the faults.
type trial struct {
	*fleet
	tempo
	rand     *rand.Rand
	store    *sim.Judged
	client   *scheduler.Client
	posts    []*post // by index; nil while it is down
	undo     []undo
	slow     atomic.Int64 // how long a call of the store is under way at most
	slowness spell
	count    tally // all but runs: of the goroutine that chooses
	wg       sync.WaitGroup
	busy     map[string]bool // kinds of faults that are under way

	mu    sync.Mutex
	runs  int
	done  map[string]int64 // the fence of each occurrence that a replica was told is done
	wrong []string
}

// post is one replica's process.
type post struct {
	name   string
	member *Cluster
	sched  *scheduler.Scheduler
	way    *storecut.Store
	stop   context.CancelFunc
	ended  chan struct{}
	dead   atomic.Bool  // killed
	cut    atomic.Int64 // rises when the store is cut, and when it is mended
	unseen spell        // the store

	mu      sync.Mutex
	running map[int64]context.Context // handlers' contexts, by fence
}

func newTrial(t *testing.T, seed uint64) *trial {
	f := &fleet{T: t, net: simnet.New(seed), seed: seed}
	f.listen = func() memberlist.NodeAwareTransport { return f.net.Listen() }
	c := &trial{
		fleet: f, tempo: tempoOf(seed), rand: rand.New(rand.NewPCG(seed, 1)), posts: make([]*post, trialCrew+1),
		busy: map[string]bool{}, done: map[string]int64{},
	}
	c.slow.Store(int64(5 * time.Millisecond))
	c.store = sim.NewJudged(oracle.Rules{
		Tolerance: 100 * time.Millisecond, Horizon: 24 * time.Hour, MissedAfter: time.Minute, Retention: 7 * 24 * time.Hour, Crashes: 5,
		Policy:     func(job string) oracle.Policy { return trialJobs[job].policy },
		Partitions: trialParts,
	}, func(job string) (oracle.Schedule, oracle.Choice) { return trialJobs[job].brute() }, func(job string) bool { return trialJobs[job].keys > 0 })
	for name, j := range trialJobs {
		for _, key := range j.names() {
			c.store.Present(name, key)
		}
	}
	client, err := scheduler.NewClient(sim.Namespace, c.store)
	if err != nil {
		t.Fatal(err)
	}
	c.client = client
	return c
}

// run lets two hours pass, and judges them.
func (c *trial) run(sum *tally) {
	defer time.Sleep(time.Minute) // late timers and dials of memberlist
	defer c.closeAll()
	defer c.wg.Wait()
	defer c.stopAll()
	for i := range trialCrew {
		c.start(i)
	}
	c.agree(5*time.Minute, c.all, names(trialCrew))
	begun := time.Now()
	c.weather(begun.Add(trialLasts - trialCalm))
	c.calmDown()
	calm := time.Now()
	c.agree(5*time.Minute, c.all, names(trialCrew))
	rest(time.Until(begun.Add(trialLasts)))
	c.judge(begun, calm)
	sum.add(&c.count)
}

// start starts a process for the replica of index i.
func (c *trial) start(i int) {
	c.Helper()
	m := c.join(Config{Namespace: sim.Namespace, Name: letter(i), Seeds: addrs(c.all), Profile: c.profile})
	p := &post{name: letter(i), member: m, ended: make(chan struct{}), running: map[int64]context.Context{}}
	p.way = storecut.New(c.store, func() time.Duration { return rand.N(time.Duration(c.slow.Load())) })
	s, err := scheduler.New(scheduler.Config{
		Namespace: sim.Namespace, Members: m, Store: p.way, Ring: &ring.Options{Partitions: trialParts, VirtualNodes: 20}, Concurrency: 8,
		Lease: c.lease, Sweep: c.sweep, Drain: c.lease / 4, Logger: quietLog(), Hooks: []scheduler.Hooks{c.hooks()},
	})
	if err != nil {
		c.Fatal(err)
	}
	for name, j := range trialJobs {
		if err := s.Add(j.job(name, c.lease, c.handler(p))); err != nil {
			c.Fatal(err)
		}
	}
	p.sched = s
	var ctx context.Context
	ctx, p.stop = context.WithCancel(context.Background())
	c.posts[i] = p
	c.wg.Go(func() {
		defer close(p.ended)
		err := s.Run(ctx)
		if why := c.explains(p, ctx, err); why != "" {
			c.Errorf("seed %d: %s %s: %v", c.seed, p.name, why, err)
		}
	})
}

// explains says what is wrong with the end of a process; nothing where it was told to stop, and has cut off at most what a handler that
// does not return, or a store that does not answer, made it cut off. What becomes of that the oracle judges.
func (c *trial) explains(p *post, ctx context.Context, err error) (wrong string) {
	const patience = 2 // leases, in which a replica drains, and hears that a store is back
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case ctx.Err() == nil:
		return "ends before it was told to"
	case err == nil || p.dead.Load():
		return ""
	case !strings.HasPrefix(err.Error(), "scheduler: stopped with "):
		return "does not end in order"
	case len(p.running) == 0 && !p.unseen.within(patience*c.lease) && !c.slowness.within(patience*c.lease):
		return "cuts runs off for nothing"
	}
	return ""
}

// spell is trouble that comes and goes.
type spell struct{ end atomic.Int64 }

func (s *spell) comes() { s.end.Store(math.MaxInt64) }
func (s *spell) goes()  { s.end.Store(time.Now().UnixNano()) }

// within says whether it lasts, or did so long ago.
func (s *spell) within(d time.Duration) bool { return time.Now().Add(-d).UnixNano() < s.end.Load() }

func (c *trial) stopAll() {
	for _, p := range c.posts {
		if p != nil {
			p.stop()
		}
	}
}

// up are the indexes of the replicas that run.
func (c *trial) up() []int {
	var all []int
	for i, p := range c.posts {
		if p != nil {
			all = append(all, i)
		}
	}
	return all
}

// judge demands that each due of the trial has ended, that the store holds what it said, and that replicas were told the same.
func (c *trial) judge(begun, calm time.Time) {
	if err := c.store.Settle(calm); err != nil {
		c.Error(err)
	}
	for _, v := range c.store.Violations() {
		c.wrong = append(c.wrong, v.Error())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for r, err := range c.client.Runs(context.Background(), idempotency.Filter{}) {
		if err != nil {
			c.Fatal(err)
		}
		o := jobs.Occurrence{Namespace: sim.Namespace, Job: r.ID.Job, Key: r.ID.Key, Due: r.ID.Due, Request: r.ID.Request}
		fence, told := c.done[o.ID()]
		if told && (r.Outcome != idempotency.Done || r.Fence != fence) {
			c.wrong = append(c.wrong, fmt.Sprintf("%s was told to be done under fence %d; the store has it %d, fence %d", o.ID(), fence, r.Outcome, r.Fence))
		}
	}
	for name := range trialJobs {
		for g, err := range c.client.Gaps(context.Background(), name, begun, calm) {
			c.wrong = append(c.wrong, fmt.Sprintf("job %s has a gap: %+v, %v", name, g, err))
		}
	}
	for _, w := range c.wrong[:min(len(c.wrong), 10)] {
		c.Errorf("seed %d: %s", c.seed, w)
	}
	c.count.lasted, c.count.runs, c.count.laws = time.Since(begun), c.runs, len(c.wrong)
	c.Logf("seed %d: %s", c.seed, &c.count)
}

// hooks keeps what a replica is told of the ends of runs.
func (c *trial) hooks() scheduler.Hooks {
	return scheduler.Hooks{Finished: func(_ context.Context, f scheduler.Finished) {
		if f.Outcome != idempotency.Done {
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if by, told := c.done[f.ID()]; told && by != f.Fence {
			c.wrong = append(c.wrong, fmt.Sprintf("%s is done twice, under the fences %d and %d", f.ID(), by, f.Fence))
		}
		c.done[f.ID()] = f.Fence
	}}
}

func (c *trial) blame(format string, a ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wrong = append(c.wrong, fmt.Sprintf(format, a...))
}

// calmDown undoes all faults and brings the crew back.
func (c *trial) calmDown() {
	slices.SortFunc(c.undo, func(a, b undo) int { return a.at.Compare(b.at) })
	for _, u := range c.undo {
		u.do()
	}
	c.undo = nil
	c.three() // it may have been killed, and come again
	c.net.Heal()
	c.net.Impair(simnet.Impairment{})
}
