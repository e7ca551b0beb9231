//go:build unix

package rig

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// T5: F09, F10, on every driver: processes stand still for 1.5 to 5 leases, after a handler's work or just before a finish
// is sent. Others take their runs up; what the paused finish late, the store refuses, and their handlers are told.
func TestPaused(t *testing.T) {
	t.Parallel()
	skipSlow(t)
	c := newCampaign("T5", "pauses")
	if *pauses > 0 {
		size := func(d *driver) int {
			if d.shared == nil {
				return 3 // more need a longer lease, and the pauses would be longer too
			}
			return 5
		}
		c.long(t, *pauses, 50, *lanes+2, size, func(f *fleet, n int) { f.rested(c, n, (len(f.all)+1)/2) })
	} else {
		c.short(t, map[string]func(f *fleet){
			"sqlite": func(f *fleet) { f.rested(c, times(8), 2) },
			"server": func(f *fleet) { f.rested(c, times(6), 2) },
		})
	}
	c.tell(t)
}

// rested is the story of a fleet whose processes are paused, up to its judgement.
func (f *fleet) rested(c *campaign, pauses, atOnce int) {
	f.Helper()
	f.freeze(c, pauses, atOnce)
	f.ready()
	c.judged(f.settle(law{}))
	c.note("answered as fenced", f.fenced())
}

// fenced counts the stops whose run was refused to the process that had stopped in it.
func (f *fleet) fenced() (n int) {
	for i, at := range f.book.lines {
		if at.Phase == faulted && strings.HasSuffix(at.Text, stop) && slices.ContainsFunc(f.book.lines[i:], func(l line) bool {
			return l.Phase == refused && l.Text == "fenced" && l.Pid == at.Pid && l.Fence == at.Fence
		}) {
			n++
		}
	}
	return n
}

// pause is one of a process.
type pause struct {
	*proc
	from    int       // lines of the ledger that were there before
	at      line      // what it stopped in; of no process: it has not yet
	thaw    time.Time // not before
	resumed bool
}

// freeze pauses processes, so many at a time; one at least that is ready goes on. It ends when others have overtaken so
// many pauses.
func (f *fleet) freeze(c *campaign, many, atOnce int) {
	f.Helper()
	held, active := 0, []*pause{}
	for left := many; left > 0 || len(active) > 0; {
		for ; len(active) < atOnce && left > 0; left-- {
			x := f.chill(active, []string{"K4", "K5"}[left%2])
			if x == nil {
				break
			}
			active = append(active, x)
		}
		if len(active) == 0 {
			f.ready()
			continue
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
			if times(1) > 1 || *pauses > 0 {
				next.thaw = next.thaw.Add(time.Duration(f.rng.Int64N(int64(7 * f.base.Lease / 2))))
			}
		case !next.resumed:
			if f.row(next.at.run()).ended {
				c.count(f.place.name, strings.TrimSuffix(next.at.Text, " "+stop))
			} else {
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
	f.Logf("%d pauses were overtaken, %d held up all others", many, held)
	c.note("held up all others", held)
}

// chill tells one that is ready and not paused to stop itself at a point; nil: there is none to spare.
func (f *fleet) chill(but []*pause, point string) *pause {
	f.Helper()
	out := map[*proc]fault{}
	for _, x := range but {
		out[x.proc] = fault{}
	}
	p := f.fit(out)
	if p == nil {
		return nil
	}
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
