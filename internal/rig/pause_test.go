//go:build unix

package rig

import (
	"slices"
	"syscall"
	"testing"
	"time"
)

// F09, F10: processes stand still for longer than their lease, after a handler's effect or just before a finish is
// sent. Others take their runs up; what the paused finish late, the store refuses, and their handlers are told.
func TestPaused(t *testing.T) {
	t.Parallel()
	for _, half := range []string{"one", "two"} {
		t.Run(half, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, spec{Works: mix()})
			f.three()
			f.freezePairs(times(5))
			f.ready()
			f.settle(law{})
		})
	}
}

// freezePairs pauses two of three processes at a time.
func (f *fleet) freezePairs(pauses int) {
	f.Helper()
	overtaken := 0
	for range pauses {
		names := f.names()
		f.rng.Shuffle(len(names), func(i, k int) { names[i], names[k] = names[k], names[i] })
		pair := []*proc{f.proc(names[0]), f.proc(names[1])}
		stops := []line{f.freeze(pair[0], "K4"), f.freeze(pair[1], "K5")}
		shortest := 1.5
		if times(1) > 1 {
			shortest += f.rng.Float64() * 3
		}
		f.pass(time.Duration(shortest * float64(f.base.Lease)))
		if f.overtaken(stops) {
			overtaken++
		}
		for _, p := range pair {
			f.signal(p, syscall.SIGCONT)
			f.order(p, order{Onward: true})
		}
		for k, p := range pair {
			f.await("the late finish to be answered", func() bool {
				return slices.ContainsFunc(f.book.lines, func(l line) bool {
					return (l.Phase == refused && l.Text == "fenced" || l.Phase == committed) && l.Pid == p.Pid() && l.Fence == stops[k].Fence
				})
			})
		}
	}
	if f.Logf("%d of %d pairs of pauses were overtaken", overtaken, pauses); overtaken*2 < pauses {
		f.Errorf("only %d of %d pairs of pauses were overtaken: nothing is shown", overtaken, pauses)
	}
}

// overtaken waits until others have done what the paused held. That never comes where one was stopped in the middle of
// a transaction: SQLite's lock is its process's, and it holds all others up as long as it stands.
func (f *fleet) overtaken(stops []line) (yes bool) {
	f.Helper()
	over := time.Now().Add(5 * f.base.Lease / 2)
	f.await("others to do what the paused held", func() bool {
		yes = !slices.ContainsFunc(stops, func(l line) bool { return !f.row(l.run()).ended })
		return yes || time.Now().After(over)
	})
	wrote := func(l line) bool { return l.Phase == committed && l.At > over.Add(-f.base.Lease).UnixMicro() }
	if !yes && slices.ContainsFunc(f.book.lines, wrote) {
		f.Errorf("others work, and leave what the paused hold: %v", stops)
	}
	return yes
}

// freeze lets a process stop itself at a point, and returns the line that says so.
func (f *fleet) freeze(p *proc, point string) line {
	f.Helper()
	f.paused[p.Pid()] = true
	return f.hit(p, fault{Point: point, Nth: 1 + f.rng.IntN(3), Act: stop})
}

// hit arms a fault that its process survives, and waits for the line that says that it happened.
func (f *fleet) hit(p *proc, x fault) (at line) {
	f.Helper()
	from := len(f.book.lines)
	f.order(p, order{Arm: &x})
	f.await(p.name+": "+x.String(), func() bool {
		for _, l := range f.book.lines[from:] {
			if l.Pid == p.Pid() && l.Phase == faulted {
				at = l
				return true
			}
		}
		return false
	})
	return at
}
