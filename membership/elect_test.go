package membership

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func proc(name string, born int, s State, layout string) peer {
	return peer{meta: meta{name: name, boot: fmt.Sprintf("%016x", born), born: int64(born), state: s, layout: layout}}
}

// using is p with a store.
func using(p peer, store string) peer {
	p.facts = map[string]string{factStore: store}
	return p
}

func TestElect(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		peers []peer // the first is self
		want  []string
	}{
		"alone":               {[]peer{proc("a", 1, Serving, "x")}, []string{"a"}},
		"alone, unfit":        {[]peer{proc("a", 1, Unfit, "x")}, []string{"a"}},
		"alone, draining":     {[]peer{proc("a", 1, Draining, "x")}, []string{"a"}},
		"alone, joining":      {[]peer{proc("a", 1, Joining, "")}, nil},
		"unfit":               {[]peer{proc("a", 1, Unfit, "x"), proc("b", 2, Serving, "x")}, []string{"b"}},
		"draining":            {[]peer{proc("a", 1, Draining, "x"), proc("b", 2, Serving, "x")}, []string{"b"}},
		"all unfit":           {[]peer{proc("a", 1, Unfit, "x"), proc("b", 2, Unfit, "x")}, []string{"a", "b"}},
		"unfit, draining":     {[]peer{proc("a", 1, Unfit, "x"), proc("b", 2, Draining, "x")}, []string{"a"}},
		"joining":             {[]peer{proc("a", 1, Serving, "x"), proc("b", 2, Joining, "")}, []string{"a"}},
		"layouts":             {[]peer{proc("a", 1, Serving, "y"), proc("b", 2, Serving, "x"), proc("c", 3, Serving, "y")}, []string{"a", "c"}},
		"layouts, tie":        {[]peer{proc("a", 1, Serving, "y"), proc("b", 2, Serving, "x")}, []string{"a"}},
		"stores":              {[]peer{using(proc("a", 1, Serving, "x"), "s"), using(proc("b", 2, Serving, "x"), "t"), using(proc("c", 3, Serving, "x"), "t")}, []string{"b", "c"}},
		"stores, tie":         {[]peer{using(proc("a", 2, Serving, "x"), "s"), using(proc("b", 1, Serving, "x"), "t")}, []string{"b"}},
		"no store yet":        {[]peer{using(proc("a", 1, Serving, "x"), "s"), proc("b", 2, Unfit, "x")}, []string{"a"}},
		"layouts of draining": {[]peer{proc("a", 1, Serving, "y"), proc("b", 2, Draining, "x"), proc("c", 3, Draining, "x")}, []string{"a"}},
		"older self":          {[]peer{proc("a", 1, Serving, "x"), proc("a", 2, Serving, "x"), proc("b", 3, Serving, "x")}, []string{"b"}},
		"newer self":          {[]peer{proc("a", 2, Serving, "x"), proc("a", 1, Serving, "x"), proc("b", 3, Serving, "x")}, []string{"a", "b"}},
		"older other":         {[]peer{proc("b", 3, Serving, "x"), proc("a", 1, Serving, "x"), proc("a", 2, Joining, "")}, []string{"b"}},
		"older alone":         {[]peer{proc("a", 1, Serving, "x"), proc("a", 2, Serving, "x")}, nil},
	} {
		if got, _ := elect(c.peers[0].meta, c.peers); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, not %v", name, got, c.want)
		}
	}
}

// TestElectLaws holds for any view: the order of what gossip told does not matter (F24); all who see the same
// agree, but for those of superseded boots, who see the same without their name; a name owns once; self is never
// left with nobody while it serves and its name is its own (RG-04).
func TestElectLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var peers []peer
		for i := range rapid.IntRange(1, 12).Draw(t, "peers") {
			q := proc(rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "name"), i,
				rapid.SampledFrom([]State{Joining, Serving, Draining, Unfit}).Draw(t, "state"),
				rapid.SampledFrom([]string{"x", "y"}).Draw(t, "layout"))
			q = using(q, rapid.SampledFrom([]string{"s", "t"}).Draw(t, "store"))
			q.born = int64(rapid.IntRange(1, 3).Draw(t, "born"))
			peers = append(peers, q)
		}
		stranger := meta{name: "none"}
		all, verdicts := elect(stranger, peers)
		if !slices.IsSorted(all) || len(slices.Compact(slices.Clone(all))) != len(all) {
			t.Fatalf("owners %v are not in order, or one is there twice", all)
		}
		for _, self := range peers {
			mixed := slices.Clone(peers)
			rand.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
			got, v := elect(self.meta, mixed)
			newest := !slices.ContainsFunc(peers, func(q peer) bool { return q.name == self.name && q.newer(self.meta) })
			want := all
			if !newest {
				want = without(all, []string{self.name})
			}
			if !slices.Equal(got, want) || fmt.Sprint(v) != fmt.Sprint(verdicts) {
				t.Fatalf("%v of %v sees %v, not %v", self, mixed, got, want)
			}
			if newest && self.state == Serving && len(got) == 0 {
				t.Fatalf("%v serves and sees nobody", self)
			}
			if !newest && verdicts[self.node()].state != Unfit {
				t.Fatalf("%v is superseded and counts as %v", self, verdicts[self.node()])
			}
		}
	})
}

func TestLostPick(t *testing.T) {
	t.Parallel()
	now := time.Now()
	l := lost{}
	at := func(q peer, addr string) peer { q.addr = addr; return q }
	for i := range 2 * lostMost {
		q := at(proc(fmt.Sprint("old", i), 1000+i, Serving, ""), fmt.Sprint("old:", i))
		l.add(q.node(), q, now.Add(time.Duration(i)))
	}
	if len(l) != lostMost || l[proc("old0", 1000, 0, "").node()].addr != "" || l[proc("old511", 1511, 0, "").node()].addr != "old:511" {
		t.Errorf("%d are remembered, and not the newest", len(l))
	}
	for i, name := range []string{"near", "busy", "again"} {
		q := at(proc(name, 1+i, Serving, ""), name+":1")
		l.add(q.node(), q, now.Add(time.Minute))
	}
	live := map[string]peer{
		"x": at(proc("x", 8, Serving, ""), "busy:1"),      // a new process at an old address
		"y": at(proc("again", 9, Serving, ""), "again:2"), // a new boot elsewhere
	}
	got := map[string]int{}
	for range 1000 {
		some := l.pick(live, now)
		if len(some) == 0 || len(some) > 2 {
			t.Fatalf("%v", some)
		}
		for _, a := range some {
			got[a]++
		}
	}
	if got["busy:1"] > 0 || got["again:1"] > 0 {
		t.Error("a live address is called")
	}
	if got["near:1"] < 1000/lostNear/2 {
		t.Errorf("the newest is called in %d of 1000 rounds", got["near:1"])
	}
	if len(got) < lostMost/2 {
		t.Errorf("only %d are ever called", len(got))
	}
	if some := l.pick(nil, now.Add(lostFor+time.Hour)); len(some) > 0 || len(l) > 0 {
		t.Errorf("%v are called after %s", some, lostFor)
	}
}
