package sqlite

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/belfry-go/belfry/idempotency/storetest"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleIn); role != "" {
		os.Exit(play(role, os.Getenv(pathIn)))
	}
	goleak.VerifyTestMain(m)
}

// clock is a store's clock that a test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock {
	return &clock{now: time.Date(2026, 10, 1, 4, 0, 0, 123456789, time.UTC)}
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.now = c.now.Add(d)
}

// openAt opens the store at path and closes it when the test ends.
func openAt(t testing.TB, path string, o *Options, now func() time.Time) *Store {
	t.Helper()
	s, err := open(context.Background(), path, o, now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func file(t testing.TB) string { return filepath.Join(t.TempDir(), "belfry.db") }

// harness is a store of its own, all of whose handles share a clock.
func harness(t *testing.T, now func() time.Time, advance func(time.Duration)) storetest.Harness {
	path := file(t)
	s := openAt(t, path, nil, now)
	handles := []*Store{s}
	another := func(t *testing.T) storetest.Store {
		s := openAt(t, path, nil, now)
		handles = append(handles, s)
		return s
	}
	return storetest.Harness{
		Store:   s,
		Second:  another,
		Advance: advance,
		Reopen: func(t *testing.T) storetest.Store {
			for _, s := range handles {
				if err := s.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			}
			return another(t)
		},
	}
}

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		c := newClock()
		return harness(t, c.Now, c.Advance)
	})
}

// With the host's clock, as a user has it.
func TestStoreOnHostClock(t *testing.T) {
	if raced {
		t.Skip("the race detector runs, and has seen this code in TestStore")
	}
	t.Parallel()
	storetest.Run(t, func(t *testing.T) storetest.Harness { return harness(t, time.Now, nil) })
}
