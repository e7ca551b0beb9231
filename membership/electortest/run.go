package electortest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Election is one election of a test's own, in which nobody leads or stands at first. Its methods are for the test's goroutine.
type Election interface {
	// Elector returns the elector of a further replica. Names do not repeat within an election.
	Elector(name string) Elector

	// Kill has a replica vanish without a word, as a process that was killed: from when Kill returns nothing that it does or does
	// not do reaches the election, its resignation least of all. Its Lead may go on or return; its calls of lead count no more.
	Kill(name string)
}

// Cutter is a further power of an Election: to cut a living replica off from what elects, so that nothing of it gets there and nothing comes back.
type Cutter interface {
	// Cut cuts a replica off. Its process lives on, and so does what it knows.
	Cut(name string)

	// Mend ends Cut.
	Mend(name string)
}

// Config says what Run tests.
type Config struct {
	// Open returns a new election. It ends what it started by t.Cleanup.
	Open func(t *testing.T) Election

	// Bubble runs each test in a bubble of testing/synctest, for elections that use no real I/O. Open is called inside.
	Bubble bool

	// Changes is how many leaders the longest test has. Default 20.
	Changes int
}

// Run tests the contract of an elector, as scheduler.Elector has it: who leads alone, when and with which term, and how one leader follows the other.
func Run(t *testing.T, c Config) {
	if c.Changes == 0 {
		c.Changes = 20
	}
	for _, l := range laws {
		t.Run(l.name, func(t *testing.T) {
			if c.Bubble {
				synctest.Test(t, func(t *testing.T) { l.holds(newTrial(t, c.Open(t), c.Changes)) })
				return
			}
			t.Parallel()
			l.holds(newTrial(t, c.Open(t), c.Changes))
		})
	}
}

// patience bounds each wait for what must happen. It is no promise of any elector's.
const patience = time.Minute

// trial is one test of one election: it starts replicas, and has each call of lead checked against all others.
type trial struct {
	testing.TB
	election Election
	changes  int        // how many leaders the longest has
	calls    chan *call // of living replicas, in the order in which they began; roomy enough never to block

	mu    sync.Mutex
	term  int64 // the highest so far
	under []*call
	stood int // how many replicas stood so far
}

// replica is a candidate whose Lead is under way or was.
type replica struct {
	name string
	end  context.CancelFunc
	done chan struct{} // closed when Lead has returned, with err
	err  error
	dead bool // guarded by the trial: killed, so its calls count no more
}

// call is a call of lead. It returns when the test lets it, or when its context has ended.
type call struct {
	*replica
	ctx    context.Context
	term   int64
	answer chan error    // has room for one: what lead returns
	cling  chan struct{} // where it is not nil: lead waits for its close too, once its context has ended
	left   bool          // guarded by the trial: lead is about to return
}

var errLead = errors.New("electortest: lead fails, as the test wants")

func newTrial(t testing.TB, e Election, changes int) *trial {
	return &trial{TB: t, election: e, changes: changes, calls: make(chan *call, 1000)}
}

// stop ends a replica, and waits for it.
func (r *trial) stop(p *replica) {
	p.end()
	select {
	case <-p.done:
	case <-time.After(patience):
		r.Errorf("%s: Lead has not returned %v after the end of its context", p.name, patience)
	}
}

// start has a new replica stand.
func (r *trial) start(name string) *replica { return r.stand(name, r.election.Elector(name), nil) }

// stand has an elector's Lead called. A lead waits for the end of cling too, unless it is nil.
func (r *trial) stand(name string, e Elector, cling chan struct{}) *replica {
	ctx, end := context.WithCancel(context.Background())
	p := &replica{name: name, end: end, done: make(chan struct{})}
	r.stood++
	r.Cleanup(func() { r.stop(p) }) // before what the elector needs ends, since that was registered earlier
	go func() {
		defer close(p.done)
		p.err = e.Lead(ctx, func(ctx context.Context, term int64) error { return r.lead(p, ctx, term, cling) })
	}()
	return p
}

// lead is what each replica calls when it is elected.
func (r *trial) lead(p *replica, ctx context.Context, term int64, cling chan struct{}) error {
	c := &call{replica: p, ctx: ctx, term: term, answer: make(chan error, 1), cling: cling}
	r.begin(c)
	defer r.end(c)
	select {
	case err := <-c.answer:
		return err
	case <-ctx.Done():
	}
	if c.cling != nil {
		<-c.cling
	}
	return ctx.Err()
}

// begin checks a call against those before: they have returned, or at least their contexts have ended; and terms rise.
func (r *trial) begin(c *call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.dead {
		return
	}
	select {
	case <-c.done:
		r.Errorf("%s: lead is called after Lead has returned", c.name)
	default:
	}
	for _, o := range r.under {
		switch {
		case o.replica == c.replica:
			r.Errorf("%s: lead is called for term %d while that for term %d has not returned", c.name, c.term, o.term)
		case !o.dead && o.ctx.Err() == nil:
			r.Errorf("%s leads in term %d while %s leads in term %d: its context has not ended", c.name, c.term, o.name, o.term)
		}
	}
	if c.term <= r.term {
		r.Errorf("%s: term %d is not above %d", c.name, c.term, r.term)
	}
	r.term = max(r.term, c.term)
	r.under = append(r.under, c)
	r.calls <- c
}

func (r *trial) end(c *call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.left = true
	for i, o := range r.under {
		if o == c {
			r.under = append(r.under[:i], r.under[i+1:]...)
			return
		}
	}
}

func (r *trial) hasLeft(c *call) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return c.left
}

// kill has a replica vanish.
func (r *trial) kill(p *replica) {
	r.mu.Lock()
	p.dead = true
	r.mu.Unlock()
	r.election.Kill(p.name)
}

// next waits for the next leader. One that was elected and deposed meanwhile counts too.
func (r *trial) next() *call {
	r.Helper()
	select {
	case c := <-r.calls:
		return c
	case <-time.After(patience):
		r.Fatalf("nobody is elected within %v; %s", patience, r.state())
		return nil
	}
}

// over waits for the end of a call's context.
func (r *trial) over(c *call) {
	r.Helper()
	select {
	case <-c.ctx.Done():
	case <-time.After(patience):
		r.Fatalf("%s: the context of term %d has not ended within %v", c.name, c.term, patience)
	}
}

// leave ends a replica, and waits for its Lead, which returns nil.
func (r *trial) leave(p *replica) {
	r.Helper()
	p.end()
	select {
	case <-p.done:
	case <-time.After(patience):
		r.Fatalf("%s: Lead has not returned %v after the end of its context", p.name, patience)
	}
	if p.err != nil {
		r.Errorf("%s: Lead returned %v when its context ended, want nil", p.name, p.err)
	}
}

func (r *trial) state() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Sprintf("%d replicas, %d calls of lead under way, highest term %d", r.stood, len(r.under), r.term)
}
