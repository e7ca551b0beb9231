// Package idempotency is the contract of the store that decides who wins, and a
// store in memory.
//
// A store does not make effects outside of it happen once: a run may be
// repeated when its process died between the effect and its record. It gives every repeat the same
// identity and a higher fence, so that the receiver can tell; and it refuses the record of
// whoever was overtaken. That holds while the store keeps what it has acknowledged.
//
// Drivers live in packages below this one. Each passes storetest, which has a
// test for each law that stands in the comments here.
package idempotency
