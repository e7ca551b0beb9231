package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-go/belfry/cmd/belfry/internal/show"
	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/scheduler"
)

func commandsCommand() *cobra.Command {
	var o operation
	var job string
	var limit int
	cmd := o.operate(&cobra.Command{
		Use:   "commands",
		Short: "List what people asked for, the newest first",
		Long: `List the commands that were given, the newest first: by whom, why, and how much each
changed. Those that were rejected have no record.`,
		Example: "  belfry commands --job renewals --store sqlite:billing.db --namespace billing",
	}, func(args []string) (action, error) {
		if err := noArguments(args); err != nil {
			return nil, err
		}
		if o.set.Changed("job") {
			if err := jobs.ValidateName(job); err != nil {
				return nil, fmt.Errorf("--job: %w", err)
			}
		}
		return func(ctx context.Context, c *scheduler.Client) error { return o.commands(ctx, c, job, limit) }, limited(limit)
	})
	o.set.StringVar(&job, "job", "", "about this job")
	o.set.IntVar(&limit, "limit", defaultRows, fmt.Sprintf("how many, 1 to %d", maxRows))
	o.storeFlags()
	return cmd
}

func (o *operation) commands(ctx context.Context, c *scheduler.Client, job string, limit int) error {
	var list []idempotency.Command
	for cmd, err := range c.Commands(ctx, job) {
		if err != nil {
			return err
		}
		if list = append(list, cmd); len(list) == limit {
			break
		}
	}
	if len(list) == 0 {
		if err := o.known(ctx, c); err != nil {
			return err
		}
	}
	if o.json {
		return writeJSON(o.out, viewAll(list, viewCommand))
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(o.out, "nobody asked for anything")
		return err
	}
	keyed, err := o.keyed(ctx)
	if err != nil {
		return err
	}
	now := time.Now()
	t := show.NewTable("AT", "", "COMMAND", "JOB", "KEY", "DUE", "LAST DUE", "RUN", "CHANGED", "ACTOR", "REQUEST", "REASON")
	for _, cmd := range list {
		due, last := "", ""
		if !cmd.ID.Due.IsZero() {
			due = show.Instant(cmd.ID.Due)
		}
		if !cmd.Last.IsZero() {
			last = show.Instant(cmd.Last)
		}
		t.Add(show.Instant(cmd.At), show.Age(cmd.At, now), cmd.Kind.String(), cmd.ID.Job, ownKey(cmd.ID, keyed[cmd.ID.Job]), due, last, cmd.ID.Request,
			strconv.Itoa(cmd.Changed), show.Word(cmd.Actor), cmd.Request, show.Line(show.Clip(cmd.Reason, maxShown)))
	}
	return t.Write(o.out)
}
