package sqlite

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// A Declare that comes late changes nothing, so it may name a job of which
// there is no entry; a store must answer it all the same.
func TestLateDeclareOfUnknownJob(t *testing.T) {
	t.Parallel()
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("Declare panics: %v", p)
		}
	}()
	ctx := context.Background()
	file, err := Open(ctx, filepath.Join(t.TempDir(), "s.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, store := range []idempotency.Store{idempotency.NewMemory(nil), file} {
		s, r, err := store.OpenSession(ctx, idempotency.Opening{Namespace: "n", Replica: "a", Boot: "b", Partitions: 16,
			Lease: time.Minute, Horizon: time.Hour, Retention: 2 * time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		of := func(job string) []idempotency.Declaration {
			return []idempotency.Declaration{{Definition: idempotency.Definition{Job: job, Hash: "h"}, Opened: r.Now}}
		}
		if _, err := store.Declare(ctx, s, 5, of("x")); err != nil {
			t.Fatal(err)
		}
		e, err := store.Declare(ctx, s, 4, of("y"))
		if err != nil || len(e) != 1 || e[0].Job != "" {
			t.Errorf("%T: got %v, %v; want one zero entry", store, e, err)
		}
	}
}
