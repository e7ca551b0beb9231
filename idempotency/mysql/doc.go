// Package mysql keeps a store in a MySQL (8.0 or later) or MariaDB (10.6 or later) database. All replicas use one server
// that takes writes: a group of several such servers draws fences that do not rise in the order of commits.
//
// # The client
//
// The store works the same whatever the caller's DSN says (clientFoundRows, parseTime, loc, interpolateParams,
// multiStatements, charset) and whatever the defaults of server and user are (sql_mode, autocommit, isolation, time zone,
// read-only): it takes at most five connections of the caller's pool for itself, sets them up, and never gives
// one back. A limit of the pool must leave room for them; one of the five is for renewals alone. A connection that is lost
// is replaced, one that is idle for four seconds closed. The server closes one that is silent for five: a replica that
// is stopped in the middle of a transaction holds its locks no longer.
//
// So the connection for renewals is closed between two of them where a lease of twenty seconds or more has them come four
// seconds apart or more: each then needs a free connection of the pool, and fails if handlers hold all until its deadline.
// Let SetMaxOpenConns leave a few more than handlers use at once, beside the five; or give the store a pool of its own,
// where handlers do without InTx. A connection of the pool that a handler has left in another database (USE), or that is
// dead, is discarded for another one.
//
// Every call is one transaction at READ COMMITTED, or one snapshot if it only reads. Deadlocks, lock wait timeouts, lost
// connections and races for a row are tried again, with jitter, until the call's context ends, or for ten seconds
// where it has no deadline. A commit that was not answered is an error: the caller repeats the call as it was.
//
// The store's clock is the server's UTC_TIMESTAMP(6).
//
// # Layout
//
// belfry_run has one index, its primary key, led by the due. What is running has a small row more in belfry_running,
// which makes a key exclusive and says whose it is, and what waits has one in belfry_waiting: these are what sweeps
// read, and what tells whether a key is held and whether another run of it waits. Who queues behind a held key locks its
// row in belfry_running first, so that one does. InnoDB has no partial indexes, and full ones led by session or key would grow with all nights. A finish
// changes the row of the run where it lies, for no column of it gets longer: that cost 9 ms in a batch of 1,000 on
// MariaDB 10.11, against 33 to 61 ms with columns that were NULL before.
//
// A fence is a number drawn from an AUTO_INCREMENT column, one for each batch, times 2,048, plus the place in the batch.
// It is drawn when the rows in belfry_running are there, so while the keys are held: whoever holds one later draws a
// higher number. Nobody waits for the commit of another to draw, as with a counter in a row. Numbers have gaps.
//
// What is rarely written of a namespace as a whole, such as the count of commands that a sweep reads, has a row in
// belfry_control. It is locked last, and by nobody who only claims or finishes. A command locks the entry of its job for
// itself, and so waits for the job's claims and decisions in flight.
//
// Who leads a namespace has a row in belfry_leader, from the first leader on. Whoever may lead locks it, behind the session
// of the leader before, and only then draws the fence that becomes the term. The others only read it, and write nothing.
// That a leader's session ended is not written there: its lease tells.
//
// Claim and finish of 1,000 keys take 1.1 to 1.25 times the time of the same inserts, updates and deletes alone
// (BenchmarkNight); a batch that loses writes no row and no byte of redo.
//
// # What is relied on, of both servers
//
//   - A duplicate of a primary key fails the statement and not the transaction, and rows of a transaction that did not
//     commit make others wait for it.
//   - At READ COMMITTED a look-up by the whole primary key locks that row and nothing beside it.
//   - A subquery of a locking read locks nothing; LOCK IN SHARE MODE is known.
//   - A row whose value changes counts as affected, with and without CLIENT_FOUND_ROWS.
//   - VALUES(column) in ON DUPLICATE KEY UPDATE, which MySQL calls deprecated and MariaDB has no other word for.
//   - FORCE INDEX in SELECT, UPDATE and multi-table DELETE; ranges of a primary key from ORs of its columns, and from
//     comparisons of rows with a list.
//   - AUTO_INCREMENT never goes back when the server is restarted (MySQL 8.0, MariaDB 10.2.4), and
//     innodb_autoinc_lock_mode is 1 or 2.
//   - wait_timeout, innodb_lock_wait_timeout, sql_mode and the like can be set for a session without a privilege.
//   - binlog_format is MIXED or ROW, as InnoDB demands at READ COMMITTED.
//
// Tests run against MariaDB 10.11. MySQL is held to its reference manual: no statement uses what only MariaDB has, such as
// RETURNING or sequences.
package mysql
