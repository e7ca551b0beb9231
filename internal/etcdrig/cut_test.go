//go:build unix

package etcdrig

import (
	"context"
	"sync"
	"testing"

	"github.com/belfry-go/belfry/internal/faultproxy"
)

// LD-03: the leader is cut off from etcd, in silence or by resets, and not from the store, while it runs dues: it ends its term by itself
// before another leads, and the runs that it had begun go on to their end; what is due then is the next leader's.
func TestCut(t *testing.T) {
	skipSlow(t)
	t.Parallel()
	f := newFleet(t, 1)
	for i := range times(2) {
		f.cut(i)
	}
	f.settle()
}

// cut cuts the leader off with runs that last until another leads, and until they have been finished.
func (f *fleet) cut(round int) {
	f.Helper()
	p, at := f.holding()
	silent := round%2 == 0
	for _, w := range f.wires[p.name] {
		sever(w, silent)
	}
	at.At = mono()
	f.next("cut off, next leader", at)
	f.await("the leader that is cut off to leave its role", func() bool {
		return f.first(0, func(l line) bool { return l.Phase == leftRole && l.Pid == p.Pid() && l.Term == at.Term }) != nil
	})
	finished := func() bool {
		return f.first(0, func(l line) bool {
			return l.Phase == committed && l.Pid == p.Pid() && l.Due == at.Due && l.Fence == at.Fence
		}) != nil
	}
	lost := func() bool { // its session, by itself: it stood still
		return f.first(0, func(l line) bool { return l.Phase == session && l.Pid == p.Pid() && l.At > at.At }) != nil
	}
	f.await("the ledger", func() bool { return true })
	if finished() && !lost() {
		f.Errorf("the run of due %d has ended with term %d of %s, in which it began", at.Due, at.Term, p.name)
	}
	f.order(p, order{})
	f.await("what the leader had begun to be finished by it", func() bool { return finished() || lost() })
	for _, w := range f.wires[p.name] {
		mend(w)
	}
	f.ready()
}

// holding has the leader's runs go on until it is told something else, and returns the first that does.
func (f *fleet) holding() (p *proc, at line) {
	f.Helper()
	for {
		p, term := f.leader()
		from, led := len(f.book.lines), true
		f.order(p, order{Hold: true})
		f.await("the leader to run a due for long", func() bool {
			l := f.first(from, func(l line) bool { return l.Phase == held && l.Pid == p.Pid() && l.Term == term })
			if l != nil {
				at = *l
			}
			led = f.first(from, func(l line) bool { return l.Phase == inRole && l.Term > term }) == nil
			return l != nil || !led
		})
		if led {
			return p, at
		}
		f.order(p, order{}) // it leads no more by itself
	}
}

func (f *fleet) order(p *proc, o order) {
	f.Helper()
	if err := p.Send(o); err != nil {
		f.Fatal(err)
	}
}

// wire lays one for a replica to each etcd server.
func (f *fleet) wire(name string, servers int) {
	f.Helper()
	for i := range servers {
		w, err := faultproxy.Listen(f.etcd.Addr(i))
		if err != nil {
			f.Fatal(err)
		}
		f.Cleanup(func() {
			if err := w.Close(); err != nil {
				f.Error(err)
			}
		})
		f.wires[name] = append(f.wires[name], w)
	}
}

// sever ends all that goes through, with a reset unless it is silent.
func sever(w *faultproxy.Proxy, silent bool) {
	if silent {
		w.ToServer.Swallow(true)
		w.ToClient.Swallow(true)
		return
	}
	w.Refuse(true)
	w.Reset()
}

// mend ends sever, and the connections that are half-open by it.
func mend(w *faultproxy.Proxy) {
	w.ToServer.Swallow(false)
	w.ToClient.Swallow(false)
	w.Refuse(false)
	w.Reset()
}

// gate has runs wait, in the child process.
type gate struct {
	mu   sync.Mutex
	shut chan struct{} // closed when it opens; nil: it is open
}

func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case shut && g.shut == nil:
		g.shut = make(chan struct{})
	case !shut && g.shut != nil:
		close(g.shut)
		g.shut = nil
	}
}

// pass waits until the gate is open, or the context has ended. A run that has to wait calls first.
func (g *gate) pass(ctx context.Context, first func()) {
	g.mu.Lock()
	shut := g.shut
	g.mu.Unlock()
	if shut == nil {
		return
	}
	first()
	select {
	case <-shut:
	case <-ctx.Done():
	}
}
