// Package postgres keeps a store in a PostgreSQL database that the replicas of a fleet share.
//
// What it does not do: it holds no lock between calls; who leads, like who runs something, is what a row says. It promises nothing after a failover to a
// standby that lacks acknowledged commits; then replicas see another store, or a highest fence below one they know.
//
// What it does: a call is one transaction, READ COMMITTED, whatever the role's defaults are, and has a deadline. A batch
// is a few statements however large it is. The store's clock is the server's. A claim that wins nothing writes nothing,
// and neither does a Lead that changes nothing.
//
// A store has a few connections of its own beside the pool that it is opened with, some of them for sessions alone:
// a pool that handlers have drained keeps no renewal waiting. It uses no state of a connection between transactions, so it
// works behind a pooler that gives out connections by the transaction, with the execution mode that pooler asks for.
//
// # Layout
//
// Each run has a row, which stays, and while it is running a second, small one, which makes its key exclusive and is what
// sweeps look for. Measured on PostgreSQL 15, 300,000 runs claimed and finished in batches of 1,000 over 4 connections:
//
//	layout                                        WAL a run   HOT finishes   table + indexes
//	run and running, fillfactor 50                    796 B          100 %      78 + 27 MB
//	run and running, fillfactor 100                  1070 B            0 %      78 + 37 MB
//	one table, partial indexes on exclusive and
//	  on running rows, fillfactor 50                  788 B            0 %      78 + 55 MB
//	one table without these, which nothing makes
//	  exclusive, fillfactor 50                        468 B          100 %      78 + 27 MB
//
// One table with partial indexes writes as much, keeps twice the index for ever and makes dead versions that only vacuum
// removes; and it would have to draw fences before their row holds the key, which breaks their law: a claim that is
// preempted between the two commits a lower fence after a higher one has come and gone.
//
// A run that a leader claimed has its term in its row; it takes no space in the rows of others.
package postgres
