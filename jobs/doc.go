// Package jobs says what runs and when: a Job names a Handler and a Schedule,
// and each instant of the schedule makes an Occurrence, once per key.
//
// What it does not promise: a Handler may be called again for the same
// Occurrence, after an error, a timeout or a crash. An effect outside the store
// is made harmless to repeat by handing Occurrence.IdempotencyKey to whoever
// receives it, or by letting the receiver compare Occurrence.Fence.
//
// What it does: the dues of a Schedule are a pure function of its text and the
// time zone database, whole seconds of UTC, the same on every replica. Nothing
// in this package starts a goroutine, reads a clock or touches a store.
package jobs
