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
	f := newFleet(t, spec{Works: mix()})
	f.three()
	for i := range times(10) {
		names := f.names()
		f.rng.Shuffle(len(names), func(i, k int) { names[i], names[k] = names[k], names[i] })
		pair := []*proc{f.proc(names[0]), f.proc(names[1])}
		stops := []line{f.freeze(pair[0], "K4"), f.freeze(pair[1], "K5")}
		longest := 4.
		if times(1) == 1 {
			longest = 1.
		}
		f.pass(time.Duration((1.5 + longest*f.rng.Float64()*7/8) * float64(f.base.Lease)))
		for _, l := range stops {
			f.await("another replica to do what the paused one held", func() bool { return f.row(l.run()).ended })
		}
		for k, p := range pair {
			f.signal(p, syscall.SIGCONT)
			f.order(p, order{Onward: true})
			f.await("the late finish to be refused", func() bool {
				return slices.ContainsFunc(f.book.lines, func(l line) bool {
					return l.Phase == refused && l.Text == "fenced" && l.Pid == p.Pid() && l.Fence == stops[k].Fence
				})
			})
		}
		t.Logf("pause %d: %s of %v and %s of %v", i, stops[0].Text, stops[0].run(), stops[1].Text, stops[1].run())
	}
	f.ready()
	f.settle(law{})
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
