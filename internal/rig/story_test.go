//go:build unix

package rig

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// F20: a second live replica takes a name. The older one goes on running, owns nothing and says why, until the newer
// is gone.
func TestOneNameTwice(t *testing.T) {
	t.Parallel()
	f := newFleet(t, spec{Works: mix()})
	older, other, _ := f.three()
	s := f.base
	s.Name = older.name
	newer := f.launch("a again", s)
	f.await("the older to step back", func() bool {
		return strings.Contains(older.state.NotReady, "superseded by boot") && !slices.Contains(older.state.Owners, "a") &&
			newer.state.NotReady == "" && slices.Equal(newer.state.Owners, []string{"a", "b", "c"})
	})
	back := time.Now().Unix()
	f.await("the newer and the others to work", func() bool {
		return slices.ContainsFunc(f.book.lines, func(l line) bool {
			return l.Pid == newer.Pid() && l.Phase == committed && l.Due > back+4
		})
	})
	for _, l := range f.book.lines {
		if l.Pid == older.Pid() && l.Phase == claimed && l.Due > back+1 {
			t.Errorf("the older replica owns nothing, and claimed %v", l.run())
		}
	}
	if older.ended || other.ended {
		t.Error("a replica ended because another took a name")
	}
	f.kill(newer)
	f.await("the older to own again", func() bool { return older.state.NotReady == "" })
	f.settle(law{})
}

// F28: a handler panics, and its replica records that; a goroutine of a handler does, and its process dies of it.
func TestPanics(t *testing.T) {
	t.Parallel()
	f := newFleet(t, spec{Works: mix()})
	a, b, _ := f.three()
	for range times(1) {
		f.order(b, order{Arm: &fault{Point: "K3", Nth: 1, Act: throw}})
		f.order(a, order{Arm: &fault{Point: "K3", Nth: 1, Act: crash}})
		f.dead(a, fault{Act: crash})
		a = f.start("a", nil)
		f.await("the panic", func() bool { return f.wrote(b, faulted, throw) != nil })
	}
	f.ready()
	f.settle(law{})
}

// F29, T10: a handler ignores its context. At its timeout its run goes to another attempt, its worker stays taken, and
// others do what its replica owns; when it does return, nobody listens.
func TestHung(t *testing.T) {
	t.Parallel()
	works := mix()
	for i := range works {
		works[i].Timeout = time.Second
	}
	f := newFleet(t, spec{Works: works})
	f.start("b", nil)
	f.start("c", nil)
	s := f.base
	s.Name, s.Concurrency = "a", 1
	a := f.launch("a", s)
	f.ready()
	for range times(1) {
		from := len(f.book.lines)
		at := f.hit(a, fault{Point: "K3", Nth: 1, Act: hang})
		f.await("the hung run to be done in another attempt", func() bool {
			return f.row(at.run()).ended && slices.ContainsFunc(f.book.lines[from:], func(l line) bool { return l.Phase == stuck && l.Fence == at.Fence })
		})
		hung := len(f.book.lines)
		f.await("a while to pass", func() bool { return time.Now().Unix() > at.Due+4 })
		for _, l := range f.book.lines[hung:] {
			if l.Pid == a.Pid() && l.Phase == started {
				t.Errorf("the only worker hangs, and %v started", l.run())
			}
		}
		f.order(a, order{Onward: true})
		f.await("the handler to return", func() bool {
			return slices.ContainsFunc(f.book.lines[hung:], func(l line) bool { return l.Phase == returned && l.Fence == at.Fence })
		})
	}
	f.settle(law{})
}

// T9: replicas are told to stop on a due second, and hand over: no attempt is burnt, nothing crashes or is missed.
func TestStoppedOnDue(t *testing.T) {
	t.Parallel()
	f := newFleet(t, spec{Works: mix()})
	f.three()
	for range times(5) {
		p := f.anyone(nil)
		now := time.Now()
		f.pass(now.Truncate(time.Second).Add(2*time.Second - 20*time.Millisecond).Sub(now))
		f.pass(time.Duration(f.rng.Int64N(int64(40 * time.Millisecond))))
		f.signal(p, syscall.SIGTERM)
		f.drained(p)
		f.start(p.name, nil)
		f.ready()
	}
	j := f.settle(law{})
	for r, row := range j.rows {
		if row.crashes > 0 && j.lost == 0 {
			t.Errorf("%v has %d crashes", r, row.crashes)
		}
	}
}

// F59: two thousand jobs without keys are due in one second.
func TestHerd(t *testing.T) {
	t.Parallel()
	herd := 2000
	if slow {
		herd = 200 // to announce more takes SQLite longer than a call may
	}
	f := newFleet(t, spec{Concurrency: 32})
	f.three()
	for i := range times(1) {
		due := time.Now().Add(5 * time.Second).Truncate(time.Second)
		f.add(work{Name: fmt.Sprintf("herd-%d", i), At: due, Copies: herd, Takes: time.Millisecond})
		f.await("the due", func() bool { return time.Now().After(due) })
	}
	j := f.settle(law{})
	if got, want := j.tally(), fmt.Sprintf("%d done", times(1)*herd); got != want {
		t.Errorf("%s; want %s", got, want)
	}
}
