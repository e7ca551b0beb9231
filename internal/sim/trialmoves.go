package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// What the moves do. Each ends by itself, or in the calm.

// weather is a move that lets chance do faults of a kind for a while: to one replica where they can befall one, else to all.
func weather(f Fault) func(*trial, Move, *rand.Rand) {
	return func(x *trial, m Move, d *rand.Rand) {
		if f&(Loss|Late|Slow|Error|Long|Hang) != 0 && d.IntN(2) == 0 {
			r := x.r(m)
			r.mood |= f
			x.w.After(m.For, func() { r.mood &^= f })
			return
		}
		x.moods[f]++
		x.w.mood |= f
		x.w.After(m.For, func() {
			if x.moods[f]--; x.moods[f] <= 0 {
				x.w.mood &^= f
			}
		})
	}
}

func (x *trial) kill(m Move, _ *rand.Rand) { r := x.r(m); r.Kill(); r.Restart(m.For) }

func (x *trial) killAll(m Move, d *rand.Rand) {
	for _, r := range x.w.replicas {
		r.Kill()
		r.Restart(m.For + spanOf(d, 0, 2*second))
	}
}

func (x *trial) outage(m Move, _ *rand.Rand) {
	for _, r := range x.w.replicas {
		r.Blind(m.For)
	}
}

// restartStore: calls fail, and answers that were under way are lost.
func (x *trial) restartStore(m Move, d *rand.Rand) {
	weather(Loss)(x, m, d)
	x.outage(m, d)
}

func (x *trial) stepStore(_ Move, d *rand.Rand) {
	x.w.StepStore(time.Duration(d.Int64N(int64(40*second))) - 15*second)
}

func (x *trial) wrongClock(m Move, d *rand.Rand) {
	const year = 365 * 24 * time.Hour
	wrong := []time.Duration{0, time.Second, time.Minute, 5 * time.Minute, time.Hour, 12 * time.Hour, 8 * year, 50 * year}[d.IntN(8)]
	if d.IntN(2) == 0 {
		wrong = -wrong
	}
	r, drift := x.r(m), d.Int64N(20_001)-10_000
	r.SetClock(wrong, drift)
	if d.IntN(2) == 0 {
		x.w.After(m.For, func() {
			if !x.w.calm {
				r.SetClock(0, 0)
			}
		})
	}
}

// cut keeps each replica from hearing those whose bits are set for it, for a while.
func (x *trial) cut(n int, deaf []uint64, d time.Duration) {
	x.cuts[n] = deaf
	x.omit()
	x.w.After(d, func() {
		delete(x.cuts, n)
		x.omit()
	})
}

// omit lets each replica hear whom no cut keeps from it.
func (x *trial) omit() {
	if x.w.calm {
		return
	}
	for i, r := range x.w.replicas {
		var deaf uint64
		for _, c := range x.cuts {
			deaf |= c[i]
		}
		var names []string
		for j, o := range x.w.replicas {
			if j != i && deaf>>j&1 == 1 {
				names = append(names, o.Name)
			}
		}
		if !slices.Equal(names, r.omits) {
			r.Omit(names...)
		}
	}
}

// sides puts each replica on one of so many sides; or, for one, that replica against all others.
func (x *trial) sides(m Move, d *rand.Rand) (deaf []uint64) {
	n, side := 1+d.IntN(3), make([]int, len(x.w.replicas))
	for i := range side {
		if side[i] = d.IntN(n); n == 1 && i == m.Replica {
			side[i] = 1
		}
	}
	deaf = make([]uint64, len(side))
	for i := range side {
		for j := range side {
			if side[i] != side[j] {
				deaf[i] |= 1 << j
			}
		}
	}
	return deaf
}

func (x *trial) split(m Move, d *rand.Rand) { x.cut(m.N, x.sides(m, d), m.For) }

// lopsided: some do not hear others who hear them.
func (x *trial) lopsided(m Move, d *rand.Rand) {
	deaf := make([]uint64, len(x.w.replicas))
	for i := range deaf {
		if d.IntN(2) == 0 || i == m.Replica {
			deaf[i] = d.Uint64()
		}
	}
	x.cut(m.N, deaf, m.For)
}

// flap: a split comes and goes.
func (x *trial) flap(m Move, d *rand.Rand) {
	deaf, each := x.sides(m, d), spanOf(d, 500*millis, 8*second)
	for at := time.Duration(0); at < m.For; at += 2 * each {
		x.w.After(at, func() {
			if !x.w.calm {
				x.cut(m.N, deaf, each)
			}
		})
	}
}

