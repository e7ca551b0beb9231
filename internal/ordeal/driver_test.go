package ordeal

import (
	"path/filepath"
	"testing"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/sqlite"
	"github.com/belfry-go/belfry/idempotency/storetest"
)

// driver is one kind of store.
type driver struct {
	name string
	make func(t *testing.T) *site
}

var drivers = []driver{
	{"memory", func(*testing.T) *site {
		s := idempotency.NewMemory(nil)
		return &site{open: func(*testing.T) storetest.Store { return s }}
	}},
	{"sqlite", func(t *testing.T) *site {
		path := filepath.Join(t.TempDir(), "belfry.db")
		return &site{open: func(t *testing.T) storetest.Store {
			s, err := sqlite.Open(t.Context(), path, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
			return s
		}}
	}},
}

// site is one store's data, empty at first.
type site struct {
	open func(t *testing.T) storetest.Store // another handle on it, closed with the test
}

// each runs a test on every driver.
func each(t *testing.T, test func(t *testing.T, s *site)) {
	t.Parallel()
	for _, d := range drivers {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			test(t, d.make(t))
		})
	}
}
