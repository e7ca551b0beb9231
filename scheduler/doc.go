// Package scheduler runs jobs on a fleet of identical replicas.
//
// It does not promise exactly-once effects outside the store: a process that
// dies between a payment and its record leaves a run that is started again, with the same
// Occurrence.IdempotencyKey and a higher fence, and it is for the receiver to
// compare one of them. It is no queue and runs no workflows, and its schedules have whole
// seconds. For efficiency jobs it promises not even a single run during a hand-over.
//
// It does promise, for correctness jobs: at most one committed completion per
// occurrence, also in a partition; no silent loss, since every due ends in a
// recorded outcome; and that a holder which was overtaken cannot write history.
//
// A replica that stops gives back what it cannot finish. Others find that by their sweep; where
// Members is also a [Hinter] they are told, and take it up at once. Nothing depends on that.
//
// A replica is New, Add, Run:
//
//	s, err := scheduler.New(scheduler.Config{Namespace: "billing", Members: cluster, Store: store})
//	…
//	err = s.Add(jobs.Job{Name: "renewals", Schedule: jobs.Cron("0 0 * * *"), Keys: customers, Run: charge})
//	…
//	return s.Run(ctx)
package scheduler
