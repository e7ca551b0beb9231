package ordeal

import (
	"context"
	"testing"

	"github.com/belfry-go/belfry/idempotency/storetest"
	"github.com/belfry-go/belfry/jobs"
)

// F05, F09: holders crash and pause, and what they do then is refused. Each run's effect is in the transaction that
// completes it, but in memory.
func TestStress(t *testing.T) {
	each(t, anyStore, func(t *testing.T, s *site) {
		storetest.Stress(t, func(t *testing.T) storetest.Harness {
			h := storetest.Harness{Store: s.open(t), Second: func(t *testing.T) storetest.Store { return s.open(t) }}
			if s.client != "" {
				s.exec(t, makeEffects)
				h.Effect = &storetest.Effect{
					Apply: func(ctx context.Context, s storetest.Store, o jobs.Occurrence) error {
						return s.(*handle).effect(ctx, o)
					},
					Count: func(context.Context) (map[string]int, error) { return s.effects(t), nil },
				}
			}
			return h
		})
	})
}
