//go:build unix

package rig

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/belfry-go/belfry/membership"
)

// T10, F13: a replica loses the store alone; its gossip is fine. What is its own to do starts elsewhere.
func TestBlind(t *testing.T) {
	t.Parallel()
	g := newFigures("T10")
	g.spread(t, trials(1, 3, 200), mostTrials, func(t *testing.T, _, n int) {
		f := newFleet(t, storeFigured(mix()))
		f.three()
		for range n {
			f.blind(g, f.anyone(nil))
		}
		g.judged(n, f.settle(law{}))
	})
	g.say(t, "owners blind to the store")
}

// blind cuts a replica from the store. It says so, the others leave it out and run its keys, and it comes back.
func (f *fleet) blind(g *figures, p *proc) {
	f.Helper()
	lanes := f.owned(p, "")
	cut := f.reach(p, storeCut)
	f.await("the others to see "+p.name+" unfit, and it to be not ready", func() bool {
		for name, x := range f.live {
			m := x.state.find(p.name)
			if name != p.name && (m.State != membership.Unfit || !strings.Contains(m.Reason, "the store fails") || slices.Contains(x.state.Owners, p.name)) {
				return false
			}
		}
		return strings.Contains(p.state.NotReady, "the store fails")
	})
	f.Logf("%s is cut from the store: %s", p.name, p.state.NotReady)
	f.await("the others to run its keys", func() bool { return len(f.lateness(lanes, cut)) == len(lanes) })
	g.add("its keys started late by", f.lateness(lanes, cut)...)
	f.idle(p, cut)
	f.reach(p, storeHealed)
	f.merged(p.name + " was cut from the store")
}

// half is the job that one of three replicas lacks.
var half = work{Name: "half", Every: 2 * time.Second, Keys: 12, Takes: 20 * time.Millisecond}

// T10, F27: a job is registered on two of three replicas, in the middle of a deploy or for good. What the third would own
// of it starts on the others.
func TestLacking(t *testing.T) {
	t.Parallel()
	recorded(t)
	g := newFigures("T10")
	g.spread(t, trials(1, 3, 200), mostTrials, func(t *testing.T, _, n int) {
		f := newFleet(t, storeFigured(append(mix(), half)))
		f.three()
		for range n {
			f.lacks(g, f.anyone(nil))
		}
		g.judged(n, f.settle(law{}))
	})
	g.say(t, "owners that lack a job")
}

// lacks starts a replica again without one of its jobs, and later with it.
func (f *fleet) lacks(g *figures, p *proc) {
	f.Helper()
	lanes := f.owned(p, half.Name)
	f.leave(p)
	s := f.base
	s.Name = p.name
	s.Works = slices.DeleteFunc(slices.Clone(s.Works), func(w work) bool { return w.Name == half.Name })
	without := f.launch(p.name, s)
	f.ready()
	since := line{Pid: without.Pid(), At: time.Now().UnixMicro()}
	f.await("the others to run its keys", func() bool { return len(f.lateness(lanes, since)) == len(lanes) })
	g.add("its keys started late by", f.lateness(lanes, since)...)
	if l := f.after(0, claimed, without); l == nil {
		f.Errorf("%s claimed nothing of the jobs that it has", p.name)
	}
	for _, l := range f.book.lines {
		if l.Pid == without.Pid() && l.Job == half.Name {
			f.Errorf("%s lacks %s, and %v", p.name, half.Name, l)
		}
	}
	f.leave(without)
	f.start(p.name, nil)
	f.ready()
}

// leave lets a replica go, in order.
func (f *fleet) leave(p *proc) {
	f.Helper()
	f.signal(p, syscall.SIGTERM)
	f.drained(p)
}

// T10, F29: a handler ignores its context. At its timeout its run goes to another attempt, its worker stays taken, and
// others do what its replica owns; when it does return, nobody listens.
func TestHung(t *testing.T) {
	t.Parallel()
	g := newFigures("T10")
	g.spread(t, trials(1, 3, 200), mostTrials, func(t *testing.T, _, n int) {
		s := storeFigured(mix())
		for i := range s.Works {
			s.Works[i].Timeout = time.Second
		}
		f := newFleet(t, s)
		f.start("b", nil)
		f.start("c", nil)
		s = f.base
		s.Name, s.Concurrency = "a", 1
		a := f.launch("a", s)
		f.ready()
		for range n {
			f.hangs(g, a)
		}
		g.judged(n, f.settle(law{}))
	})
	g.say(t, "owners whose only worker hangs, timeout 1 s")
}

// hangs hangs the only worker of a replica, and lets it go.
func (f *fleet) hangs(g *figures, p *proc) {
	f.Helper()
	lanes, from := f.owned(p, ""), len(f.book.lines)
	at := f.hit(p, fault{Point: "K3", Nth: 1, Act: hang})
	f.await("the hung run to be done in another attempt", func() bool {
		return f.row(at.run()).ended && slices.ContainsFunc(f.book.lines[from:], func(l line) bool { return l.Phase == stuck && l.Fence == at.Fence })
	})
	hung := len(f.book.lines)
	f.await("others to run its keys", func() bool { return len(f.lateness(lanes, at)) == len(lanes) })
	g.add("its keys started late by", f.lateness(lanes, at)...)
	for _, l := range f.book.lines[hung:] {
		if l.Pid == p.Pid() && l.Phase == started {
			f.Errorf("the only worker hangs, and %v started", l.run())
		}
	}
	f.order(p, order{Onward: true})
	f.await("the handler to return", func() bool {
		return slices.ContainsFunc(f.book.lines[hung:], func(l line) bool { return l.Phase == returned && l.Fence == at.Fence })
	})
	f.ready()
}

// TestBusy is the twin of TestHung: owners have more to do than they have workers for, and their handlers are slow. They go on, so
// nobody takes their work from them.
func TestBusy(t *testing.T) {
	t.Parallel()
	recorded(t)
	g := newFigures("T10")
	slowWork := work{Name: "slow", Every: 8 * time.Second, Keys: 24, Takes: time.Second}
	g.spread(t, trials(1, 3, 200), mostTrials, func(t *testing.T, _, n int) {
		s := storeFigured([]work{slowWork})
		s.Concurrency = 2
		f := newFleet(t, s)
		f.three()
		from, before := time.Now().Unix(), f.states()
		dues := func(to int64) int64 { return to/8 - from/8 }
		f.await(fmt.Sprintf("%d dues to be over", n), func() bool { return dues(time.Now().Unix()-8) >= int64(n) })
		hedges := f.hedges(from)
		g.add("keys started late by", lateOf(f.starts(dueIn(from+1, from+8*int64(n))))...)
		g.note("hedged claims", hedges)
		if stalls := f.seen(before).Stalls; hedges > 0 && stalls == 0 {
			t.Errorf("%d claims were hedged, of owners that were busy", hedges)
		}
		g.judged(n, f.settle(law{}))
	})
	g.say(t, "dues of owners that are busy with slow handlers")
}

// hedges counts the claims of what another replica owns, of runs that came due later than an instant.
func (f *fleet) hedges(since int64) (n int) {
	for _, l := range f.book.lines {
		if l.Phase == hedged && l.Due > since {
			n++
		}
	}
	return n
}
