package sim_test

import (
	"context"
	"errors"
	"testing"

	"github.com/belfry-go/belfry/internal/sim"
)

// TestEach demands that trials beside each other are what each is alone, and are told in the order of their seeds: all until the context
// ends. It is what internal/sim has of goroutines, and runs with the race detector too.
func TestEach(t *testing.T) {
	t.Parallel()
	const many = 4
	x := sim.Trial{Seed: 1, Hours: .2, Replicas: 3}
	var told []string
	err := x.Each(t.Context(), many, 3, func(one sim.Trial, r sim.Report) {
		if alone := one.Run(t.Context()); one.Seed != 1+uint64(len(told)) || alone.Digest != r.Digest || r.Err != nil {
			t.Errorf("told as number %d: seed %d, %s, %v; alone it is %s", len(told)+1, one.Seed, r.Digest, r.Err, alone.Digest)
		}
		told = append(told, r.Digest)
	})
	if err != nil || len(told) != many {
		t.Errorf("%d of %d are told, %v", len(told), many, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	told = nil
	err = x.Each(ctx, 100, 3, func(_ sim.Trial, r sim.Report) {
		told = append(told, r.Digest)
		cancel()
	})
	if !errors.Is(err, context.Canceled) || len(told) != 1 {
		t.Errorf("%d are told, %v; want one, and that the context has ended", len(told), err)
	}
}
