//go:build unix

package rig

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/belfry-go/belfry/internal/netns"
	"github.com/belfry-go/belfry/internal/testservers"
	"github.com/belfry-go/belfry/membership"
)

// shape is a way in which a network of four replicas and their store breaks.
type shape struct {
	name          string
	gossip, store bool          // what is cut: one side from the other, one side from the store
	few           bool          // that side is one of four, not two
	oneWay        bool          // packets are lost in one direction only, to that side or from it
	loss          int           // percent of all packets
	least         time.Duration // that it lasts, where it is to be longer than others
}

// shapes are the eight of T7. What is lost in one direction or for long changes from trial to trial.
var shapes = []shape{
	{name: "gossip 2|2", gossip: true},
	{name: "store 2|2", store: true},
	{name: "both 1|3", gossip: true, store: true, few: true},
	{name: "one way", oneWay: true},
	// So many are enough for CI.
	{name: "gossip 1|3", gossip: true, few: true},
	{name: "store 1|3", store: true, few: true},
	{name: "both 2|2", gossip: true, store: true},
	{name: "long", least: 45 * time.Second}, // memberlist forgets the dead after 30 s
}

const shapesOfCI = 4

// losses are beyond the shapes.
var losses = []shape{{name: "loss 5 %", loss: 5}, {name: "loss 20 %", loss: 20}, {name: "loss 40 %", loss: 40}}

// T7; F12-F16, F18: the network between four processes, and between them and the server that is their store, breaks in
// each shape, whole or in one direction. Nothing is lost and nothing done twice, and after the heal they are one again.
func TestShapes(t *testing.T) {
	t.Parallel()
	recorded(t)
	g := newFigures("T7")
	places := newPlaces(t)
	queue := shapes[:shapesOfCI]
	if *size == "long" {
		queue = slices.Concat(shapes, losses)
	}
	const most = 10
	per := trials(0, 1, 50)
	g.spread(t, len(queue)*per, min(most, per), func(t *testing.T, i, n int) {
		f := newShapeFleet(t, places, i)
		for range n {
			f.breaks(g, queue[i%len(queue)].of(f.rng.IntN(3)))
		}
		g.judged(n, f.settle(law{}))
	})
	g.say(t, "networks that broke, in %d shapes, on %s", len(queue), places.names())
	if m := g.median("merged after"); m > mergedMost && *size == "ci" { // in a long run times are figures
		t.Errorf("merged %v after the heal in the median; promised are %v", m, mergedGoal)
	}
}

// of settles what is open in a shape: what is lost where it does not say so.
func (s shape) of(kind int) shape {
	if !s.gossip && !s.store && s.loss == 0 {
		s.gossip, s.store = kind != 1, kind != 0
		s.few = s.oneWay
	}
	return s
}

// places are servers that many fleets use at once.
type places struct {
	list []func(t *testing.T) place
	all  []string
}

// newPlaces starts a server of each driver that has one, with connections for many fleets; a cut leaves some open for as
// long as it lasts.
func newPlaces(t *testing.T) *places {
	t.Helper()
	p := &places{}
	args := map[string][]string{"postgres": {"-c", "max_connections=500"}, "mysql": {"--max-connections=500"}}
	for _, d := range drivers {
		if d.own == nil {
			continue
		}
		s := d.own(t, testservers.Options{Args: args[d.name]})
		p.all = append(p.all, d.name)
		p.list = append(p.list, func(t *testing.T) place { return place{driver: d, db: s.Database(t)} })
	}
	return p
}

func (p *places) names() string { return fmt.Sprint(p.all) }

// newShapeFleet makes a fleet of four on a network of its own, on which its store is a host too.
func newShapeFleet(t *testing.T, places *places, i int) *fleet {
	t.Helper()
	n := netns.New(t)
	store := n.Host()
	l, err := store.Listen()
	if err != nil {
		t.Fatal(err)
	}
	at := places.list[i%len(places.list)](t)
	newRelay(t, l, at.db.Addr)
	f := newFleetAt(t, at, spec{Works: few(), Lease: slowly.Lease, Sweep: slowly.Sweep})
	f.lan = &lan{n, map[string]*netns.Host{}, store}
	f.base.Store = at.site(l.Addr().String())
	f.three()
	f.start("d", nil)
	f.ready()
	return f
}

