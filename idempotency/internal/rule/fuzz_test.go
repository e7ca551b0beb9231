package rule

import (
	"bytes"
	"testing"
)

// FuzzRefit takes any bytes for the set of a pass, as a row may have them: no panic, no partition too many, and what splits and merges
// again is as it was.
func FuzzRefit(f *testing.F) {
	f.Add([]byte{}, uint8(0), uint8(0))
	f.Add([]byte{0xff}, uint8(3), uint8(5))
	f.Add([]byte{0x5a, 0x01, 0x80, 0xff}, uint8(5), uint8(2))
	f.Fuzz(func(t *testing.T, b []byte, from, to uint8) {
		p, q := 1<<(from%13), 1<<(to%13)
		set := Bitmap(p)
		copy(set, b)
		if p < 8 {
			set[0] &= 1<<p - 1
		}
		got := Refit(set, p, q)
		if len(got) != len(Bitmap(q)) || q < 8 && got[0]>>q != 0 {
			t.Fatalf("%d partitions: % x became % x of %d", p, set, got, q)
		}
		if q >= p && !bytes.Equal(Refit(got, q, p), set) {
			t.Fatalf("%d partitions: % x is % x after %d and back", p, set, Refit(got, q, p), q)
		}
		if Covers(set, p) && !Covers(got, q) {
			t.Fatalf("all of %d partitions are not all of %d", p, q)
		}
		both := Bitmap(p)
		Or(both, set)
		Or(both, set)
		if !bytes.Equal(both, set) {
			t.Fatalf("% x or itself is % x", set, both)
		}
	})
}
