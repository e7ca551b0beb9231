package electortest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// laws are what Run has tests of.
var laws = []struct {
	name  string
	holds func(*trial)
}{
	{"Alone", alone},
	{"Ended", ended},
	{"Follow", follow},
	{"Return", returns},
	{"Fail", fails},
	{"Linger", linger},
	{"Kill", kill},
	{"Cut", cut},
	{"Again", again},
	{"Changes", changes},
}

// alone: who stands alone is elected, with a term above 0 and a context that lives, from which others can be derived. All end with Lead's.
func alone(r *trial) {
	p := r.start("a")
	c := r.next()
	if c.term <= 0 {
		r.Errorf("term %d, want one above 0", c.term)
	}
	if err := c.ctx.Err(); err != nil {
		r.Errorf("the leader's context has ended: %v", err)
	}
	derived, cancel := context.WithCancel(c.ctx)
	defer cancel()
	r.leave(p)
	if c.ctx.Err() == nil || derived.Err() == nil {
		r.Errorf("Lead has returned, and the leader's context says %v, one derived from it %v", c.ctx.Err(), derived.Err())
	}
	if !r.hasLeft(c) {
		r.Error("Lead has returned before lead has")
	}
}

// ended: a Lead whose context has ended before returns nil and calls nobody.
func ended(r *trial) {
	ctx, end := context.WithCancel(r.Context())
	end()
	var called atomic.Bool // it may be called from anywhere
	err := r.election.Elector("a").Lead(ctx, func(context.Context, int64) error { called.Store(true); return nil })
	if err != nil || called.Load() {
		r.Errorf("Lead returned %v, and called lead: %v; want nil and no call", err, called.Load())
	}
}

// follow: each that waits gets its turn when those before leave.
func follow(r *trial) {
	for i := range 3 {
		r.start(fmt.Sprint("r", i))
	}
	seen := make(map[string]bool)
	for range 3 {
		c := r.next()
		if seen[c.name] {
			r.Errorf("%s has left and leads again", c.name)
		}
		seen[c.name] = true
		r.leave(c.replica)
	}
}

// returns: a lead that returns resigns, so that one leads in a new term; and its context ends with the term.
func returns(r *trial) {
	r.start("a")
	r.start("b")
	c := r.next()
	c.answer <- nil
	r.next()
	r.over(c)
}

// fails: a lead that fails resigns likewise, and does not end its Lead.
func fails(r *trial) {
	p := r.start("a")
	c := r.next()
	c.answer <- errLead
	if c = r.next(); c.replica != p {
		r.Errorf("%s leads; only a stands", c.name)
	}
	r.leave(p)
}

// linger: Lead waits for a lead that takes its time after the end of its context, and so does the next leader: it is elected once that has
// returned. (How long at most is each elector's own to say.)
func linger(r *trial) {
	cling := make(chan struct{})
	release := sync.OnceFunc(func() { close(cling) })
	defer release() // also where the test ends before
	p := r.stand("a", r.election.Elector("a"), cling)
	c := r.next()
	b := r.start("b")
	p.end()
	r.over(c)
	select {
	case <-p.done:
		r.Error("Lead has returned while lead runs")
	case n := <-r.calls:
		r.Errorf("%s leads while the lead of %s, whose context has just ended, has not returned", n.name, c.name)
		r.calls <- n
	case <-time.After(50 * time.Millisecond): // one that does not wait returns in less, as a rule; one that waits never does
	}
	release()
	r.leave(p)
	if !r.hasLeft(c) {
		r.Error("Lead has returned before lead has")
	}
	if n := r.next(); n.replica != b {
		r.Errorf("%s leads; only b stands", n.name)
	}
}

// kill: when a leader vanishes another leads.
func kill(r *trial) {
	r.start("a")
	r.start("b")
	c := r.next()
	r.kill(c.replica)
	if n := r.next(); n.replica == c.replica {
		r.Errorf("%s was killed and leads", n.name)
	}
}

// cut: the context of a leader that is cut off ends by itself, and says why, before another leads; when it is back it leads in its turn.
func cut(r *trial) {
	cutter, ok := r.election.(Cutter)
	if !ok {
		r.Skip("the election cannot cut a replica off")
	}
	r.start("a")
	r.start("b")
	c := r.next()
	derived, cancel := context.WithCancel(c.ctx)
	defer cancel()
	cutter.Cut(c.name)
	n := r.next() // looks whether c's context has ended
	if n.replica == c.replica {
		r.Fatalf("%s is cut off and leads", c.name)
	}
	if why := context.Cause(c.ctx); why == nil || errors.Is(why, context.Canceled) {
		r.Errorf("the cause of the end is %v; want one that says what happened", why)
	}
	if derived.Err() == nil {
		r.Error("a context that was derived from the leader's has not ended with it")
	}
	cutter.Mend(c.name)
	r.leave(n.replica)
	if back := r.next(); back.replica != c.replica {
		r.Errorf("%s leads; only %s stands", back.name, c.name)
	}
}

// again: one elector's Lead can be called again after it has returned.
func again(r *trial) {
	e := r.election.Elector("a")
	for range 2 {
		r.leave(func() *replica { p := r.stand("a", e, nil); r.next(); return p }())
	}
}

// changes: many leaders, one after the other, each of which goes in another way.
func changes(r *trial) {
	for i := range 3 {
		r.start(fmt.Sprint("r", i))
	}
	for i := range r.changes {
		c := r.next()
		switch i % 3 {
		case 0:
			c.answer <- nil
		case 1:
			c.answer <- errLead
		case 2:
			r.leave(c.replica)
			r.start(fmt.Sprint("r", 3+i))
		}
	}
}
