package membership

import (
	"fmt"
	"slices"
	"testing"
)

// FuzzElect merges any announcements that a decoder takes into a view: no panic, the same owners in whatever order they came, each of them
// once and alive, and a verdict for each process.
func FuzzElect(f *testing.F) {
	announced := func(all ...peer) (b []byte) {
		for _, p := range all {
			m := p.encode()
			b = append(append(b, byte(len(m)>>8), byte(len(m))), m...)
		}
		return b
	}
	f.Add([]byte{})
	f.Add(announced(proc("a", 1, Serving, "x"), proc("b", 2, Serving, "y"), proc("c", 3, Serving, "x")))
	f.Add(announced(proc("a", 1, Serving, "x"), proc("a", 2, Unfit, "x"), proc("b", 3, Draining, "x")))
	f.Add(announced(using(proc("a", 1, Serving, "x"), "s"), using(proc("b", 2, Serving, "x"), "t")))
	f.Fuzz(func(t *testing.T, b []byte) {
		var peers []peer
		seen := map[string]bool{}
		for len(b) >= 2 {
			n := int(b[0])<<8 | int(b[1])
			b = b[2:]
			m, err := decodeMeta(b[:min(n, len(b))])
			b = b[min(n, len(b)):]
			if err != nil || seen[m.node()] {
				continue // the gate lets no such announcement in, and a process is in a view once
			}
			seen[m.node()] = true
			peers = append(peers, peer{meta: m, addr: "10.0.0.1:7946"})
		}
		self := meta{name: "none"}
		owners, verdicts := elect(self, peers)
		slices.Reverse(peers)
		again, said := elect(self, peers)
		if !slices.Equal(owners, again) || fmt.Sprint(verdicts) != fmt.Sprint(said) {
			t.Fatalf("%v own or %v, by the order of %v", owners, again, peers)
		}
		for i, name := range owners {
			if i > 0 && owners[i-1] >= name || !slices.ContainsFunc(peers, func(p peer) bool { return p.name == name }) {
				t.Fatalf("%v own of %v", owners, peers)
			}
		}
		if len(verdicts) != len(peers) {
			t.Fatalf("%d verdicts of %d processes", len(verdicts), len(peers))
		}
	})
}
