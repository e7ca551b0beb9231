// Package etcdservers runs real etcd servers inside a test: one, or some that form a cluster. They listen on free ports of the
// loopback address, keep their data in the test's directory, and end with the test.
//
//	s := etcdservers.Start(t, etcdservers.Config{Members: 3})
//	elector, err := etcdelector.New(s.Client(t), ...)
//	s.Stop(1)
//	s.Restart(t, 1) // with its data
//
// Tests that need no server of their own share one:
//
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(etcdservers.Main(m)) }
//
//	func TestLead(t *testing.T) {
//		client := etcdservers.Shared(t).Client(t)
//		...
//
// They are quick because nothing is synced to disk: what was acknowledged survives Stop, not the loss of power. Their elections are
// quicker than in production too. Leases are as ever: of whole seconds, at least one.
package etcdservers