func (x *trial) shrinkSource(m Move, d *rand.Rand) {
	s := x.sources[d.IntN(len(x.sources))]
	var gone []string
	for _, key := range s.names() {
		if d.IntN(2) == 0 && s.keys[key].to == forever {
			gone = append(gone, key)
			s.Remove(key)
		}
	}
	x.w.After(m.For, func() {
		for _, key := range gone {
			s.Add(key)
		}
	})
}

func (x *trial) churn(_ Move, d *rand.Rand) {
	s := x.sources[d.IntN(len(x.sources))]
	for range 1 + d.IntN(4) {
		if key := keyName(d.IntN(20)); d.IntN(2) == 0 {
			s.Add(key)
		} else {
			s.Remove(key)
		}
	}
}

func (x *trial) poison(_ Move, d *rand.Rand) {
	j := x.w.cfg.Jobs[d.IntN(len(x.w.cfg.Jobs))]
	p := &poison{job: j.Name, key: j.Name, from: Unix(x.w.now + x.w.skew)}
	if j.Source != nil {
		names := j.Source.names()
		p.key = names[d.IntN(len(names))]
	}
	x.poisons = append(x.poisons, p)
}

func (x *trial) jam(m Move, _ *rand.Rand) {
	x.jammed = m.Replica
	x.w.After(m.For, func() {
		if x.jammed == m.Replica {
			x.jammed = -1
		}
	})
}

func (x *trial) flood(m Move, d *rand.Rand) { x.r(m).Flood(spanOf(d, 2*millis, 50*millis), m.For) }

func (x *trial) drain(m Move, _ *rand.Rand) {
	r := x.r(m)
	r.Drain(func() { r.Restart(m.For) })
}

// deploy brings a version to all replicas or some, one after the other, and perhaps takes it back.
func (x *trial) deploy(m Move, d *rand.Rand) {
	w, version, gap := x.w, d.IntN(versions), spanOf(d, 100*millis, 10*second)
	back := d.IntN(3) == 0
	for i, r := range w.replicas {
		was, way, forgotten := r.Version, d.IntN(4), d.IntN(5) == 0
		if forgotten {
			continue
		}
		w.After(time.Duration(i)*gap, func() { x.bring(r, version, way) })
		if back {
			w.After(time.Duration(i)*gap+m.For, func() { x.bring(r, was, way) })
		}
	}
}

func (x *trial) bring(r *Replica, version, way int) {
	switch {
	case x.w.calm:
	case way == 0:
		r.Version = version
		r.Kill()
		r.Restart(second)
	case way == 1:
		r.Version = version
		r.Drain(func() { r.Restart(500 * millis) })
	default:
		r.Change(version)
	}
}

// lack takes the code of a job from a replica for a while.
func (x *trial) lack(m Move, d *rand.Rand) {
	r := x.r(m)
	r.Lacks = []string{x.w.cfg.Jobs[d.IntN(len(x.w.cfg.Jobs))].Name}
	r.Change(r.Version)
	x.w.After(m.For, func() {
		if !x.w.calm && len(r.Lacks) > 0 {
			r.Lacks = nil
			r.Change(r.Version)
		}
	})
}

// command is one of a person.
func (x *trial) command(m Move, d *rand.Rand) {
	w := x.w
	j := w.cfg.Jobs[d.IntN(len(w.cfg.Jobs))]
	c := idempotency.Command{Kind: idempotency.CommandKind(1 + d.IntN(int(idempotency.Retry)))}
	c.ID.Job = j.Name
	if j.Source != nil && d.IntN(3) > 0 {
		names := j.Source.names()
		c.ID.Key = names[d.IntN(len(names))]
	}
	now := w.StoreNow().Truncate(time.Second)
	switch c.Kind {
	case idempotency.Skip:
		c.ID.Due = now.Add(time.Duration(1+d.IntN(60)) * second)
	case idempotency.Backfill:
		for back := 120; back > 0; back-- {
			if d.IntN(30) == 0 {
				c.Dues = append(c.Dues, now.Add(-time.Duration(back)*second))
			}
		}
	case idempotency.Cancel, idempotency.Retry:
		id, ok := w.someRun(c.Kind)
		if !ok {
			return
		}
		c.ID = id
	}
	w.Submit(c)
	if c.Kind == idempotency.Pause {
		w.After(m.For, func() {
			if !w.calm {
				x.resume(j.Name)
			}
		})
	}
}

func (x *trial) resume(job string) {
	x.w.Submit(idempotency.Command{Kind: idempotency.Resume, ID: idempotency.ID{Job: job}})
}
