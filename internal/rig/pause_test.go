//go:build unix

package rig

import (
	"slices"
	"syscall"
	"testing"
	"time"
)

// F09, F10: processes stand still for 1.5 to 5 leases, after a handler's effect or just before a finish is sent.
// Others take their runs up; what the paused finish late, the store refuses, and their handlers are told.
func TestPaused(t *testing.T) {
	t.Parallel()
	for _, half := range []string{"one", "two"} {
		t.Run(half, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, spec{Works: mix()})
			f.three()
			f.freeze(times(10))
			f.ready()
			f.settle(law{})
		})
	}
}

// pause is one of a process.
type pause struct {
	*proc
	from    int       // lines of the ledger that were there before
	at      line      // what it stopped in; of no process: it has not yet
	thaw    time.Time // not before
	resumed bool
}

// freeze pauses processes, two at a time; the third lives. It goes on until others have overtaken so many pauses.
func (f *fleet) freeze(pauses int) {
	f.Helper()
	held, active := 0, []*pause{}
	for left := pauses; left > 0 || len(active) > 0; {
		for ; len(active) < 2 && left > 0; left-- {
			active = append(active, f.chill(active, []string{"K4", "K5"}[left%2]))
		}
		var next *pause
		f.await("a paused process to come a step further", func() bool {
			i := slices.IndexFunc(active, f.further)
			if i >= 0 {
				next = active[i]
			}
			return i >= 0
		})
		switch {
		case next.at.Pid == 0:
			next.at = *f.after(next.from, faulted, next.proc)
			next.thaw = time.Now().Add(f.base.Lease + f.base.Lease/2)
			if times(1) > 1 {
				next.thaw = next.thaw.Add(time.Duration(f.rng.Int64N(int64(3 * f.base.Lease))))
			}
		case !next.resumed:
			if !f.row(next.at.run()).ended {
				f.held(next)
				held, left = held+1, left+1
			}
			f.signal(next.proc, syscall.SIGCONT)
			f.order(next.proc, order{Onward: true})
			next.resumed = true
		default:
			active = slices.DeleteFunc(active, func(x *pause) bool { return x == next })
		}
	}
	f.Logf("%d pauses were overtaken, %d held up all others", pauses, held)
}

// chill tells one that is not paused to stop itself at a point.
func (f *fleet) chill(but []*pause, point string) *pause {
	f.Helper()
	out := map[*proc]fault{}
	for _, x := range but {
		out[x.proc] = fault{}
	}
	p := f.anyone(out)
	f.paused[p.Pid()] = true
	f.order(p, order{Arm: &fault{Point: point, Nth: 1 + f.rng.IntN(3), Act: stop}})
	return &pause{proc: p, from: len(f.book.lines)}
}

// further says that the next step of a pause can be done: it has stopped; others have done what it holds, or do not
// within five leases; the late finish is answered.
func (f *fleet) further(x *pause) bool {
	switch now := time.Now(); {
	case x.at.Pid == 0:
		return f.after(x.from, faulted, x.proc) != nil
	case !x.resumed:
		return now.After(x.thaw) && f.row(x.at.run()).ended || now.After(f.late(x))
	}
	return slices.ContainsFunc(f.book.lines[x.from:], func(l line) bool {
		return (l.Phase == refused && l.Text == "fenced" || l.Phase == committed) && l.Pid == x.Pid() && l.Fence == x.at.Fence
	})
}

// late is when a pause ends that nobody overtakes.
func (f *fleet) late(x *pause) time.Time { return time.UnixMicro(x.at.At).Add(5 * f.base.Lease) }

// held: a run stays with a paused process only where all stand still. A process that is stopped in the middle of a
// transaction keeps SQLite's lock, which is its process's, and holds up all others. Where others go on once the run's
// lease has lapsed, they have two leases to take it up.
func (f *fleet) held(x *pause) {
	f.Helper()
	from, to := x.at.At+3*f.base.Lease.Microseconds()/2, f.late(x).Add(-2*f.base.Lease).UnixMicro()
	for _, l := range f.book.lines[x.from:] {
		if l.Phase == committed && from < l.At && l.At < to {
			f.Errorf("others work (%v), and leave what a paused process holds: %v", l, x.at)
			return
		}
	}
}

// after finds a process's first line of a phase behind the first so many.
func (f *fleet) after(from int, phase string, p *proc) *line {
	for i := range f.book.lines[from:] {
		if l := &f.book.lines[from+i]; l.Pid == p.Pid() && l.Phase == phase {
			return l
		}
	}
	return nil
}

// hit arms a fault that its process survives, and waits for the line that says that it happened.
func (f *fleet) hit(p *proc, x fault) (at line) {
	f.Helper()
	from := len(f.book.lines)
	f.order(p, order{Arm: &x})
	f.await(p.name+": "+x.String(), func() bool { return f.after(from, faulted, p) != nil })
	return *f.after(from, faulted, p)
}
