package sim

import (
	"context"
	"errors"
	"time"

	"github.com/belfry-go/belfry/internal/core"
	"github.com/belfry-go/belfry/internal/sim/oracle"
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

// send makes a call. What happens to it happens whatever becomes of the sender, who hears of it once: how it ended, or
// at its deadline that it has not.
func (r *Replica) send(c *core.Call) {
	w, f := r.w, r.fate(c)
	w.Stats.Calls++
	w.loss.sent(r, c)
	if f.Refuse {
		r.unheard(0)
		r.hears(min(2*time.Millisecond, c.Within), c.Fail(errRefused))
		return
	}
	answered := !f.Lost && !f.Mute && f.Commit+f.Reply < c.Within
	if !answered {
		f.Reply = -1
		r.unheard(c.Within)
		r.hears(c.Within, c.Fail(context.DeadlineExceeded))
	}
	if d := f.Commit + f.Reply; d > oracle.Quick {
		r.unheard(d)
	}
	if !f.Lost {
		w.plan(w.now+f.Commit, event{call: c, replica: r, life: r.life, reply: f.Reply})
	}
}

// unheard tells that the store's answer does not come at once.
func (r *Replica) unheard(d time.Duration) {
	r.tellOracle(func(o *oracle.Oracle) { o.Unheard(r.boot(), d) })
}

// happen is a call's moment in the store.
func (r *Replica) happen(e event) {
	r.w.tap.who = r.Name
	reply := e.call.Do(context.Background(), r.w.front)
	if e.reply >= 0 && r.life == e.life {
		r.hears(e.reply, reply)
		r.w.loss.answered(r, e, reply)
	}
}

// hears tells the replica's present process something once d has passed.
func (r *Replica) hears(d time.Duration, e core.Event) {
	r.w.plan(r.w.now+d, event{word: e, replica: r, life: r.life})
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
