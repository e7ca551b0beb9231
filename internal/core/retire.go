package core

import (
	"context"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// retireAfter is for how long nobody announces a job, while others are alive, until it is retired; orphanEvery is how
// often such a job is reported.
const (
	retireAfter = 24 * time.Hour
	orphanEvery = time.Hour
)

// retire lets the owner of partition 0 count for how long nobody has had the code of a job, and retire what has gone.
func (c *Core) retire(s *session) {
	c.emit(newCall("Retire",
		func(ctx context.Context, st idempotency.Store) ([]idempotency.Orphan, error) {
			return st.Retire(ctx, s.Session, retireAfter)
		},
		func(list []idempotency.Orphan, err error) {
			if err == nil {
				c.reportOrphans(list)
			}
		}))
}

// reportOrphans tells of the jobs that nobody has: now and then, and when they are retired.
func (c *Core) reportOrphans(list []idempotency.Orphan) {
	still := make(map[string]time.Duration, len(list))
	for _, o := range list {
		told, had := c.orphans[o.Job]
		if !had || o.Retired || c.now.Mono-told >= orphanEvery {
			c.emit(Orphaned(o))
			told = c.now.Mono
		}
		if !o.Retired {
			still[o.Job] = told
		}
	}
	c.orphans = still
}
