package sqlite

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/storetest"
)

func TestUpkeep(t *testing.T) {
	t.Parallel()
	storetest.RunUpkeep(t, func(t *testing.T) storetest.Upkeep {
		h := harness(t, time.Now, nil)
		return storetest.Upkeep{Harness: h, Repartition: func(ctx context.Context, namespace string, partitions int) error {
			return Repartition(ctx, h.Store.(*Store).path, namespace, partitions, nil)
		}}
	})
}

// F63: of many that migrate at once one makes the store, and the others find it.
func TestMigrate(t *testing.T) {
	t.Parallel()
	path := file(t)
	o := &Options{NoMigrate: true}
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if err := Migrate(t.Context(), path, o); err != nil {
				t.Errorf("migrate: %v", err)
			}
		})
	}
	all.Wait()
	if !o.NoMigrate {
		t.Error("the caller's options were changed")
	}
	id := openAt(t, path, o, time.Now).id
	if err := Migrate(t.Context(), path, nil); err != nil {
		t.Errorf("migrate again: %v", err)
	}
	if again := openAt(t, path, o, time.Now).id; again != id || id == "" {
		t.Errorf("the identity was %q and is %q", id, again)
	}
}

// What people run by hand makes a store as Open makes one, and each time another.
func TestScript(t *testing.T) {
	t.Parallel()
	text, err := Script(nil)
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for range 2 {
		path := file(t)
		run(t, raw(t, path), text)
		s := openAt(t, path, &Options{NoMigrate: true}, time.Now)
		newWorker(t, s).claim(t, 0, 1)
		seen[s.id] = true
	}
	if len(seen) != 2 {
		t.Errorf("two stores have one identity: %v", seen)
	}
}

// The wrong file is found out, and none is made.
func TestRepartitionMakesNoStore(t *testing.T) {
	t.Parallel()
	path := file(t)
	if err := Repartition(t.Context(), path, "ns", 16, nil); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a missing file: %v", err)
	}
	if err := Migrate(t.Context(), path, nil); err != nil {
		t.Fatal(err)
	}
	err := Repartition(t.Context(), path, "ns", 16, nil)
	if err == nil || !strings.Contains(err.Error(), `has no namespace "ns"`) || !strings.Contains(err.Error(), path) {
		t.Errorf("a missing namespace: %v", err)
	}
	s := openAt(t, path, nil, time.Now)
	if err := s.DropNamespace(t.Context(), "n s"); err == nil || !strings.HasPrefix(err.Error(), "sqlite: drop namespace: ") {
		t.Errorf("a bad namespace: %v", err)
	}
	newWorker(t, s)
	for range s.List(t.Context(), idempotency.Filter{Namespace: "ns"}) {
		t.Error("a run is there")
	}
}
