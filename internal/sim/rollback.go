package sim

import (
	"io"
	"math/rand/v2"
	"time"

	"github.com/belfry-go/belfry/internal/core"
	"github.com/belfry-go/belfry/jobs"
)

// Rollback is a world whose store forgets: because its server was killed before it synced, because people restored a backup, or
// because another, empty one answers at its address. All that happens follows from the seed.
type Rollback struct {
	Seed  uint64
	Trace io.Writer
}

// Forgot is what became of it.
type Forgot struct {
	Digest  string
	At      time.Duration
	Kept    bool // the store forgot no number: nobody could notice
	Noticed int  // how many replicas said so
	Anew    bool // people stopped all replicas, and started them
	Err     error
}

// The phases of a rollback: the store forgets some time in the first span; faults are over and all that can notice have by
// the end of the second; and in the third either life goes on, or people have stopped all replicas and started them.
const (
	forgetsFrom = 35 * time.Second
	forgetsTo   = 45 * time.Second
	faultsFor   = 8 * time.Second // after that
	startedAt   = 75 * time.Second
	healthyAt   = 95 * time.Second
	rollbackEnd = 125 * time.Second
)

// Run lets the world live.
func (r Rollback) Run() Forgot {
	x := &rollback{dice: rand.New(rand.NewPCG(r.Seed, 0x6a09e667f3bcc909))}
	x.begin(r)
	w := x.w
	err := w.Run(rollbackEnd)
	if err == nil {
		x.judge()
		err = w.Err()
	}
	return Forgot{Digest: w.Digest(), At: w.now, Kept: w.loss.kept, Noticed: x.noticed, Anew: x.anew, Err: err}
}

type rollback struct {
	w       *World
	dice    *rand.Rand
	anew    bool
	noticed int
	at      time.Duration // when the store forgets
}

func (x *rollback) begin(r Rollback) {
	d := x.dice
	c := Config{Seed: r.Seed, Trace: r.Trace, Replicas: 2 + d.IntN(4), Journal: true, Faults: Late | Slow, Timing: Short()}
	c.Timing.MissedAfter, c.Timing.Horizon, c.Timing.Retention = time.Minute, 2*time.Minute, 4*time.Minute
	work := func(*Replica, jobs.Occurrence) Work { return Work{Takes: x.w.between(millis, 900*millis)} }
	c.Jobs = []Job{
		{Name: "plain", Plans: []Plan{{Every: time.Duration(2+d.IntN(5)) * second}}, Work: work},
		{Name: "keyed", Plans: []Plan{{Every: time.Duration(5+d.IntN(6)) * second}}, Source: NewSource(1 + d.IntN(8)), Work: work},
		{Name: led, Plans: []Plan{{Every: time.Duration(3+d.IntN(4)) * second}}, Leader: true, Work: work},
		{Name: local, Plans: []Plan{{Every: 3 * second}}, Local: true, Work: work},
	}
	x.w = New(c)
	w := x.w
	w.mood, w.loss = 0, newLoss(w)
	x.at = spanOf(d, forgetsFrom, forgetsTo)
	w.loss.quiet = x.at + faultsFor
	w.At(x.at, x.forget)
	for range d.IntN(4) {
		x.befall()
	}
	w.At(w.loss.quiet, func() {
		w.Calm()
		for _, r := range w.replicas {
			r.Start()
		}
	})
	if x.anew = d.IntN(2) == 0; x.anew {
		w.At(startedAt-10*second, x.stopAll)
		w.At(startedAt, x.startAll)
	}
}

// forget lets the store forget.
func (x *rollback) forget() {
	w, d := x.w, x.dice
	back := []time.Duration{spanOf(d, 50*millis, 300*millis), spanOf(d, 50*millis, 2*second), spanOf(d, second, 30*second)}[d.IntN(3)]
	w.loss.back, w.loss.forget = back, w.now
	if d.IntN(6) == 0 {
		w.Replace()
	} else {
		w.loss.kept = w.PutBack(back)
	}
	if d.IntN(2) == 0 { // it was down meanwhile
		for _, r := range w.replicas {
			r.Blind(spanOf(d, 0, 3*second))
		}
	}
}

// befall lets something happen to a replica about when the store forgets.
func (x *rollback) befall() {
	w, d := x.w, x.dice
	at := x.at + spanOf(d, -3*second, 4*second)
	r, long := w.replicas[d.IntN(len(w.replicas))], spanOf(d, 100*millis, w.loss.quiet-at)
	w.At(at, []func(){
		func() { r.Freeze(long) },
		func() { r.Suspend(long) },
		func() { r.Blind(long) },
		func() { r.Stale(long) },
		func() { r.Kill(); r.Restart(min(long, 2*second)) },
		func() { r.Drain(func() { r.Restart(200 * millis) }) },
		func() { w.mood |= Late },
		func() { w.mood |= Slow },
		func() { x.cutOff(r, long) },
	}[d.IntN(9)])
}

// cutOff restarts one replica while the others do not reach the store: it has but their word for what the store had.
func (x *rollback) cutOff(r *Replica, d time.Duration) {
	for _, o := range x.w.replicas {
		if o != r {
			o.Blind(d)
		}
	}
	r.Kill()
	r.Restart(second)
}

// stopAll is what docs/cluster.md tells people to do.
func (x *rollback) stopAll() {
	for _, r := range x.w.replicas {
		if x.dice.IntN(4) == 0 {
			r.Kill()
		} else {
			r.Drain(nil)
		}
	}
}

func (x *rollback) startAll() {
	w := x.w
	for _, r := range w.replicas {
		if r.up {
			w.fail("%s has not stopped", r.Name)
		}
		r.Restart(spanOf(x.dice, 0, 2*second))
	}
	x.noticed = w.loss.says
	w.loss.renewed()
}

// judge looks at the end.
func (x *rollback) judge() {
	w, l := x.w, x.w.loss
	x.noticed = max(x.noticed, l.says)
	to := rollbackEnd - 8*second
	if x.anew || l.kept {
		for _, r := range w.replicas {
			if r.said.state != core.Serving {
				w.fail("I9: at the end %s is %q", r.Name, r.said.state)
			}
		}
		l.ended(0, to, false)
		l.ended(healthyAt, to, true)
	}
	if x.anew {
		l.fired(healthyAt, to)
		to = startedAt - 12*second
	}
	l.fired(l.quiet+5*second, to)
}
