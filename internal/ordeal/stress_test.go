package ordeal

import (
	"context"
	"testing"

	"github.com/belfry-go/belfry/idempotency/storetest"
	"github.com/belfry-go/belfry/jobs"
)

// F09, F05: holders crash and pause, and what they do then is refused. Where a driver can, each run's effect is in the
// transaction that completes it.
func TestStress(t *testing.T) {
	each(t, anyStore, func(t *testing.T, s *site) {
		storetest.Stress(t, func(t *testing.T) storetest.Harness {
			first := s.open(t)
			h := storetest.Harness{Store: first, Second: func(t *testing.T) storetest.Store { return s.open(t) }}
			if first.effect != nil {
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
