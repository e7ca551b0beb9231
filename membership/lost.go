package membership

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	lostFor  = 24 * time.Hour // how long a failed peer is called again
	lostMost = 256            // how many are remembered; the oldest go first
	lostNear = 8              // how many of the newest count as one event, such as a partition
)

// lost remembers the peers that failed, by node name. memberlist forgets them after 30 s (60 s with WAN), calls
// none of them even before that, and so never merges what a partition split.
type lost map[string]lostPeer

type lostPeer struct {
	peer
	at time.Time
}

func (l lost) add(node string, p peer, now time.Time) {
	l[node] = lostPeer{peer: p, at: now}
	if len(l) <= lostMost {
		return
	}
	oldest := slices.MinFunc(slices.Collect(maps.Keys(l)), func(a, b string) int {
		return cmp.Or(l[a].at.Compare(l[b].at), cmp.Compare(a, b))
	})
	delete(l, oldest)
}

// pick returns the addresses of at most two lost peers to call: one of those lost last, who are most likely to be
// back, and one of all, so that each is called in the end. Forgotten are those lost too long ago, and those whose
// replica lives again as a newer boot.
func (l lost) pick(live map[string]peer, now time.Time) []string {
	busy := map[string]bool{}
	newest := map[string]meta{}
	for _, p := range live {
		busy[p.addr] = true
		if n, ok := newest[p.name]; !ok || p.newer(n) {
			newest[p.name] = p.meta
		}
	}
	maps.DeleteFunc(l, func(_ string, p lostPeer) bool {
		n, again := newest[p.name]
		return again && n.newer(p.meta) || now.Sub(p.at) >= lostFor
	})
	peers := slices.SortedFunc(maps.Values(l), func(a, b lostPeer) int { return b.at.Compare(a.at) })
	peers = slices.DeleteFunc(peers, func(p lostPeer) bool { return busy[p.addr] })
	if len(peers) == 0 {
		return nil
	}
	near := peers[rand.IntN(min(lostNear, len(peers)))].addr
	any := peers[rand.IntN(len(peers))].addr
	return slices.Compact([]string{near, any})
}
