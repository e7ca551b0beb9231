package core

import (
	"crypto/sha256"
	"fmt"

	"github.com/belfry-go/belfry/idempotency"
)

// witness is what was seen of the numbers that stores draw. Whoever has seen a higher one than a store says to have drawn
// knows that it was put back to an older state, and would give occurrences and fences out again.
type witness struct {
	highest int64            // of our store, by ourselves
	heard   map[string]int64 // by the others, of any; replaced and never changed
}

// maxStore bounds the identity of a store as it is announced: all facts of a member have to fit into 152 bytes.
const maxStore = 64

// announced is how a store's identity is announced.
func announced(store string) string {
	if len(store) > maxStore {
		return fmt.Sprintf("%x", sha256.Sum256([]byte(store)))
	}
	return store
}

// of is the highest number that a store has drawn as far as known.
func (w witness) of(store string) int64 { return max(w.highest, w.heard[announced(store)]) }

// saw notes a number that our store has drawn.
func (c *Core) saw(n int64) { c.witness.highest = max(c.witness.highest, n) }

func (c *Core) hearFences(e Heard) {
	all := make(map[string]int64, len(e.Fences))
	for store, n := range c.witness.heard {
		all[store] = n
	}
	for store, n := range e.Fences {
		all[store] = max(all[store], n)
	}
	c.witness.heard = all
}

// wentBack compares an answer of our store with what was known when it was asked: what came to be known since, it need
// not know. A store that went back stays so for this process: its numbers rise again, and would soon hide it.
func (c *Core) wentBack(r idempotency.Renewal, before witness) bool {
	seen := before.of(r.Store)
	if r.Highest >= seen {
		c.saw(r.Highest)
		return false
	}
	c.saw(seen)
	c.rolledBack = fmt.Sprintf("the store was rolled back from fence %d to %d; if that is meant, stop all replicas, then start them", seen, r.Highest)
	return true
}
