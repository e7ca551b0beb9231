package idempotency_test

import (
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/belfry-go/belfry/idempotency"
)

// Applications keep slots in their tables, so these never change. The first
// three are the low bits of XXH64's published test vectors.
func TestSlotGolden(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]int{
		"":                               0xe999,
		"a":                              0x6e5b,
		"abc":                            0x0999,
		"customer-42":                    35855,
		"Kéy\x00":                        41501,
		strings.Repeat("0123456789", 25): 41884,
	} {
		if got := idempotency.Slot(key); got != want {
			t.Errorf("Slot(%q) = %d, want %d", key, got, want)
		}
	}
}

// The partition comes from the slot alone: P can change without new slots.
func TestSlotKeepsPartitions(t *testing.T) {
	t.Parallel()
	key := ""
	for range 255 {
		key += "k"
		for p := 1; p <= 1<<16; p *= 2 {
			if got, want := idempotency.Slot(key)%p, int(xxhash.Sum64String(key)%uint64(p)); got != want {
				t.Fatalf("partition of %q of %d: %d, want %d", key, p, got, want)
			}
		}
	}
}
