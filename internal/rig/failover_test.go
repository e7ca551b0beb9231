//go:build unix

package rig

import (
	"syscall"
	"testing"
	"time"

	"github.com/belfry-go/belfry/membership"
)

// mostTrials is how many one fleet makes at most, so that one that fails takes few with it.
const mostTrials = 10

// figured is the setting of a row whose long run is in production's: profile LAN and the default timing of the store.
func figured(works []work) spec {
	if *size != "long" {
		return spec{Works: works}
	}
	s := slowly
	s.Works = works
	return s
}

// storeFigured is figured with profile Fast, which is the default.
func storeFigured(works []work) spec {
	s := figured(works)
	s.Profile = membership.Fast
	return s
}

// T8, F03-F05: an owner is killed with due work, and others take it up. Lateness is from the due: of what it held, and of what
// was its own to do and came due when it was gone.
func TestFailover(t *testing.T) {
	t.Parallel()
	recorded(t)
	g := newFigures("T8")
	g.spread(t, trials(0, 15, 300), min(mostTrials, trials(0, 5, 10)), func(t *testing.T, _, n int) {
		f := newFleet(t, figured(mix()))
		f.three()
		for range n {
			f.failover(g)
		}
		g.judged(n, f.settle(law{}))
	})
	g.say(t, "owners killed with due work, lease %v", figured(nil).leased())
	g.keepsSessions(t)
}

// leased is the lease of a spec.
func (s spec) leased() time.Duration {
	if s.Lease == 0 {
		return lease()
	}
	return s.Lease
}

// failover kills one replica in the middle of a run, and waits until others have done what was its own.
func (f *fleet) failover(g *figures) {
	f.Helper()
	p := f.anyone(nil)
	lanes, from := f.owned(p, ""), len(f.book.lines)
	x := fault{Point: []string{"K2", "K3", "K4"}[f.rng.IntN(3)], Nth: 1 + f.rng.IntN(3), Act: kill}
	f.condemn(p, x)
	f.dead(p, x)
	crash := *f.after(from, faulted, p)
	held := f.heldBy(p)
	if len(held) == 0 {
		f.Fatalf("%s died at %s and held nothing", p.name, x)
	}
	others := func(r run) bool { return held[r] }
	f.await("others to take up what "+p.name+" held", func() bool {
		again := f.starts(others, p.Pid())
		for r := range held {
			if _, had := again[r]; !had && !f.row(r).ended { // its finish may have been on its way
				return false
			}
		}
		return true
	})
	f.await("others to run its keys", func() bool { return len(f.lateness(lanes, crash)) == len(lanes) })
	g.add("what it held started anew late by", lateOf(f.starts(others, p.Pid()))...)
	g.add("what came due afterwards started late by", f.lateness(lanes, crash)...)
	f.start(p.name, nil)
	f.ready()
}

// heldBy are the runs that a process has claimed and not ended.
func (f *fleet) heldBy(p *proc) map[run]bool {
	held := map[run]bool{}
	for _, l := range f.book.lines {
		switch {
		case l.Pid != p.Pid():
		case l.Phase == claimed:
			held[l.run()] = true
		case l.Phase == committed || l.Phase == refused && l.Text == "fenced":
			delete(held, l.run())
		}
	}
	return held
}

// owned are the lanes of a replica, of one job or all: what it does while nothing else changes.
func (f *fleet) owned(p *proc, job string) map[run]bool {
	f.Helper()
	began, from := time.Now(), len(f.book.lines)
	var lanes map[run]bool
	f.await(p.name+" to work", func() bool {
		lanes = map[run]bool{}
		for _, l := range f.book.lines[from:] {
			if l.Pid == p.Pid() && l.Phase == committed && (job == "" || l.Job == job) {
				lanes[run{l.Job, l.Key, 0}] = true
			}
		}
		return time.Since(began) > 6*time.Second && len(lanes) > 0
	})
	return lanes
}

// T9, F25: replicas are told to stop on a due second, and hand over: no attempt is burnt, nothing crashes or is missed.
func TestStoppedOnDue(t *testing.T) {
	t.Parallel()
	g := newFigures("T9")
	g.spread(t, trials(5, 10, 200), min(mostTrials, trials(5, 5, 10)), func(t *testing.T, _, n int) {
		f := newFleet(t, storeFigured(mix()))
		f.three()
		var stops []int64
		for range n {
			p := f.anyone(nil)
			stops = append(stops, f.stopOnDue(p))
			f.start(p.name, nil)
			f.ready()
		}
		j := f.settle(law{})
		g.judged(n, j)
		for r, row := range j.rows {
			if j.crashedForNothing(r, f.book.lines) {
				t.Errorf("%v has %d crashes", r, row.crashes)
			}
		}
		for _, due := range stops {
			g.add("due then or a second later: started late by", lateOf(f.starts(dueIn(due, due+1)))...)
		}
	})
	g.say(t, "replicas told to stop on a due second")
	g.keepsSessions(t)
}

// stopOnDue tells a replica to stop within 20 ms of a whole second, on which dues are, and returns the second when it has
// ended.
func (f *fleet) stopOnDue(p *proc) int64 {
	f.Helper()
	now := time.Now()
	due := now.Truncate(time.Second).Add(2 * time.Second)
	f.pass(due.Add(-20 * time.Millisecond).Sub(now))
	f.pass(time.Duration(f.rng.Int64N(int64(40 * time.Millisecond))))
	f.signal(p, syscall.SIGTERM)
	f.drained(p)
	return due.Unix()
}
