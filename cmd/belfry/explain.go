package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/belfry-go/belfry/cmd/belfry/internal/show"
	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/scheduler"
)

func explainCommand() *cobra.Command {
	var o operation
	var f occurrenceFlags
	cmd := o.operate(&cobra.Command{
		Use:   "explain JOB --due INSTANT",
		Short: "Say what became of a run, and why",
		Long: `Say in plain sentences what became of an occurrence: who claimed it and when, why
it ran, was skipped, was missed, waits or is late. The first line is its ID, as logs
have it, which is also its idempotency key. Without --key it is about the due of all
keys, where the job has keys.`,
		Example: "  belfry explain renewals --key c-000042 --due 2026-10-01T00:30:00Z --store sqlite:billing.db --namespace billing",
	}, func(args []string) (action, error) {
		id, err := f.read(args)
		return func(ctx context.Context, c *scheduler.Client) error { return o.explain(ctx, c, id) }, err
	})
	f.define(o.set)
	o.storeFlags()
	return cmd
}

func (o *operation) explain(ctx context.Context, c *scheduler.Client, id idempotency.ID) error {
	e, err := c.Explain(ctx, id)
	if err != nil {
		return err
	}
	if o.json {
		v := explanationView{
			Job: e.ID.Job, keyView: viewKey(e.ID.Key), Due: instant(e.ID.Due), Request: e.ID.Request,
			Sentences: append([]string{}, e.Sentences...),
		}
		if e.Run != nil {
			run := o.viewRun(*e.Run)
			v.Run = &run
		}
		return writeJSON(o.out, v)
	}
	var b strings.Builder
	if e.ID.Key != "" { // else it is about all keys, which have IDs of their own
		fmt.Fprintln(&b, o.idOf(e.ID))
	}
	for _, s := range e.Sentences {
		fmt.Fprintf(&b, "- %s\n", show.Line(s)) // so that nothing in it passes for a further sentence
	}
	_, err = fmt.Fprint(o.out, b.String())
	return err
}
