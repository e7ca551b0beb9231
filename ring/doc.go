// Package ring says which replica goes first for a key.
//
// A [Ring] is an immutable table from partition to member, a pure function of
// the set of member names and the layout ([Options]): replicas that see the
// same members compute the same ring without exchanging a message, in whatever
// order they heard of each other. A key's partition depends on the key alone
// ([Slot]), so all jobs of one customer live on one replica.
//
// What it does not give: agreement. Two replicas that see different members
// compute different rings, for as long as their views differ; who may run is
// decided by the store alone. Nor equal shares: at the default layout the
// largest share is up to 1.13 times the mean with 30 members or fewer, and the
// fewer partitions to a member, the less even (256 partitions, 20 virtual nodes,
// load 1.25, 20 members: 8 to 16 each). Set no limit of a replica on the
// assumption that shares are equal.
//
// The assignment is buraksezer/consistent's: consistent hashing with bounded
// loads. It is computed once, when the ring is built, and flattened into a
// table, so that a look-up is one hash and one table read, with no lock and no
// allocation. To follow a changing set of members, build a new Ring beside the
// old one and publish it through an atomic pointer: readers never wait.
package ring
