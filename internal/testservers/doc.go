// Package testservers starts throwaway database servers for tests: PostgreSQL and MariaDB, from the programs that are
// installed, on a random port of the loopback address, in a directory that is removed with them.
//
// The tests of a package share one server of each kind, started by the first that asks for it; each test makes a
// database of its own there. TestMain ends them:
//
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(testservers.Main(m)) }
//
//	func TestClaim(t *testing.T) {
//		db := testservers.Postgres(t).Database(t)
//		pool, err := pgxpool.New(ctx, db.URL())
//		...
//
// A test that stops, kills or pauses a server starts one for itself, by StartPostgres or StartMariaDB.
//
// The servers are quick because their data is in memory where that is possible (tmpfs on /dev/shm), so that syncing it
// costs nothing. All that a client can ask about is as in production: fsync, synchronous_commit, full_page_writes,
// innodb_flush_log_at_trx_commit are on. Nothing here survives the loss of power; what was acknowledged survives
// the kill of a server.
//
// No server outlives the test process in whatever way that ends: the kernel kills it (Linux only, hence a skip
// elsewhere). Directories that a killed process left behind are removed by the next that starts a server.
//
// Where a server is not installed the test is skipped, and says what installs it. Where the environment variable CI is
// not empty, that is a failure.
package testservers
