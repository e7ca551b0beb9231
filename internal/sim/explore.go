package sim

import (
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/internal/sim/oracle"
	"github.com/belfry-go/belfry/jobs"
)

// The phases of an exploration: faults happen until calmAt; what was due up to
// judgedTo must have ended by endAt; what is due from quietAt on runs as if there had been no faults.
const (
	calmAt   = 24 * time.Second
	judgedTo = 28 * time.Second
	quietAt  = 48 * time.Second
	endAt    = 62 * time.Second
)

// maxSpread is the most that an exploration spreads starts over: more than some jobs' interval, and as much as Short's
// horizon has room for.
const maxSpread = 2 * time.Second

// Options narrow an exploration. The zero value is all of it.
type Options struct {
	Only  Fault                                     // exactly these kinds; 0: chance decides
	With  Fault                                     // these kinds too
	Store func(idempotency.Store) idempotency.Store // see Config
	Trace io.Writer
}

// Explore lets one cluster live through random faults and a calm, all drawn
// from the seed. It returns the world, and what was broken; nil: nothing.
func Explore(seed uint64, o Options) (*World, error) {
	p := newPlan(seed, o)
	p.schedule()
	w := p.w
	if err := w.Run(quietAt); err != nil {
		return w, err
	}
	before := w.Stats
	w.Stats = newStats()
	if err := w.Run(endAt); err != nil {
		return w, err
	}
	err := cmp.Or(w.Settle(judgedTo), p.quiet(w.Stats), p.led(w.Stats), p.works())
	w.Stats.Events += before.Events
	return w, err
}

// quiet demands that nothing but ordinary work happens any more: every key has
// one owner, that owner is in time, and nobody takes what is not its own.
func (p *plan) quiet(s Stats) error {
	for name, late := range s.Late {
		if late > time.Second {
			return fmt.Errorf("job %s starts %v late in the calm", name, late)
		}
	}
	var missed int64
	for _, n := range s.Missed {
		missed += n
	}
	if s.Hedged > 0 || s.Lost > 0 || s.TakenUp > 0 || missed > 0 {
		return fmt.Errorf("in the calm %d claims are hedged, %d sessions lost, %d runs taken up, %d dues missed", s.Hedged, s.Lost, s.TakenUp, missed)
	}
	return nil
}

// works demands that what is due in the calm is done, and that the replicas tell of all that they did in it.
func (p *plan) works() error {
	w := p.w
	for _, j := range w.cfg.Jobs {
		w.Oracle.AllDone(j.Name, Unix(quietAt+w.skew), Unix(endAt+w.skew-maxSpread-2*time.Second))
	}
	w.Oracle.Told(epoch.Add(quietAt+w.skew), epoch.Add(endAt+w.skew-time.Second))
	return w.Err()
}

// led demands that one replica leads in the calm, if there is something to lead for, and that this does not change.
func (p *plan) led(s Stats) error {
	want, leads := 0, 0
	if p.faults&Leader != 0 {
		want = 1
	}
	for _, r := range p.w.replicas {
		if r.leads != 0 {
			leads++
		}
	}
	if leads != want || s.Leaders > 0 || s.Termless > 0 {
		return fmt.Errorf("in the calm %d replicas lead, want %d; they saw another one %d times; %d runs of its jobs start elsewhere", leads, want, s.Leaders, s.Termless)
	}
	return nil
}

// plan is one exploration.
type plan struct {
	w      *World
	source *Source
	faults Fault
	poison oracle.ID
	jam    int        // the replica whose workers are jammed; -1: none
	dice   *rand.Rand // of what is drawn before there is a world
}

