package ring

import (
	"slices"
	"strings"
	"testing"
)

// FuzzNew takes names as one string cut at commas: whatever they are, New gives
// an error or a ring whose answers are members.
func FuzzNew(f *testing.F) {
	f.Add("node-1,node-11,node-2", "customer-42", 256, 20, 1.1)
	f.Add("", "", 0, 2, 0.0)
	f.Add("a,a", "k", 16, 2, 1.0)
	f.Add("a\x00,\xff", "\x00", 1, 1, 1.5)
	f.Add(strings.Repeat("x", 4096), "k", 271, 20, 1.25)
	f.Add("a,b,c", "k", 2, 3, 2.0)
	f.Fuzz(func(t *testing.T, list, key string, partitions, virtual int, load float64) {
		names := strings.Split(list, ",")
		if len(names) > 64 || virtual > 64 { // keep each try short
			t.Skip()
		}
		r, err := New(names, &Options{Partitions: partitions, VirtualNodes: virtual, Load: load})
		if err != nil {
			if !strings.HasPrefix(err.Error(), "ring: ") {
				t.Fatalf("error %q without its package", err)
			}
			return
		}
		owners := r.Owners(key, len(names))
		if len(owners) != len(names) || owners[0] != r.Owner(key) {
			t.Fatalf("Owners = %q, Owner = %q of %q", owners, r.Owner(key), names)
		}
		slices.Reverse(names)
		again, err := New(names, &Options{Partitions: partitions, VirtualNodes: virtual, Load: load})
		if err != nil || again.Fingerprint() != r.Fingerprint() {
			t.Fatalf("reversed names give another ring (%v)", err)
		}
	})
}
