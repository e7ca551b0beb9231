//go:build unix

package rig

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/belfry-go/belfry/membership"
)

// A healed cluster is one again within 15 s, by promise. On a machine that has other work it may take longer; what
// takes twice as long is broken, unless the machine let a replica stand still.
const (
	mergedGoal = 15 * time.Second
	mergedMost = 2 * mergedGoal
)

// cutter cuts the gossip between replicas.
type cutter interface {
	split(sides ...[]string) // every pair of different sides, in both directions
	heal()
}

// F12, F18: the gossip of three processes is cut, the store in reach of all: each side owns everything, and the store
// lets one win. Nothing is lost or repeated, and afterwards they are one again. This is the split that needs no root;
// TestLan has more.
func TestSplit(t *testing.T) {
	t.Parallel()
	for name, sides := range map[string][][]string{"2 1": {{"a", "b"}, {"c"}}, "1 1 1": {{"a"}, {"b"}, {"c"}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, w := newFleet(t, spec{Works: mix()}), newWeb(t)
			for _, name := range slices.Concat(sides...) {
				s := f.base
				s.Name = name
				s.Bind, s.Advertise = w.wire(name)
				f.launch(name, s)
			}
			f.ready()
			for range times(1) {
				f.part(w, 0, sides...)
			}
			f.settle(law{})
		})
	}
}

// part cuts the sides from each other for so long at least, and as long as it takes until they have met in the store.
func (f *fleet) part(w cutter, least time.Duration, sides ...[]string) {
	f.Helper()
	began := time.Now()
	w.split(sides...)
	for _, side := range sides {
		for _, name := range side {
			p := f.proc(name)
			f.await(name+" sees its side", func() bool { return slices.Equal(p.state.Owners, side) })
		}
	}
	from := time.Now().Unix()
	f.await("the sides to meet in the store", func() bool {
		return time.Now().Unix() > from+5 && slices.ContainsFunc(f.book.lines, func(l line) bool {
			return l.Phase == refused && l.Text == "taken" && l.Due > from
		})
	})
	f.pass(least - time.Since(began))
	held := time.Since(began)
	w.heal()
	f.merged(fmt.Sprintf("%q were cut for %v", sides, held.Round(time.Second)))
}

// merged waits until all agree again, and tells how long that took since the heal.
func (f *fleet) merged(what string) {
	f.Helper()
	from, before := time.Now(), f.states()
	f.ready()
	took := time.Since(from)
	f.Logf("%s: one again %v after the heal", what, took.Round(100*time.Millisecond))
	if took > mergedMost && f.seen(before).Stalls == 0 && *size != "long" { // there times are figures
		f.Errorf("%s: one again %v after the heal; promised are %v", what, took, mergedGoal)
	}
}

// idle demands that a process without the store has started nothing that came due since.
func (f *fleet) idle(p *proc, cut line) {
	f.Helper()
	for _, l := range f.book.lines {
		if l.Pid == p.Pid() && l.Phase == started && l.Due*1e6 > cut.At+1e5 { // a claim may come 0.1 s early
			f.Errorf("%v started, and came due %d ms after its replica had lost the store", l.run(), l.Due*1e3-cut.At/1e3)
		}
	}
}

// reach cuts or heals a process's way to the store, and returns the line that says so.
func (f *fleet) reach(p *proc, to string) line {
	f.Helper()
	f.cut[p.Pid()] = true
	from := len(f.book.lines)
	f.order(p, order{Store: to})
	f.await(p.name+": "+to, func() bool { return f.after(from, to, p) != nil })
	return *f.after(from, to, p)
}

// lateness is that of the first start by others of each lane's first run that was due after a process was cut; of those
// that have started.
func (f *fleet) lateness(lanes map[run]bool, cut line) (list []time.Duration) {
	first := map[run]line{}
	for _, l := range f.book.lines {
		lane := run{l.Job, l.Key, 0}
		if seen, had := first[lane]; l.Phase == started && l.Pid != cut.Pid && lanes[lane] && l.Due*1e6 > cut.At && (!had || l.Due < seen.Due) {
			first[lane] = l
		}
	}
	for _, l := range first {
		list = append(list, (time.Duration(l.At-l.Due*1e6) * time.Microsecond).Round(time.Millisecond))
	}
	return list
}

// F19: a replica is killed and comes back under its name, at another port.
func TestRestarted(t *testing.T) {
	t.Parallel()
	f := newFleet(t, spec{Works: mix()})
	f.three()
	for range times(2) {
		f.restart(f.anyone(nil).name)
	}
	f.settle(law{})
}

// restart kills a replica, starts it again, and waits until all see it at its new address, and nowhere else.
func (f *fleet) restart(name string) {
	f.Helper()
	f.kill(f.proc(name))
	began := time.Now()
	p := f.start(name, nil)
	up := time.Now()
	f.await("all to see "+name+" at its new address", func() bool {
		for _, x := range f.live {
			m := x.state.find(name)
			if len(x.state.Members) != len(f.live) || len(x.state.Owners) != len(f.live) || m.Addr != p.state.Addr || m.State != membership.Serving {
				return false
			}
		}
		return true
	})
	f.Logf("%s is back at %s: its process gossips after %v, and %v later all agree on it", name, p.state.Addr,
		up.Sub(began).Round(10*time.Millisecond), time.Since(up).Round(10*time.Millisecond))
}

// seen sums up what all have seen since they were in these states.
func (f *fleet) seen(since map[string]state) (sum state) {
	for name, s := range f.states() {
		was := since[name]
		sum.Moves, sum.Came, sum.Gone, sum.Stalls = sum.Moves+s.Moves-was.Moves, sum.Came+s.Came-was.Came, sum.Gone+s.Gone-was.Gone, sum.Stalls+s.Stalls-was.Stalls
	}
	return sum
}

// states are those of all that live, by name.
func (f *fleet) states() map[string]state {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := map[string]state{}
	for name, p := range f.live {
		all[name] = p.state
	}
	return all
}
