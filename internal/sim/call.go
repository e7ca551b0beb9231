package sim

import (
	"context"
	"errors"
	"time"

	"github.com/belfry-go/belfry/internal/core"
)

// Fate is what becomes of a call of the store.
type Fate struct {
	Lost   bool          // it never arrives
	Refuse bool          // it never arrives, and its sender is told so at once
	Commit time.Duration // from sending to happening; it may be past the call's deadline
	Mute   bool          // its answer is lost
	Reply  time.Duration // from happening to the answer
}

var errRefused = errors.New("store: connection refused")

// send makes a call. What happens to it happens whatever becomes of the sender.
func (r *Replica) send(call *core.Call) {
	w, life := r.w, r.life
	f := r.fate(call)
	w.Stats.Calls++
	heard := false
	answer := func(d time.Duration, reply func() core.Replied) {
		if r.life != life {
			return
		}
		r.after(d, func() {
			if !heard {
				heard = true
				r.tell(reply())
			}
		})
	}
	answer(call.Within, func() core.Replied { return call.Fail(context.DeadlineExceeded) })
	switch {
	case f.Refuse:
		answer(2*time.Millisecond, func() core.Replied { return call.Fail(errRefused) })
	case !f.Lost:
		w.After(f.Commit, func() {
			w.tap.who = r.Name
			reply := call.Do(context.Background(), w.tap)
			if !f.Mute {
				answer(f.Reply, func() core.Replied { return reply })
			}
		})
	}
}

func (r *Replica) fate(call *core.Call) Fate {
	w := r.w
	if w.Fate != nil {
		if f, ok := w.Fate(r, call.Name); ok {
			return f
		}
	}
	f := Fate{
		Commit: w.between(200*time.Microsecond, 8*time.Millisecond),
		Reply:  w.between(200*time.Microsecond, 8*time.Millisecond),
	}
	if r.blind > w.now {
		f.Lost, f.Refuse = true, w.chance(.3)
		return f
	}
	f.Lost = r.fault(Loss, .1)
	f.Mute = r.fault(Loss, .1)
	if r.fault(Late, .12) {
		f.Commit = w.between(call.Within, w.cfg.Timing.Lease*7/4)
	}
	if r.fault(Slow, .2) {
		f.Reply = w.between(20*time.Millisecond, call.Within)
	}
	return f
}

// fault is whether chance does one of a kind to this replica.
func (r *Replica) fault(f Fault, p float64) bool {
	return r.w.cfg.Faults&(r.w.mood|r.mood)&f != 0 && r.w.chance(p)
}
