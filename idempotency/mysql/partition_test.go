package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/belfry-go/belfry/idempotency/storetest"
	"github.com/belfry-go/belfry/internal/testservers"
)

func TestUpkeep(t *testing.T) {
	t.Parallel()
	d := testservers.MariaDB(t).Database(t)
	var n atomic.Int64
	storetest.RunUpkeep(t, func(t *testing.T) storetest.Upkeep {
		prefix := fmt.Sprintf("p%d_", n.Add(1))
		h := harness(t, func() *sql.DB { return client(t, d, "") }, Options{Prefix: prefix}, serverClock, nil)
		return storetest.Upkeep{Harness: h, Repartition: func(ctx context.Context, namespace string, partitions int) error {
			return Repartition(ctx, client(t, d, hostile), namespace, partitions, &Options{Prefix: prefix})
		}}
	})
}
