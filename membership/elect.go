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
	newest := make(map[string]peer, len(peers))
	for _, p := range peers {
		if n, ok := newest[p.name]; !ok || p.newer(n.meta) {
			newest[p.name] = p
		}
	}
	verdicts = make(map[string]verdict, len(peers))
	byState := map[State][]meta{}
	for _, p := range peers {
		if n := newest[p.name]; n.boot != p.boot {
			verdicts[p.node()] = verdict{Unfit, fmt.Sprintf("superseded by boot %s at %s, started %s; give each replica a name of its own, or stop one",
				n.boot, n.addr, time.Unix(0, n.born).UTC().Format(time.RFC3339))}
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
	rule := inCommon(pool)
	for _, m := range pool {
		why := rule.against(m)
		switch {
		case why != "" && m.state == Serving:
			verdicts[m.node()] = verdict{Unfit, why}
		case why != "":
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

// common is what owners must have in common.
type common struct{ layout, store choice }

// choice is a value, and how many of how many have it.
type choice struct {
	value       string
	holders, of int
}

// inCommon finds the layout that counts, and then the store among those who have it. A member that names no store has
// none to disagree about.
func inCommon(pool []meta) common {
	layout := prevailing(pool, func(m meta) string { return m.layout })
	using := slices.DeleteFunc(slices.Clone(pool), func(m meta) bool { return m.layout != layout.value || m.facts[factStore] == "" })
	return common{layout, prevailing(using, func(m meta) string { return m.facts[factStore] })}
}

// against says what keeps m from owning, and what to do; nothing if it may.
func (s common) against(m meta) string {
	switch store := m.facts[factStore]; {
	case m.layout != s.layout.value:
		return fmt.Sprintf("its ring layout %q is not %q, which %d of %d members have; give all replicas the same Config.Ring",
			m.layout, s.layout.value, s.layout.holders, s.layout.of)
	case store != "" && store != s.store.value:
		return fmt.Sprintf("its store %q is not %q, which %d of %d members use; check which database it opens, or whether that was replaced",
			store, s.store.value, s.store.holders, s.store.of)
	}
	return ""
}

// prevailing returns the value that most have, and of equally many the one that the longest-running member has: a newcomer
// does not overrule who was there.
func prevailing(pool []meta, value func(meta) string) choice {
	count := map[string]int{}
	oldest := map[string]meta{}
	for _, m := range pool {
		v := value(m)
		count[v]++
		if o, ok := oldest[v]; !ok || o.newer(m) {
			oldest[v] = m
		}
	}
	most := choice{of: len(pool)}
	for v, n := range count {
		if n > most.holders || n == most.holders && oldest[most.value].newer(oldest[v]) {
			most.value, most.holders = v, n
		}
	}
	return most
}
