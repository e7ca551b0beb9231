package rule

import "math/bits"

// Bitmap is an empty set of partitions: partition p is bit p%8 of byte p/8.
func Bitmap(partitions int) []byte { return make([]byte, (partitions+7)/8) }

// Or adds a set to another that is at least as long.
func Or(to, from []byte) {
	for i, b := range from {
		to[i] |= b
	}
}

// Covers reports whether the set has all of the partitions.
func Covers(set []byte, partitions int) bool {
	n := 0
	for _, b := range set {
		n += bits.OnesCount8(b)
	}
	return n == partitions
}
