package sim

import (
	"time"

	"github.com/belfry-go/belfry/internal/core"
)

// epoch is the true time at which every world begins.
var epoch = time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)

// clock is what one host says of the time. Both of its clocks drift together;
// only the wall clock can be wrong by an offset, or be set.
type clock struct {
	base   time.Duration // what the monotonic clock said at the beginning
	drift  int64         // millionths by which it runs fast
	offset time.Duration // wall minus monotonic, beyond the base
	slept  time.Duration // how long the host was suspended: the monotonic clock stood still
}

func (c *clock) mono(t time.Duration) time.Duration {
	return c.base + t - c.slept + c.gain(t)
}

func (c *clock) gain(t time.Duration) time.Duration {
	if c.drift == 0 {
		return 0
	}
	return t / 1000 * time.Duration(c.drift) / 1000
}

// at is a reading at an instant of true time.
func (c *clock) at(t time.Duration) core.Instant {
	return core.Instant{Mono: c.mono(t), Wall: epoch.Add(t + c.gain(t) + c.offset)}
}

// when is the first instant of true time at which the monotonic clock says m or more.
func (c *clock) when(m time.Duration) time.Duration {
	t := m - c.base + c.slept
	t -= c.gain(t)
	for c.mono(t) < m {
		t += max((m-c.mono(t))/2, 1)
	}
	return t
}

// Unix is an instant since the world's beginning in Unix seconds, as the oracle counts.
func Unix(t time.Duration) int64 { return epoch.Add(t).Unix() }
