package postgres

import (
	"context"
	"testing"

	"github.com/belfry-go/belfry/idempotency/storetest"
	"github.com/belfry-go/belfry/internal/testservers"
)

func TestUpkeep(t *testing.T) {
	t.Parallel()
	p := pool(t, testservers.Postgres(t).Database(t))
	open := harnesses(t, p, "", false, p)
	storetest.RunUpkeep(t, func(t *testing.T) storetest.Upkeep {
		h := open(t)
		prefix := h.Store.(*Store).texts.of("belfry_")
		return storetest.Upkeep{Harness: h, Repartition: func(ctx context.Context, namespace string, partitions int) error {
			return Repartition(ctx, p, namespace, partitions, &Options{Prefix: prefix})
		}}
	})
}
