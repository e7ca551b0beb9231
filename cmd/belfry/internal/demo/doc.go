// Package demo shows what Belfry is for: replicas that are real processes renew the subscriptions of the same
// customers, night after night, each exactly once, while some of them are killed in the middle of a night.
//
// Nothing in it takes the scheduler's word. What was charged is counted from the ledger of a payment provider, a
// process of its own that knows nothing of fences; what was done, from the rows in the store.
package demo
