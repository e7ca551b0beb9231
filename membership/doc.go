// Package membership tells a replica which replicas live, and which of them may own keys.
//
// What it does not promise: that all replicas see the same owners at every instant. Gossip is eventually
// consistent; views differ for a second or so after each change and for as long as a partition lasts. Ownership
// says who goes first, never who may act: only the store's claim decides that.
//
// What it does promise: in calm, all replicas that can reach each other see one sorted list of owners. A crash is
// seen in about 1.3 s with [Fast]; a replica that drains leaves the list at once; after a partition the parts merge
// within 15 s, without a restart and whatever its length. memberlist alone does not do that: it never calls the dead
// again, so a [Cluster] keeps calling its seeds and the peers it lost.
//
// A [Cluster] gossips with hashicorp/memberlist. Each process is one member, known to gossip by its
// random boot id, so a restarted replica never has to wait for its predecessor's entry to expire. [Static] is a fixed
// list, for one process and for tests. Both are what scheduler.Config.Members asks for.
package membership
