package fleet

import (
	"context"
	"sync/atomic"
	"time"
)

// watchUsage reports what this process has used, every so often.
func watchUsage(ctx context.Context, every time.Duration, calls *atomic.Int64, report func(Event)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			report(Event{Kind: Usage, At: time.Now(), CPU: CPU(), Calls: calls.Load()})
		case <-ctx.Done():
			return
		}
	}
}
