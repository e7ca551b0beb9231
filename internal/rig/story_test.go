//go:build unix

package rig

import (
	"fmt"
	"slices"
	"strings"
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
