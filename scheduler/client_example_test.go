package scheduler_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/scheduler"
)

// incident is what a program of the on-call team does.
func incident(ctx context.Context, out io.Writer, store idempotency.Store, due time.Time) error {
	c, err := scheduler.NewClient("billing", store) // the namespace and the store of the replicas
	if err != nil {
		return err
	}
	by := scheduler.By{Actor: "ann@example.com", Reason: "provider down until 04:00", Request: "incident-481"}
	if _, err := c.Pause(ctx, "renewals", by); err != nil {
		return err
	}
	why, err := c.Explain(ctx, idempotency.ID{Job: "renewals", Key: "c-000042", Due: due})
	if err != nil {
		return err
	}
	for _, sentence := range why.Sentences {
		fmt.Fprintln(out, sentence)
	}
	for gap, err := range c.Gaps(ctx, "renewals", due.AddDate(0, 0, -7), due) {
		if err != nil {
			return err
		}
		fmt.Fprintln(out, gap.Count, "dues without a record, from", gap.From, "to", gap.To)
	}
	return nil
}

// A client needs nothing but the store: no replica has to be up.
func ExampleClient() {
	ctx, now := context.Background(), time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)
	store := idempotency.NewMemory(func() time.Time { return now })
	if err := declare(ctx, store, now); err != nil { // as a replica does
		fmt.Println(err)
		return
	}
	if err := incident(ctx, os.Stdout, store, now.Add(30*time.Minute)); err != nil {
		fmt.Println(err)
	}
	// Output:
	// Job "renewals", key "c-000042", due 2026-10-01T00:30:00Z: it is still to come, in 30m.
	// Its schedule "30 0 * * *" names that instant.
	// Every due of the job up to 2026-10-01T00:00:00Z is decided.
	// The job is paused: it is to be skipped (paused), unless the job is resumed before.
	// At 2026-10-01T00:00:00Z "ann@example.com" paused the job: provider down until 04:00
	// Live replicas that have the job's code: "a".
	// By the default ring layout over the live replicas the key's owner is now "a"; members may see others alive than the store does.
}

func declare(ctx context.Context, store idempotency.Store, now time.Time) error {
	s, _, err := store.OpenSession(ctx, idempotency.Opening{
		Namespace: "billing", Replica: "a", Boot: "1", Partitions: 8, Lease: time.Minute, Horizon: time.Hour, Retention: 2 * time.Hour,
	})
	if err != nil {
		return err
	}
	def := idempotency.Definition{Job: "renewals", Schedule: "30 0 * * *", Hash: "1", Keyed: true}
	_, err = store.Declare(ctx, s, 1, []idempotency.Declaration{{Definition: def, Opened: now}})
	return err
}
