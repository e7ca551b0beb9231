package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-go/belfry/cmd/belfry/internal/show"
	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/scheduler"
)

// defaultSpan is how far back gaps are looked for.
const defaultSpan = 24 * time.Hour

func gapsCommand() *cobra.Command {
	var o operation
	var from, to string
	cmd := o.operate(&cobra.Command{
		Use:   "gaps [JOB]",
		Short: "Find dues of which the store has no record",
		Long: `Find the dues of a job, or of all jobs, of which the store has no record, by the
schedules in force now: after a schedule was changed, older dues are held against
the new one. Dues that came more than a minute ago and that no replica has decided,
as while none is up, are told of as well. Of efficiency jobs there is no record, and
of a schedule that is a program's own nobody else can tell the dues: these are left
out, or rejected where JOB names one.

The exit status is 4 where there is a gap.`,
		Example: "  belfry gaps --store sqlite:billing.db --namespace billing --from 2026-10-01T00:00:00Z",
	}, func(args []string) (action, error) {
		if len(args) > 1 {
			return nil, fmt.Errorf("%d arguments: give the name of one job, or none for all", len(args))
		}
		job := ""
		if len(args) == 1 {
			var err error
			if job, err = oneJob(args); err != nil {
				return nil, err
			}
		}
		a, b, err := span(from, to)
		if b.IsZero() {
			b = time.Now()
		}
		if a.IsZero() {
			a = b.Add(-defaultSpan)
		}
		if err == nil && !a.Before(b) {
			err = fmt.Errorf("--from %s is to come; gaps are looked for in what has passed", show.Instant(a))
		}
		return func(ctx context.Context, c *scheduler.Client) error { return o.gaps(ctx, c, job, a, b) }, err
	})
	o.set.StringVar(&from, "from", "", "dues at this `instant` or later, such as 2026-10-01T04:00:00Z (default: a day before --to)")
	o.set.StringVar(&to, "to", "", "dues before this `instant` (default: now)")
	o.storeFlags()
	return cmd
}

func (o *operation) gaps(ctx context.Context, c *scheduler.Client, job string, from, to time.Time) error {
	gaps, err := o.findGaps(ctx, c, job, from, to)
	if err != nil {
		return err
	}
	if o.json {
		err = writeJSON(o.out, viewAll(gaps, func(g scheduler.Gap) gapView {
			return gapView{g.Job, instant(g.From), instant(g.To), g.Count, g.Undecided}
		}))
	} else {
		err = o.printGaps(gaps, from, to)
	}
	if err == nil && len(gaps) > 0 {
		return coded{errSilent, statusAmiss}
	}
	return err
}

// findGaps looks at one job or, where job is empty, at all whose dues can be told.
func (o *operation) findGaps(ctx context.Context, c *scheduler.Client, job string, from, to time.Time) (gaps []scheduler.Gap, err error) {
	names := []string{job}
	if job == "" {
		list, err := c.Jobs(ctx)
		if err != nil {
			return nil, err
		}
		if len(list) == 0 {
			return nil, o.known(ctx, c)
		}
		names = names[:0]
		for _, j := range list {
			names = append(names, j.Name)
		}
	}
	for _, name := range names {
		for g, err := range c.Gaps(ctx, name, from, to) {
			if job == "" && errors.Is(err, idempotency.ErrRejected) {
				break // none of this job can be told
			}
			if err != nil {
				return nil, err
			}
			if gaps = append(gaps, g); len(gaps) > maxRows {
				return nil, fmt.Errorf("there are more than %d gaps; ask for fewer, by --from and --to", maxRows)
			}
		}
	}
	return gaps, nil
}

func (o *operation) printGaps(gaps []scheduler.Gap, from, to time.Time) error {
	if len(gaps) == 0 {
		_, err := fmt.Fprintf(o.out, "no gap from %s to %s\n", show.Instant(from), show.Instant(to))
		return err
	}
	t := show.NewTable("JOB", "FROM", "TO", "DUES", "STATE")
	for _, g := range gaps {
		state := ""
		if g.Undecided {
			state = "no replica has decided them"
		}
		t.Add(g.Job, show.Instant(g.From), show.Instant(g.To), strconv.FormatInt(g.Count, 10), state)
	}
	return t.Write(o.out)
}
