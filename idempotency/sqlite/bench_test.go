package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/storetest"
)

func BenchmarkStore(b *testing.B) {
	storetest.Bench(b, func(b *testing.B) storetest.Store { return openAt(b, file(b), nil, time.Now) })
}

func BenchmarkStoreAllowLossy(b *testing.B) {
	storetest.Bench(b, func(b *testing.B) storetest.Store {
		return openAt(b, file(b), &Options{AllowLossy: true}, time.Now)
	})
}

// BenchmarkRaw is what SQLite can do at best on this machine: whole batches of
// keys, one statement each, into a table without indexes, fences or sessions.
func BenchmarkRaw(b *testing.B) {
	s := openAt(b, file(b), nil, time.Now)
	c := <-s.writer
	defer func() { s.writer <- c }()
	ctx := context.Background()
	if err := c.run(ctx, `CREATE TABLE raw (due INTEGER, job TEXT, key TEXT, session INTEGER, fence INTEGER, PRIMARY KEY (due, job, key)) WITHOUT ROWID`); err != nil {
		b.Fatal(err)
	}
	n := 0
	for b.Loop() {
		keys := make([]string, idempotency.MaxBatch)
		for i := range keys {
			n++
			keys[i] = fmt.Sprintf("customer-%08d", n)
		}
		list, err := json.Marshal(keys)
		if err != nil {
			b.Fatal(err)
		}
		st, err := c.prepare(`INSERT INTO raw SELECT 1, 'keyed', value, 1, ? + key FROM json_each(?) WHERE true ON CONFLICT DO NOTHING`)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := st.ExecContext(ctx, n, string(list)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "keys/s")
}
