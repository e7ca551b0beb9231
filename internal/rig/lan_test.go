//go:build unix

package rig

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/internal/netns"
	"github.com/belfry-go/belfry/membership"
)

// lan is a network on which each replica is a host of its own.
type lan struct {
	*netns.Net
	hosts map[string]*netns.Host // by the process's name
	store *netns.Host            // that of the store; nil: it is a file
}

// newLanFleet makes one without replicas, or skips the test where there are no namespaces.
func newLanFleet(t *testing.T, base spec) *fleet {
	t.Helper()
	skipSlow(t)
	n := netns.New(t)
	f := newFleet(t, base)
	f.lan = &lan{n, map[string]*netns.Host{}, nil}
	return f
}

// seat returns what starts a process on its host, and where its gossip binds.
func (l *lan) seat(name string) (via []string, bind string) {
	l.Helper()
	h := l.hosts[name]
	if h == nil {
		h = l.Host()
		l.hosts[name] = h
	}
	return h.Exec(), netip.AddrPortFrom(h.Addr(), 0).String()
}

func (l *lan) split(sides ...[]string) {
	l.Helper()
	var ways []netns.Way
	for _, side := range sides {
		for _, from := range side {
			ways = append(ways, l.ways(from, slices.DeleteFunc(slices.Concat(sides...), func(to string) bool { return slices.Contains(side, to) })...)...)
		}
	}
	l.Cut(ways...)
}

func (l *lan) heal() { l.Heal() }

// ways lead from one process to others.
func (l *lan) ways(from string, to ...string) (list []netns.Way) {
	for _, name := range to {
		list = append(list, netns.Way{From: l.hosts[from], To: l.hosts[name]})
	}
	return list
}

// hold is how long a cut is to last: in a default round as long as it takes to show, in a long one as long as it may be.
func hold(short, long time.Duration) time.Duration {
	if times(1) > 1 {
		return long
	}
	return short
}

// TestLan cuts the network of processes of which each has a network namespace. Its parts mostly wait, so all run at
// once, and beside no other test, which keeps the printed times honest.
func TestLan(t *testing.T) {
	for _, c := range []struct {
		name  string
		story func(t *testing.T)
	}{
		{"of three", lanOfThree}, {"long", lanLong}, {"one way", lanOneWay}, {"alone", lanAlone},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.story(t)
		})
	}
}

// F12: TestSplit with cuts that leave connections open and tell nobody.
func lanOfThree(t *testing.T) {
	f := newLanFleet(t, spec{Works: mix()})
	f.three()
	for range times(1) {
		f.part(f.lan, 0, []string{"a", "b"}, []string{"c"})
		f.part(f.lan, 0, []string{"a"}, []string{"b"}, []string{"c"})
	}
	f.settle(law{})
}

// F18, F19: memberlist forgets the dead after 30 s, and the sides come together all the same. A replica comes back at
// another address.
func lanLong(t *testing.T) {
	f := newLanFleet(t, spec{Works: mix()})
	f.three()
	for range times(1) {
		f.part(f.lan, hold(35*time.Second, 2*time.Minute), []string{"a", "c"}, []string{"b"})
		delete(f.lan.hosts, "c")
		f.restart("c")
	}
	f.settle(law{})
}

// F15: one direction is cut. Whatever the replicas make of that, the ring is not rebuilt over and over, unless the
// machine itself lets them stand still.
func lanOneWay(t *testing.T) {
	f := newLanFleet(t, spec{Works: mix()})
	f.three()
	for range times(1) {
		f.oneWay("a to b", f.lan.ways("a", "b")...)
		f.oneWay("a to all", f.lan.ways("a", "b", "c")...)
		f.oneWay("all to a", append(f.lan.ways("b", "a"), f.lan.ways("c", "a")...)...)
	}
	f.settle(law{})
}

// mostMoves is how often a minute the owners may change in the eyes of one replica.
const mostMoves = 6

func (f *fleet) oneWay(what string, ways ...netns.Way) {
	f.Helper()
	window := hold(12*time.Second, time.Minute)
	before := f.states()
	f.lan.Cut(ways...)
	f.pass(window)
	stalls := f.seen(before).Stalls
	for name, s := range f.states() {
		moves := s.Moves - before[name].Moves
		f.Logf("%s is cut for %v: %s saw the owners change %d times, to %q; the machine let the three wait %d times", what, window, name, moves, s.Owners, stalls)
		if moves > mostMoves && stalls == 0 {
			f.Errorf("%s is cut: %s saw the owners change %d times in %v, want at most %d a minute", what, name, moves, window, mostMoves)
		}
	}
	f.lan.heal()
	f.merged(what + " was cut")
}

// F14: one replica is cut from gossip and store at once.
func lanAlone(t *testing.T) {
	f := newLanFleet(t, spec{Works: mix()})
	f.three()
	for i := range times(1) {
		f.alone(fmt.Sprintf("long-%d", i))
	}
	f.settle(law{})
}

// alone cuts a replica from gossip and store while its handlers run. It starts nothing more, its handlers are told, and
// others do what it held.
func (f *fleet) alone(job string) {
	f.Helper()
	long := work{Name: job, At: time.Now().Add(4 * time.Second).Truncate(time.Second), Keys: 9, Takes: 8 * time.Second}
	f.add(long)
	var p *proc
	f.await("long runs", func() bool {
		i := slices.IndexFunc(f.book.lines, func(l line) bool { return l.Phase == started && l.Job == job })
		for _, x := range f.live {
			if i >= 0 && x.Pid() == f.book.lines[i].Pid {
				p = x
			}
		}
		return p != nil
	})
	f.lan.hosts[p.name].Unplug()
	cut := f.reach(p, storeCut)
	f.await("the others to be without it, and it alone and not ready", func() bool {
		for name, x := range f.live {
			if name != p.name && slices.Contains(x.state.Owners, p.name) {
				return false
			}
		}
		return len(p.state.Members) == 1 && p.state.NotReady != ""
	})
	f.await("its runs to be done by others", func() bool {
		for _, r := range long.runs(job, long.At.Unix()) {
			if f.row(r).outcome != "done" {
				return false
			}
		}
		return true
	})
	f.idle(p, cut)
	f.told(p, job)
	f.lan.hosts[p.name].Plug()
	f.reach(p, storeHealed)
	f.merged(p.name + " was cut from gossip and store")
}

// told demands that each handler of a job that was under way in a process when it lost the store has returned before
// its time, told that the session was lost.
func (f *fleet) told(p *proc, job string) {
	f.Helper()
	under, lost := 0, 0
	for _, l := range f.book.lines {
		switch {
		case l.Pid != p.Pid() || l.Job != job:
		case l.Phase == started:
			under++
		case l.Phase == returned && strings.Contains(l.Text, "session lost"):
			lost++
		}
	}
	f.Logf("%s lost the store with %d handlers under way; %d were told that the session was lost", p.name, under, lost)
	if under == 0 || lost != under {
		f.Errorf("want all, and some")
	}
}

// find returns how a replica sees another, a zero member where it does not.
func (s state) find(name string) membership.Member {
	i := slices.IndexFunc(s.Members, func(m membership.Member) bool { return m.Name == name })
	if i < 0 {
		return membership.Member{}
	}
	return s.Members[i]
}
