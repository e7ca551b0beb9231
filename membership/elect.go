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
//  3. Among these, where layouts or stores differ, those own that agree with most (of equally many with the one
//     that runs longest): rings of two layouts would give one key two owners, and two stores would let both of them win.
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
	basis, holders := prevailing(pool)
	for _, m := range pool {
		switch {
		case m.basis() != basis:
			if m.state == Serving {
				verdicts[m.node()] = verdict{Unfit, m.basis().against(basis, holders, len(pool))}
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

// factStore is the fact under which a scheduler announces its store's identity.
const factStore = "store"

// basis is what owners must have in common.
type basis struct{ layout, store string }

func (m meta) basis() basis { return basis{m.layout, m.facts[factStore]} }

// against says what makes b differ from the prevailing one, and what to do.
func (b basis) against(most basis, holders, of int) string {
	if b.layout != most.layout {
		return fmt.Sprintf("its ring layout %q is not %q, which %d of %d members have; give all replicas the same Config.Ring",
			b.layout, most.layout, holders, of)
	}
	return fmt.Sprintf("its store %q is not %q, which %d of %d members use; check which database it opens, or whether that was replaced",
		b.store, most.store, holders, of)
}

// prevailing returns the basis that most have, and of equally many the one that the longest-running member has: a newcomer
// does not overrule who was there.
func prevailing(pool []meta) (most basis, holders int) {
	count := map[basis]int{}
	oldest := map[basis]meta{}
	for _, m := range pool {
		b := m.basis()
		count[b]++
		if o, ok := oldest[b]; !ok || o.newer(m) {
			oldest[b] = m
		}
	}
	for b, n := range count {
		if n > holders || n == holders && oldest[most].newer(oldest[b]) {
			most, holders = b, n
		}
	}
	return most, holders
}
