package ordeal

import (
	"testing"

	"github.com/belfry-go/belfry/idempotency/storetest"
)

// F09: holders crash and pause, and what they do then is refused.
func TestStress(t *testing.T) {
	each(t, anyStore, func(t *testing.T, s *site) {
		storetest.Stress(t, func(t *testing.T) storetest.Harness {
			return storetest.Harness{Store: s.open(t), Second: s.open}
		})
	})
}
