// Package etcdelector elects a leader among replicas by etcd. Its [Elector] is what scheduler.Config.Elector asks for.
//
// # What it does not guarantee
//
// That only one replica acts as the leader. A leader can be stopped between two instructions, for a garbage collection, by its
// host or by a swapped-out page, and go on when its term is long over, with code that has not looked since. No lease in the world
// prevents that. What must not happen twice has to be refused by what it happens to: by a store's claim (which Belfry's jobs have), or by a
// receiver that remembers the highest term it has seen and refuses lower ones. The term is given to lead for that.
//
// That clocks are right. The local end of a term assumes that this host's clocks and those of etcd run at speeds which differ by
// less than the margin between Lease and Trust, 3/10 by default; not that they show the same time. The host's clock may be set; forward ends a term early.
//
// That terms rise for ever. A term is a revision of etcd's. An etcd that was restored from a backup repeats revisions, so terms may
// fall below some that receivers have seen; they refuse the leader then, until it has caught up. (etcdutl snapshot restore --bump-revision avoids that.)
//
// That there is always a leader. One that dies is followed when its lease has ended; without a quorum of etcd nobody is elected, and
// who leads stops when its trust is over. A client without a DialKeepAliveTime may wait for a dead connection for as long as the kernel does; set it
// to about Renew.
//
// That two never lead where somebody else deletes a leader's key or revokes its lease: the next one is elected at that moment, and the leader hears of
// it a moment later, or at its next renewal. A lead that does not heed the end of its context is renewed no more, and another may be elected
// while it runs, once the margin is over.
//
// # What it does
//
// Each candidate puts a key on a lease of its own. The oldest key leads, and its create revision is the term, so terms rise with each
// leader. When a leader resigns its key goes, and the replica with the next oldest leads at once, as a rule within milliseconds.
//
// The context of a leader ends, at the latest, a margin before etcd could end its lease, counted from when the last renewal that was confirmed was sent,
// by the monotonic clock or the host's, whichever says that more has passed. It needs no word of etcd for that. A renewal is confirmed when etcd has renewed the lease and
// a quorum has said that the key is still the oldest. The context ends at once when the key is deleted or the lease
// is reported lost. Its Err looks at the clocks itself. A replica that is elected, but whose etcd does not confirm that within Trust, resigns.
//
// # How to choose the durations
//
// Lease > Trust >= 2 x Renew, and Renew > Retry. After the death of a leader nobody leads for a Lease less the time since its last renewal. A short one costs
// terms that end for no reason where etcd or the replica stalls for longer than Trust less Renew: a disk that syncs slowly, an election of
// etcd (some seconds), a throttled container. Below 5 s a Lease needs an etcd that is known to be quick. The margin, Lease less Trust, is for
// what lead does between two looks at its context, and for the speeds of clocks. A replica from which etcd answers a call later than in Renew, or two in half of
// Trust, does not lead.
//
// A replica costs etcd one renewal each third of its lease, and while it leads a renewal and a small read each Renew.
package etcdelector
