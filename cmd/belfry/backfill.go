package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-go/belfry/cmd/belfry/internal/show"
	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/scheduler"
)

// backfillFlags are the flags as they were given.
type backfillFlags struct {
	control
	key      keyFlags
	from, to string
	dry      bool
}

func backfillCommand() *cobra.Command {
	var f backfillFlags
	cmd := f.operate(&cobra.Command{
		Use:   "backfill JOB --from INSTANT --to INSTANT",
		Short: "Run the dues of a stretch that did not run",
		Long: `Run a job's dues from --from to before --to that were missed or skipped, or that
nobody ever decided, by the schedule in force now; at most 1000. What is done,
failed, waits or is at work stays as it is. Of a job with keys, without --key, it
is the dues that were never opened, for all keys.

With --dry-run the dues between are printed, those that would stay as they are
too, and nothing is changed. What retention has removed, or is older than the
horizon, is known only when it is done.`,
		Example: "  belfry backfill renewals --from 2026-10-01T00:00:00Z --to 2026-10-03T00:00:00Z --dry-run --store sqlite:billing.db --namespace billing",
	}, f.read)
	f.name = "request"
	f.set.StringVar(&f.from, "from", "", "dues at this `instant` or later, such as 2026-10-01T04:00:00Z")
	f.set.StringVar(&f.to, "to", "", "dues before this `instant`")
	f.key.define(f.set, "of this key alone, where the job has keys")
	f.set.BoolVar(&f.dry, "dry-run", false, "print the dues and change nothing")
	f.byFlags()
	return cmd
}

func (f *backfillFlags) read(args []string) (action, error) {
	job, key, err := jobAndKey(args, &f.key)
	if err != nil {
		return nil, err
	}
	from, to, err := span(f.from, f.to)
	switch {
	case err != nil:
		return nil, err
	case f.from == "" || f.to == "":
		return nil, errors.New("give both --from and --to, so that nobody has to guess which dues are meant")
	case f.dry:
		return func(ctx context.Context, c *scheduler.Client) error { return f.list(ctx, c, job, key, from, to) }, nil
	}
	return f.ask(func(ctx context.Context, c *scheduler.Client) (idempotency.Command, error) {
		return c.Backfill(ctx, job, key, from, to, f.by)
	}, func(c idempotency.Command) string {
		switch c.Changed {
		case 0:
			return ofJob(c) + " has nothing to fill in there; nothing changed"
		case 1:
			return ofJob(c) + ": 1 due is to run"
		}
		return fmt.Sprintf("%s: %d dues are to run", ofJob(c), c.Changed)
	})
}

// list prints the dues that would be asked for.
func (f *backfillFlags) list(ctx context.Context, c *scheduler.Client, job, key string, from, to time.Time) error {
	dues, err := c.BackfillDues(ctx, job, key, from, to)
	if err != nil {
		return err
	}
	if f.json {
		return writeJSON(f.out, viewAll(dues, func(t time.Time) instant { return instant(t) }))
	}
	now := time.Now()
	t := show.NewTable("DUE", "")
	for _, due := range dues {
		t.Add(show.Instant(due), show.Age(due, now))
	}
	return t.Write(f.out)
}
