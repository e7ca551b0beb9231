package core

import "time"

// clock estimates the store's time from the answers of the store, never ahead
// of it: each answer's Now was read between the sending and the receiving, so
// Now - received is a lower bound of the offset between the store's clock and
// our monotonic one, and Now - sent an upper bound. The best lower bound is kept until an upper
// bound contradicts it (a drift, or a store clock that stepped back).
type clock struct {
	offset time.Duration // store's Unix time minus Mono
	known  bool
}

// sample takes one answer in, and returns by how much the estimate moved where it was contradicted or bettered.
func (k *clock) sample(now time.Time, sent, received time.Duration) (step time.Duration) {
	unix := time.Duration(now.UnixNano())
	low, high := unix-received, unix-sent
	if k.known && low <= k.offset && high >= k.offset {
		return 0
	}
	if k.known {
		step = low - k.offset
	}
	k.offset, k.known = low, true
	return step
}

// micro is the store's time at a monotonic instant, in Unix microseconds, truncated as a store truncates.
func (k *clock) micro(mono time.Duration) int64 {
	unix := int64(k.offset + mono)
	micro := unix / 1000
	if unix < micro*1000 {
		micro--
	}
	return micro
}