func newPlan(seed uint64, o Options) *plan {
	p := &plan{source: NewSource(0), jam: -1, faults: o.Only}
	c := Config{Seed: seed, Trace: o.Trace, Store: o.Store, Spare: 3, Timing: Short()}
	c.Fatal = func(id oracle.ID) bool { return id == p.poison }
	r := New(Config{Seed: seed ^ 0xb5297a4d, Replicas: 1}) // a throw-away world for its chance
	if p.faults == 0 {
		px := []float64{.06, .15, .35}[r.rand.IntN(3)]
		for f := Loss; f < all; f <<= 1 {
			if r.rand.Float64() < px {
				p.faults |= f
			}
		}
	}
	if p.faults |= o.With; p.faults&Elector != 0 {
		p.faults |= Leader
	}
	c.Faults = p.faults
	c.Replicas = 2 + r.rand.IntN(3)
	c.Timing.Concurrency = 2 + r.rand.IntN(5)
	for i := range 6 + r.rand.IntN(15) {
		if r.rand.Float64() < .9 {
			p.source.keys[fmt.Sprintf("k%03d", i)] = span{-maxLag, forever}
		}
	}
	p.source.Unordered = r.rand.IntN(3) == 0
	p.source.Whole = r.rand.IntN(4) == 0
	p.source.Batch = r.rand.IntN(6)
	second := func(low, high int64) time.Duration {
		return time.Duration(low+r.rand.Int64N(high-low+1)) * time.Second
	}
	plans := func(low, high int64) []Plan {
		a := Plan{Every: second(low, high)}
		return []Plan{a, {Every: a.Every, Phase: second(1, int64(a.Every/time.Second))}}
	}
	spread := func(plans []Plan) []Plan {
		for i := range plans {
			if r.rand.IntN(3) == 0 {
				plans[i].Spread = time.Duration(1 + r.rand.Int64N(int64(maxSpread)))
			}
		}
		return plans
	}
	c.Jobs = []Job{
		{Name: "keyed", Plans: spread(plans(3, 8)), Source: p.source, Work: p.work},
		{Name: "plain", Plans: spread(plans(1, 5)), Work: p.work},
		{Name: "once", Plans: spread([]Plan{{At: []time.Duration{second(2, 6), second(7, 12), second(12, 20)}}}), Work: p.work},
	}
	if p.faults&Policies != 0 {
		for i := range c.Jobs {
			c.Jobs[i].choose(r.rand)
		}
	}
	if p.faults&Leader != 0 {
		ofLeader(c.Jobs, r.rand)
	}
	if p.faults&Edit != 0 {
		p.dice = r.rand
		c.Jobs = p.edited(c.Jobs, second)
	}
	p.w = New(c)
	w := p.w
	if w.faults(Poison) {
		due := c.Jobs[0].Plans[0].Every * time.Duration(1+w.rand.IntN(2))
		names := p.source.names()
		p.poison = oracle.ID{Job: "keyed", Key: names[w.rand.IntN(len(names))], Due: epoch.Add(due).Unix()}
	}
	w.note("", "begins", fmt.Sprint(seed), c.Replicas, c.Timing.Concurrency, p.faults.String(), p.poison.String())
	return p
}

// faults is whether a kind belongs to this world at all.
func (w *World) faults(f Fault) bool { return w.cfg.Faults&f != 0 }

// work is what a handler of an exploration does.
func (p *plan) work(r *Replica, o jobs.Occurrence) Work {
	w := p.w
	x := Work{Takes: w.between(time.Millisecond, 60*time.Millisecond)}
	switch {
	case idOf(o) == p.poison:
		x.Fatal = true
	case p.jam == r.index && !w.calm:
		x.Takes, x.Deaf = w.between(time.Second, 2900*time.Millisecond), true
	case w.fault(Long, .25):
		x.Takes = w.between(200*time.Millisecond, 4*time.Second)
		x.Deaf = w.rand.IntN(3) == 0
	case w.fault(Hang, .05):
		x.Takes, x.Deaf = w.between(4*time.Second, 12*time.Second), true
	case w.fault(Error, .3):
		x.Err, x.Panic = errWork, w.rand.IntN(4) == 0
		if w.faults(Policies) {
			x.Err = []error{errWork, jobs.Skip("nothing to do"), jobs.RetryAfter(w.between(0, 2*time.Second), errWork)}[w.rand.IntN(3)]
		}
	}
	x.Quiet = w.fault(Policies, .1)
	return x
}

