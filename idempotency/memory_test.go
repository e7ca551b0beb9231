package idempotency_test

import (
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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

func TestMemory(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) storetest.Harness {
		c := newClock()
		return storetest.Harness{Store: idempotency.NewMemory(c.Now), Advance: c.Advance}
	})
}

// With the host's clock, as a user has it; it is also how drivers run the suite
// that cannot move their clock.
func TestMemoryOnHostClock(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) storetest.Harness {
		return storetest.Harness{Store: idempotency.NewMemory(nil)}
	})
}

func BenchmarkMemory(b *testing.B) {
	storetest.Bench(b, func(*testing.B) storetest.Store { return idempotency.NewMemory(nil) })
}
