// Package rig has no code of its own: its tests run real replicas, each an operating-system process of its own that
// gossips with the others and shares one SQLite file with them, and kill, pause, starve and cut them.
//
// Every handler writes what it does to a ledger, a file outside the store that all processes append to. Afterwards a
// judge, which shares no code with the scheduler, compares the ledger and the store's history with the dues, which it
// expands second by second: nothing is lost, nothing is completed twice, a repeated run carries the same idempotency
// key and a fence of its own, and an effect is repeated only where a process died or stood still after it.
//
// A process dies at one of these points in the life of a run:
//
//	K0  before its claim is sent        K4  the handler's effect is applied
//	K1  while the claim is in flight    K5  while its finish is in flight
//	K2  the claim has been committed    K6  the finish has been committed
//	K3  the handler has started         K7  the finish has been answered and told
//
// Gossip is on loopback, and is cut by a proxy that carries it. Where network namespaces can be made, which takes root
// and the ip command, TestLan and TestShapes give each process a host of its own and have the network itself drop what is
// cut. A store that is a file has no network: a process that is to lose it hangs its own calls. One on a server is a host
// of the network too in TestShapes, by a relay: a cut from it leaves half-open connections and transactions behind.
//
// The default is a round that takes about two minutes; BELFRY_LONG=1 or -rig.rounds=n repeats the faults, and cuts the
// network for as long as 120 s. -rig.calm sets how long nothing must happen where nothing is done. The tests whose figures
// are on record make as many faults as -rig.size says, small, ci or long, and say their row in one line. A failure prints
// its seed and how to repeat it, and keeps its folder: ledger, store and logs. Nothing is asserted about time, but that
// a healed cluster is one again within twice the time that is promised.
package rig
