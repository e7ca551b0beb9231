package bench

import (
	"context"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/fleet"
	"github.com/belfry-go/belfry/cmd/belfry/internal/storeurl"
	"github.com/belfry-go/belfry/internal/procs"
	"github.com/belfry-go/belfry/jobs"
)

// The jobs, neither with keys: each has one owner.
const (
	tickJob = "tick" // due each second, ends at once
	workJob = "work" // due each workEvery, runs for workTakes: to be killed meanwhile

	workEvery = 4 * time.Second
	workTakes = time.Second
)

// Replica runs one replica in a child process.
func Replica(ctx context.Context, parent *procs.Parent) error {
	return fleet.Replica(ctx, parent, declare)
}

func declare(_ fleet.Spec, _ *storeurl.Client, _ []byte, report func(fleet.Event)) ([]jobs.Job, error) {
	started := func(o jobs.Occurrence) {
		report(fleet.Event{Kind: fleet.Started, Job: o.Job, Due: o.Due, At: time.Now()})
	}
	return []jobs.Job{
		{Name: tickJob, Schedule: jobs.Every(time.Second), Run: func(_ context.Context, o jobs.Occurrence) error {
			started(o)
			return nil
		}},
		{Name: workJob, Schedule: jobs.Every(workEvery), Run: func(ctx context.Context, o jobs.Occurrence) error {
			started(o)
			select {
			case <-time.After(workTakes):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}},
	}, nil
}