// few is jobs that leave room for many fleets at once: a due a second without keys, and every fifth second one with some.
func few() []work {
	works := []work{{Name: "keyed", Every: 5 * time.Second, Phase: time.Second, Keys: 12, Takes: 20 * time.Millisecond}}
	for i := range 5 {
		works = append(works, work{Name: fmt.Sprintf("plain-%d", i), Every: 5 * time.Second, Phase: time.Duration(i) * time.Second, Takes: 20 * time.Millisecond})
	}
	return works
}

// breaks has the network break in a shape for a while, and heal.
func (f *fleet) breaks(g *figures, s shape) {
	f.Helper()
	names := f.names()
	if len(names) != 4 {
		f.Fatalf("of four replicas %q live", names)
	}
	f.rng.Shuffle(len(names), func(i, k int) { names[i], names[k] = names[k], names[i] })
	side, rest := names[:2], names[2:]
	if s.few {
		side, rest = names[:1], names[1:]
	}
	for _, name := range names {
		if s.store && slices.Contains(side, name) || s.loss > 0 {
			f.cut[f.proc(name).Pid()] = true
		}
	}
	began := time.Now()
	f.lan.Cut(f.lan.broken(s, side, rest, f.rng.IntN(2) == 0)...)
	if s.loss > 0 {
		f.lan.Lose(s.loss)
	}
	if !s.oneWay && s.loss == 0 {
		f.noticed(s, side, rest)
	}
	f.pass(f.holds(s) - time.Since(began))
	f.lan.heal()
	if s.loss > 0 {
		f.lan.Lose(0)
	}
	held := time.Since(began)
	healed := time.Now()
	f.ready()
	took := time.Since(healed)
	g.note(s.name, 1)
	g.add("merged after", took)
	f.refresh()
	g.add("late while cut", lateOf(f.starts(dueIn(began.Unix()+1, healed.Unix()-1)))...)
	f.Logf("%s: %s: %q from %q for %v: one again %v after the heal", f.place.name, s.name, side, rest, held.Round(time.Second), took.Round(100*time.Millisecond))
}

// holds is how long a shape is to last: half a minute, or in a long run anything from a lease and a half to that.
func (f *fleet) holds(s shape) time.Duration {
	const short, whole = 15 * time.Second, 30 * time.Second
	d := whole
	if *size == "long" {
		d = short + time.Duration(f.rng.Int64N(int64(whole-short)))
	}
	return max(d, s.least)
}

// broken are the ways that a shape cuts: those from one side, where that is the direction, or to it, or both.
func (l *lan) broken(s shape, side, rest []string, from bool) (ways []netns.Way) {
	for _, name := range side {
		var ends []*netns.Host
		if s.gossip {
			for _, other := range rest {
				ends = append(ends, l.hosts[other])
			}
		}
		if s.store {
			ends = append(ends, l.store)
		}
		for _, end := range ends {
			if !s.oneWay || from {
				ways = append(ways, netns.Way{From: l.hosts[name], To: end})
			}
			if !s.oneWay || !from {
				ways = append(ways, netns.Way{From: end, To: l.hosts[name]})
			}
		}
	}
	return ways
}

// noticed waits until those who are cut know it.
func (f *fleet) noticed(s shape, side, rest []string) {
	f.Helper()
	f.await(fmt.Sprintf("%s: %q to be cut from %q", s.name, side, rest), func() bool {
		for name, p := range f.live {
			own := rest
			if slices.Contains(side, name) {
				own = side
			}
			if s.gossip && !p.state.sees(own) || s.store && slices.Contains(side, name) && p.state.NotReady == "" {
				return false
			}
		}
		return true
	})
}

// sees says whether these alone are a replica's members.
func (s state) sees(names []string) bool {
	return len(s.Members) == len(names) && !slices.ContainsFunc(s.Members, func(m membership.Member) bool { return !slices.Contains(names, m.Name) })
}
