package sim

import (
	"slices"
	"time"

	"github.com/belfry-go/belfry/internal/core"
)

// rumour is what a replica says of itself; no state: it is gone. Later ones have a higher number.
type rumour struct {
	state string
	store string
	fence int64 // the highest that it has seen there
	back  bool  // it has seen it rolled back
	num   int64
}

// say spreads a rumour: to itself at once, to the others in a while; that one is
// gone they notice later than what it says.
func (r *Replica) say(x rumour) {
	x.num = r.said.num + 1
	r.said = x
	low, high := 20*time.Millisecond, 300*time.Millisecond
	if x.state == "" {
		low, high = 800*time.Millisecond, 1600*time.Millisecond
	} else {
		r.after(0, func() { r.hear(r.Name, x) })
	}
	for _, o := range r.w.replicas {
		if o != r && o.up {
			d := r.w.between(low, high)
			o.after(d, func() { o.hear(r.Name, x) })
		}
	}
}

// hear takes a rumour. While gossip does not reach the replica it waits until it does again.
func (r *Replica) hear(of string, x rumour) {
	if of != r.Name {
		if r.stale > r.w.now {
			r.after(r.stale-r.w.now, func() { r.hear(of, x) })
			return
		}
		if slices.Contains(r.omits, of) && x.state != "" {
			return
		}
	}
	if x.num <= r.heard[of].num {
		return
	}
	before := r.view()
	r.heard[of] = x
	if x.store != "" {
		e := core.Heard{Fences: map[string]int64{x.store: x.fence}}
		if x.back {
			e.RolledBack = map[string]bool{x.store: true}
		}
		if r.tell(e); !r.up { // it had only waited for a turn to stop
			return
		}
		r.w.loss.heard(r, x)
	}
	if now := r.view(); !slices.Equal(before, now) {
		r.w.note(r.Name, "sees", now)
		r.tell(core.RingChanged{Ring: r.w.ring(now)})
	}
}

// learnAll asks all others for what they say, as a replica that joins does, or one that joins again.
func (r *Replica) learnAll() {
	if !r.up {
		return
	}
	for _, o := range r.w.replicas {
		if o != r {
			r.after(r.w.between(5*time.Millisecond, 50*time.Millisecond), func() { r.hear(o.Name, o.said) })
		}
	}
}

// hint tells others that something lies there for them, straight and only once. Who does not hear gossip does not hear
// that either.
func (r *Replica) hint(names []string) {
	w := r.w
	for _, o := range w.replicas {
		if !slices.Contains(names, o.Name) {
			continue
		}
		w.Stats.Hints++
		deliver := func(d time.Duration) {
			if o.up && o.stale <= w.now {
				o.after(d, func() { o.tell(core.Hinted{}) })
			}
		}
		switch {
		case w.fault(Hint, .3): // lost
		case w.fault(Hint, .3):
			deliver(w.between(50*time.Millisecond, 5*time.Second))
		default:
			deliver(w.between(3*time.Millisecond, 20*time.Millisecond))
			if w.fault(Hint, .3) {
				deliver(w.between(3*time.Millisecond, time.Second))
			}
		}
	}
}

// Flood sends the replica hints that mean nothing, one each gap, for a while.
func (r *Replica) Flood(gap, d time.Duration) {
	r.w.note(r.Name, "is flooded with hints for", d)
	if !r.up {
		return
	}
	for at := time.Duration(0); at < d; at += gap {
		r.after(at, func() { r.tell(core.Hinted{}) })
	}
}

// view is the sorted names of those that own: who serves, or, where nobody does, who is unfit.
func (r *Replica) view() []string {
	for _, state := range []string{core.Serving, core.Unfit} {
		var names []string
		for name, x := range r.heard {
			if x.state == state {
				names = append(names, name)
			}
		}
		if len(names) > 0 {
			slices.Sort(names)
			return names
		}
	}
	return nil
}

// Stale keeps gossip from the replica for a while.
func (r *Replica) Stale(d time.Duration) {
	r.stale = max(r.stale, r.w.now+d)
	r.w.note(r.Name, "hears no gossip for", d)
}

// Omit keeps the replica from hearing of others, and makes it forget them; without names it hears of all again.
func (r *Replica) Omit(names ...string) {
	r.omits = names
	r.w.note(r.Name, "omits", names)
	if !r.up {
		return
	}
	r.after(0, func() {
		before := r.view()
		for _, name := range names {
			delete(r.heard, name)
		}
		if now := r.view(); !slices.Equal(before, now) {
			r.w.note(r.Name, "sees", now)
			r.tell(core.RingChanged{Ring: r.w.ring(now)})
		}
		r.learnAll()
	})
}
