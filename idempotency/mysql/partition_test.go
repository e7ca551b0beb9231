package mysql

import (
	"context"
	"database/sql"
	"testing"

	"github.com/belfry-go/belfry/idempotency/storetest"
	"github.com/belfry-go/belfry/internal/testservers"
)

func TestUpkeep(t *testing.T) {
	t.Parallel()
	d := testservers.MariaDB(t).Database(t)
	open := harnesses(t, client(t, d, ""), func() *sql.DB { return client(t, d, "") }, "", false)
	storetest.RunUpkeep(t, func(t *testing.T) storetest.Upkeep {
		h := open(t)
		prefix := h.Store.(*Store).prefix
		return storetest.Upkeep{Harness: h, Repartition: func(ctx context.Context, namespace string, partitions int) error {
			return Repartition(ctx, client(t, d, hostile), namespace, partitions, &Options{Prefix: prefix})
		}}
	})
}
