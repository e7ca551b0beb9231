package idempotency

import "github.com/cespare/xxhash/v2"

// slots is the number of slots, and so the most partitions there can be.
const slots = 1 << 16

// Slot is xxhash64(key) mod 65536. It never changes, so applications may store
// it beside their keys; the partition of a key is Slot mod P.
func Slot(key string) int {
	return int(xxhash.Sum64String(key) % slots)
}
