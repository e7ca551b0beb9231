// Package schedulertest runs a cluster in a test: replicas with your jobs in one process, whose clock jumps from one
// event to the next, so that a night takes milliseconds.
//
//	schedulertest.Test(t, nil, []jobs.Job{nightly}, func(t *testing.T, c *schedulertest.Cluster) {
//		c.AdvanceTo(midnight.Add(time.Minute))
//		if runs := c.Runs(); len(runs) != 1 || runs[0].Outcome != idempotency.Done {
//			t.Errorf("%+v", runs)
//		}
//	})
//
// The schedulers are the real ones, with the store in memory. What is modelled is membership: all replicas see at
// once who is there, who left and who is gone, where a real cluster takes a second or two. Nothing is there of networks,
// servers and hosts: a test of those needs them.
//
// All runs in a bubble of testing/synctest. Its clock stands still while anything is at work, and goes on when everything waits: for
// time, or for something else of the bubble. So the test and the handlers may sleep, and wait on
// channels that were made in the bubble: in the function given to Test, or in Options.JobsOf. But what waits for the
// world outside, such as for a connection or a lock, holds the clock up: put a fake in its place.
package schedulertest
