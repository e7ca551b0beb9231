// Package rig has no code of its own: its tests run real replicas, each an operating-system process of its own that
// gossips with the others and shares one store with them, and kill, pause, starve and cut them. Kills and pauses are told
// on every driver, other stories on SQLite; a further driver joins by its line in drivers.
//
// Every handler writes what it does to a ledger, a file outside the store that all processes append to. Afterwards a
// judge, which shares no code with the scheduler, compares the ledger and the store's history with the dues, which it
// expands second by second: nothing is lost, nothing is completed twice, a repeated run carries the same idempotency
// key and a fence of its own, and an effect is repeated only where a process died or stood still after it. Effects are of
// two kinds: a line of the ledger, and a row that is written in the transaction that completes the run, of which there is
// exactly one for each run that is done.
//
// A process dies at one of these points in the life of a run:
//
//	K0  before its claim is sent        K4  the handler's effect is applied
//	K1  while the claim is in flight    K5  while its finish is in flight
//	K2  the claim has been committed    K6  the finish has been committed
//	K3  the handler has started         K7  the finish has been answered and told
//
// Where the effect joins the completion, K4 is in the middle of the transaction, K5 is its commit and K6 comes behind that.
//
// Gossip is on loopback, and is cut by a proxy that carries it. Where network namespaces can be made, which takes root
// and the ip command, TestLan and TestShapes give each process a host of its own and have the network itself drop what is
// cut. A store that is a file has no network: a process that is to lose it hangs its own calls. One on a server is a host
// of the network too in TestShapes, by a relay: a cut from it leaves half-open connections and transactions behind. Servers
// that a fleet has for itself are reached through a proxy for each process; while processes die there the server is killed
// and started again, calls are delayed, replies to commits are lost, and one process gets no answers for longer than its lease.
//
// The default is a round that takes about two minutes; BELFRY_LONG=1 or -rig.rounds=n repeats the faults, and cuts the
// network for as long as 120 s. -rig.kills=n and -rig.pauses=n make TestKilled and TestPaused long: new fleets, round
// after round and side by side, until there were as many faults; a round that fails does not end them. The other tests whose
// figures are on record make as many faults as -rig.size says, small, ci or long, and say their row in one line. On a machine
// that has much else to do, -rig.lease lets replicas stand still for longer. -rig.calm sets how long nothing must happen where
// nothing is done. A failure prints its seed and how to repeat it, and keeps its folder: ledger, store and logs. Nothing
// is asserted about time, but that a healed cluster is one again within twice the time that is promised.
package rig
