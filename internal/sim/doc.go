// Package sim is a world in which whole clusters live, fail and recover in
// virtual time: one goroutine, one agenda of events ordered by (time, sequence),
// one seeded source of chance. It drives the product's own core, ring and
// memory store; what it models itself is what surrounds them: hosts' clocks,
// processes, gossip, the way to the store, key sources and handlers. What the
// store accepted and the handlers did is judged by package oracle, which shares
// no code with any of it.
//
// Equal configurations give equal histories, to the last event: a failing seed
// is its own reproduction.
package sim