// schedule puts the faults on the agenda.
func (p *plan) schedule() {
	w := p.w
	any := func() *Replica { return w.replicas[w.rand.IntN(len(w.replicas))] }
	lease := w.cfg.Timing.Lease
	do := func(kind Fault, most int, f func()) {
		if w.faults(kind) {
			for range 1 + w.rand.IntN(most) {
				w.At(w.between(500*time.Millisecond, calmAt-3*time.Second), f)
			}
		}
	}
	do(Kill, 3, func() { r := any(); r.Kill(); r.Restart(w.between(200*time.Millisecond, 1500*time.Millisecond)) })
	do(Freeze, 2, func() {
		if r, d := any(), w.between(lease/4, 3*lease); w.rand.IntN(3) == 0 {
			r.Suspend(d)
		} else {
			r.Freeze(d)
		}
	})
	do(Blind, 2, func() { any().Blind(w.between(lease/8, 3*lease)) })
	do(Outage, 1, func() {
		d := w.between(time.Second, 10*time.Second)
		for _, r := range w.replicas {
			r.Blind(d)
		}
	})
	do(Drain, 3, func() { r := any(); r.Drain(func() { r.Restart(w.between(100*time.Millisecond, time.Second)) }) })
	do(View, 6, p.blur)
	do(Down, 1, p.down)
	do(StoreClock, 2, func() { w.StepStore(w.between(-2500*time.Millisecond, 4*time.Second)) })
	do(HostClock, 4, p.wrongClock)
	do(LaggingSource, 2, func() { any().Lag(w.between(0, maxLag)) })
	do(Churn, 10, func() {
		if key := fmt.Sprintf("k%03d", w.rand.IntN(20)); w.rand.IntN(2) == 0 {
			p.source.Add(key)
		} else {
			p.source.Remove(key)
		}
	})
	do(Hint, 3, func() { any().Flood(w.between(time.Millisecond, 50*time.Millisecond), w.between(0, 3*time.Second)) })
	do(Jam, 1, func() { p.jam = any().index })
	do(Deploy, 1, p.deploy)
	do(Lack, 1, p.lack)
	do(Edit, 4, p.edit)
	do(Steer, 12, p.steer)
	for t := 3 * time.Second; t < endAt; t += 3 * time.Second {
		w.At(t, w.Prune)
	}
	w.At(calmAt, p.calm)
}

func (p *plan) blur() {
	w := p.w
	r := w.replicas[w.rand.IntN(len(w.replicas))]
	if w.rand.IntN(2) == 0 {
		r.Stale(w.between(time.Second, 10*time.Second))
		return
	}
	var names []string
	for _, o := range w.replicas {
		if o != r && w.rand.IntN(2) == 0 {
			names = append(names, o.Name)
		}
	}
	r.Omit(names...)
}

func (p *plan) down() {
	d := p.w.between(2*time.Second, 14*time.Second)
	for _, r := range p.w.replicas {
		r.Kill()
		r.Restart(d + p.w.between(0, time.Second))
	}
}

func (p *plan) wrongClock() {
	w := p.w
	offset := []time.Duration{-time.Hour, -5 * time.Minute, -time.Second, time.Second, 5 * time.Minute, time.Hour}[w.rand.IntN(6)]
	w.replicas[w.rand.IntN(len(w.replicas))].SetClock(offset, w.rand.Int64N(20_001)-10_000)
}

// deploy brings another version of the code to some replicas, in turn, and perhaps takes it back.
func (p *plan) deploy() {
	w := p.w
	back := w.rand.IntN(5) < 2
	for i := range 1 + w.rand.IntN(len(w.replicas)) {
		r, live := w.replicas[i], w.rand.IntN(4) == 0
		to := func(version int) {
			if w.calm {
				return
			}
			if live {
				r.Change(version)
				return
			}
			r.Version = version
			r.Kill()
			r.Restart(w.between(100*time.Millisecond, time.Second))
		}
		w.After(time.Duration(i)*w.between(100*time.Millisecond, time.Second), func() {
			if live || w.calm || w.rand.IntN(2) == 0 {
				to(1)
				return
			}
			r.Version = 1
			r.Drain(func() { r.Restart(w.between(50*time.Millisecond, 500*time.Millisecond)) })
		})
		if back {
			w.After(w.between(2*time.Second, 6*time.Second), func() { to(0) })
		}
	}
}

// lack takes the code of a job from a replica, until the calm.
func (p *plan) lack() {
	w := p.w
	r := w.replicas[w.rand.IntN(len(w.replicas))]
	r.Lacks = []string{[]string{"keyed", "plain"}[w.rand.IntN(2)]}
	r.Change(r.Version)
}

// calm ends the faults and what they left: every replica runs, with all jobs of one version.
func (p *plan) calm() {
	p.jam = -1
	p.resumeAll()
	p.w.Calm()
	version := p.w.replicas[0].Version
	if p.w.faults(Edit) {
		version = 1 + edits // has all jobs
	}
	for _, r := range p.w.replicas {
		r.lag = 0
		if len(r.Lacks) > 0 || r.Version != version {
			r.Lacks = nil
			r.Change(version)
		}
		r.Restart(time.Second)
	}
}
