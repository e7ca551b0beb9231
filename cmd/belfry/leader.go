package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-go/belfry/cmd/belfry/internal/show"
	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/scheduler"
)

func leaderCommand() *cobra.Command {
	var o operation
	cmd := o.operate(&cobra.Command{
		Use:   "leader",
		Short: "Say who leads, and why",
		Long: `Say which replica leads the namespace, since when, in which term, and why the one
before it does no more. Where nobody leads, say who did last, and how that ended.

The exit status is 4 where nobody leads. A leader that died is named, with status 0,
until its lease has ended.`,
		Example: "  belfry leader --store sqlite:billing.db --namespace billing",
	}, func(args []string) (action, error) {
		return o.leader, noArguments(args)
	})
	o.storeFlags()
	return cmd
}

func (o *operation) leader(ctx context.Context, c *scheduler.Client) error {
	l, err := c.Leader(ctx)
	if err != nil {
		return err
	}
	if l.Term == 0 {
		if err := o.known(ctx, c); err != nil {
			return err
		}
	}
	if o.json {
		err = writeJSON(o.out, viewLeader(l))
	} else {
		_, err = fmt.Fprint(o.out, aboutLeader(l, time.Now()))
	}
	if err == nil && !leads(l) {
		return coded{errSilent, statusAmiss}
	}
	return err
}

// leads says whether it is somebody who leads now.
func leads(l idempotency.Leader) bool { return l.Term != 0 && l.Until.IsZero() }

// aboutLeader is who leads, or did, in lines.
func aboutLeader(l idempotency.Leader, now time.Time) string {
	at := func(t time.Time) string { return fmt.Sprintf("%s (%s)", show.Instant(t), show.Age(t, now)) }
	why := show.Line(l.Why)
	switch {
	case l.Term == 0:
		return "nobody leads, and nobody ever has\n"
	case leads(l):
		return fmt.Sprintf("%s leads since %s, in term %d\nwhy: %s\n", show.Word(l.Replica), at(l.Since), l.Term, why)
	}
	return fmt.Sprintf("nobody leads since %s\n%s led last, since %s, in term %d: %s\n", at(l.Until), show.Word(l.Replica), at(l.Since), l.Term, why)
}
