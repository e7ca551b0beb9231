package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/scheduler"
)

// commandFlag names a control whose --request is that of the run.
const commandFlag = "command"

func cancelCommand() *cobra.Command {
	var o control
	var f occurrenceFlags
	cmd := o.control(&cobra.Command{
		Use:   "cancel JOB --due INSTANT",
		Short: "End a run that waits or is at work",
		Long: `End a run. One that waits is skipped (by hand). One that is at work has its
handler's context ended within two sweeps, with the cause jobs.ErrCanceled, and is
failed (canceled) unless the handler returns nil.`,
		Example: "  belfry cancel renewals --key c-000042 --due 2026-10-01T00:30:00Z --store sqlite:billing.db --namespace billing",
	}, commandFlag, func(args []string) (submit, error) {
		id, err := f.read(args)
		return func(ctx context.Context, c *scheduler.Client) (idempotency.Command, error) {
			return c.Cancel(ctx, id, o.by)
		}, err
	}, func(c idempotency.Command) string {
		if c.Changed == 0 {
			return "the run was told to end already; nothing changed"
		}
		return "the run is told to end, or skipped where it waited; what becomes of it tells\n  belfry explain " + arguments(c.ID)
	})
	f.define(o.set)
	o.byFlags()
	return cmd
}

func retryCommand() *cobra.Command {
	var o control
	var f occurrenceFlags
	cmd := o.control(&cobra.Command{
		Use:   "retry JOB --due INSTANT",
		Short: "Run a failed run again",
		Long: `Make a run that has failed wait to be run again, at once and with all its attempts.
It keeps its identity and its idempotency key.`,
		Example: "  belfry retry renewals --key c-000042 --due 2026-10-01T00:30:00Z --store sqlite:billing.db --namespace billing",
	}, commandFlag, func(args []string) (submit, error) {
		id, err := f.read(args)
		return func(ctx context.Context, c *scheduler.Client) (idempotency.Command, error) {
			return c.Retry(ctx, id, o.by)
		}, err
	}, func(c idempotency.Command) string {
		return fmt.Sprintf("the run waits to be run again; what becomes of it tells\n  belfry explain %s", arguments(c.ID))
	})
	f.define(o.set)
	o.byFlags()
	return cmd
}
