package core

import (
	"crypto/sha256"
	"fmt"
	"maps"

	"github.com/belfry-go/belfry/idempotency"
)

// witness is what was seen of the numbers that stores draw. Whoever has seen a higher one than a store says to have drawn
// knows that it was put back to an older state, and would give occurrences and fences out again.
type witness struct {
	highest int64 // of our store, by ourselves

	// What the others say of any store; replaced and never changed.
	heard map[string]int64
	back  map[string]bool
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

// hearFences takes what the others say. That they saw a store rolled back is believed at once: by the next renewal its
// numbers may have risen so far that nothing shows any more.
func (c *Core) hearFences(e Heard) {
	w := &c.witness
	heard, back := maps.Clone(w.heard), maps.Clone(w.back)
	if heard == nil {
		heard, back = map[string]int64{}, map[string]bool{}
	}
	for store, n := range e.Fences {
		heard[store] = max(heard[store], n)
	}
	maps.Copy(back, e.RolledBack)
	w.heard, w.back = heard, back
	if c.store != "" && c.toldBack(c.store) { // who has no session says so too, and asks for none any more
		c.lose("the store was rolled back")
		c.announce()
	}
}

// toldBack reports whether the others say that a store was rolled back.
func (c *Core) toldBack(store string) bool {
	if !c.witness.back[announced(store)] {
		return false
	}
	if c.rolledBack == "" {
		c.rolledBack = "members saw that the store was rolled back; if that is meant, stop all replicas, then start them"
	}
	return true
}

// wentBack compares an answer of our store with what was known when it was asked: what came to be known since, it need
// not know. A store that went back stays so for this process: its numbers rise again, and would soon hide it.
func (c *Core) wentBack(r idempotency.Renewal, before witness) bool {
	seen := before.of(r.Store)
	if r.Highest >= seen {
		c.saw(r.Highest)
		return c.toldBack(r.Store)
	}
	c.saw(seen)
	if c.rolledBack == "" { // else it is told already, which once is enough for
		c.rolledBack = fmt.Sprintf("the store was rolled back from fence %d to %d; if that is meant, stop all replicas, then start them", seen, r.Highest)
	}
	return true
}
