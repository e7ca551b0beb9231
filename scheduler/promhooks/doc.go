// Package promhooks turns what a scheduler's hooks tell into Prometheus metrics, in a registerer of yours.
//
//	hooks, err := promhooks.New(registry)
//	…
//	s, err := scheduler.New(scheduler.Config{Hooks: []scheduler.Hooks{hooks}, …})
//
// Each replica counts what it did itself, so that sums over the replicas tell of the cluster. What the
// metrics' HELP texts do not say:
//
//   - Labels have few values: names of jobs, of which there are as many as were added to the scheduler, and words of Belfry's own
//     (reason, cause, outcome, method). No key, replica, due or error text is in one: who scrapes adds the replica. So a
//     program that makes up names of jobs as it goes makes up time series.
//   - A due of a job with keys counts once in belfry_due_total and once for each key in belfry_started_total. Efficiency jobs
//     have no dues there, since nobody decides them; nor missed ones.
//   - belfry_refused_total is no sign of trouble: a claim that another replica won is refused with the cause taken. Look
//     at belfry_fenced_total, belfry_stuck_total, belfry_missed_total and belfry_failed_total for that, and at
//     belfry_lateness_seconds for replicas that are too few: each run of the schedule is in it once, by its first start. What was taken up
//     after a start is not, nor what a person asked for (but see scheduler.Finished.First).
//   - A handler that leaks goroutines or memory is seen where the process is: by the registry's Go collector, in go_goroutines and
//     go_memstats_heap_inuse_bytes. One that does not return after its context has ended is in belfry_running
//     for as long as that lasts, and once in belfry_stuck_total.
//   - The sum of belfry_leader over the replicas is 1 where somebody leads, as they know it, which may be a Sweep late. Where it stays 0 for longer than a Lease and
//     there is a job or a role of the leader, that waits; 2 for a moment is no harm to what is claimed in a store.
//   - The hooks never delay a run. Where thousands of observations wait, since a registry's lock or another hook hangs, further ones are left
//     out, which the scheduler's log tells.
package promhooks
