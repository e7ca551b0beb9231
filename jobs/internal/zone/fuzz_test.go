package zone

import (
	"math"
	"testing"
)

// FuzzAt asks any zone of any instant: the answer is package time's, and the stretch holds the instant.
func FuzzAt(f *testing.F) {
	f.Add(uint16(0), int64(0))
	f.Add(uint16(77), int64(1_711_846_800)) // Europe's spring of 2024
	f.Add(uint16(300), int64(-2_840_140_800))
	f.Add(uint16(511), int64(math.MaxInt64))
	f.Add(uint16(512), int64(math.MinInt64))
	f.Fuzz(func(t *testing.T, which uint16, unix int64) {
		all := current().entries
		z := load(t, all[int(which)%len(all)].name)
		if unix < firstUnix || unix > lastUnix {
			span := int64(lastUnix - firstUnix)
			unix = firstUnix + (unix%span+span)%span
		}
		agree(t, z, unix)
	})
}
