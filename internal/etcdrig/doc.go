// Package etcdrig has no code of its own: its tests run real replicas, each an operating-system process of its own, that
// elect their leader on a real etcd inside the test, or by their store, and kill, stop and cut off the one that leads.
//
// Three things are judged, each by what the product cannot bend. The order of terms by etcd's own: all that ever happened
// to the keys of the election, with its revisions, and a key to which each leader writes its term on condition
// that the term is still etcd's; so it writes also after it was told that the term is over. What a
// process believed by the host's monotonic clock, which all processes share: each leader writes down the instants at which its
// term's context was not over, and those at which that of its role was not, and the last of one term is before the first of the next. What was
// done by a ledger, a file outside the store that all processes append to: a job of the leader that is due each
// second, each of whose dues is done once, across all rounds.
//
// A leader dies or stands still before it sends the store what it decided, with the answer in hand, in its handler, right
// before it looks whether its term is over, or at no point in particular. It is cut off from etcd, and from nothing else, while it runs
// dues that go on beyond its term. Its lease is revoked under it, it leaves in order, and etcd loses its quorum.
//
// A failure prints its seed and how to repeat it, and keeps its folder: ledger, store and logs. Nothing is asserted
// about time: how long it took until the next leader is printed. 200 rounds of each kind are
//
//	go test ./internal/etcdrig -count 1 -v -timeout 3h -etcdrig.rounds 200
package etcdrig
