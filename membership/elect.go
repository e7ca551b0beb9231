package membership

import (
	"fmt"
	"slices"
	"time"
)

// peer is one live process, as gossip shows it.
type peer struct {
	meta
	addr string // host:port of its gossip
}

// verdict is what a peer counts as, and why; its own announcement unless something overrules it.
type verdict struct {
	state  State
	reason string
}

// elect decides who owns keys, as a pure function of the live processes in any order, so that replicas with equal
// views agree:
//
//  1. Of processes with one name the newest boot counts.
//  2. Those that serve may own; if none serves, the unfit ones; if none is unfit either, the draining ones. Someone
//     who cannot work is no worse an owner than nobody, and may recover.
//  3. Among these, where layouts differ, the layout that most of them hold owns (of equally many the lexically
//     smallest): rings of two layouts would give one key two owners.
//
// Self always knows itself to be live, so its view is empty only while all are joining, or where self was superseded
// and nobody else may own: an older boot leaves its own name out of its own list, because the name is now another's.
func elect(self meta, peers []peer) (owners []string, verdicts map[string]verdict) {
	newest := make(map[string]meta, len(peers))
	for _, p := range peers {
		if n, ok := newest[p.name]; !ok || p.newer(n) {
			newest[p.name] = p.meta
		}
	}
	verdicts = make(map[string]verdict, len(peers))
	byState := map[State][]meta{}
	for _, p := range peers {
		if n := newest[p.name]; n.boot != p.boot {
			verdicts[p.node()] = verdict{Unfit, fmt.Sprintf("superseded by boot %s, started %s; give each replica a name of its own, or stop one",
				n.boot, time.Unix(0, n.born).UTC().Format(time.RFC3339))}
			continue
		}
		verdicts[p.node()] = verdict{p.state, p.reason}
		byState[p.state] = append(byState[p.state], p.meta)
	}
	var pool []meta
	for _, s := range []State{Serving, Unfit, Draining} {
		if pool = byState[s]; len(pool) > 0 {
			break
		}
	}
	layout, holders := prevailing(pool)
	for _, m := range pool {
		switch {
		case m.layout != layout:
			if m.state == Serving {
				verdicts[m.node()] = verdict{Unfit, fmt.Sprintf("its layout %q is not %q, which %d of %d members hold",
					m.layout, layout, holders, len(pool))}
			}
		case m.name == self.name && m.boot != self.boot:
			// Self was superseded.
		default:
			owners = append(owners, m.name)
		}
	}
	slices.Sort(owners)
	return owners, verdicts
}

// prevailing returns the layout that most hold, the lexically smallest of equally many.
func prevailing(pool []meta) (layout string, holders int) {
	count := map[string]int{}
	for _, m := range pool {
		count[m.layout]++
	}
	for l, n := range count {
		if n > holders || n == holders && l < layout {
			layout, holders = l, n
		}
	}
	return layout, holders
}
