package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/belfry-go/belfry/cmd/belfry/internal/show"
	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/scheduler"
)

// control is an operation that changes something, and is recorded with who asked and why.
type control struct {
	operation
	by   scheduler.By
	name string // of the flag that names the command
}

// submit asks for it.
type submit func(context.Context, *scheduler.Client) (idempotency.Command, error)

// control makes a command of what read returns, and of the sentence that tells people of its record. Name is the flag that names the
// command.
func (o *control) control(cmd *cobra.Command, name string, read func(args []string) (submit, error), tell func(idempotency.Command) string) *cobra.Command {
	o.name = name
	return o.operate(cmd, func(args []string) (action, error) {
		ask, err := read(args)
		if err != nil {
			return nil, err
		}
		return o.ask(ask, tell)
	})
}

// ask makes the action of a control, once it is known who asks.
func (o *control) ask(ask submit, tell func(idempotency.Command) string) (action, error) {
	return func(ctx context.Context, c *scheduler.Client) error { return o.submit(ctx, c, ask, tell) }, o.checkBy()
}

// byFlags adds the flags that all controls have; below them come those of the store.
func (o *control) byFlags() {
	o.set.StringVar(&o.by.Reason, "reason", "", "why, for whoever reads the record")
	o.set.StringVar(&o.by.Actor, "actor", "", "who asks (default: USER@HOST of this process)")
	o.set.StringVar(&o.by.Request, o.name, "", "a name for what is asked, so that asking again changes nothing (default: a new one)")
	o.storeFlags()
}

// checkBy completes who asks, and refuses what no store would record.
func (o *control) checkBy() error {
	if o.by.Actor == "" {
		o.by.Actor = whoami()
	}
	if o.by.Actor == "" {
		return errors.New("nobody can tell who asks; give --actor")
	}
	if o.by.Request == "" {
		o.by.Request = uuid.NewString()
	} else if err := jobs.ValidateRequest(o.by.Request); err != nil {
		return fmt.Errorf("--%s: %w", o.name, err)
	}
	return idempotency.Command{
		Kind: idempotency.Pause, ID: idempotency.ID{Job: "any"}, Request: o.by.Request, Actor: o.by.Actor, Reason: o.by.Reason,
	}.Validate()
}

// whoami is the user and host of this process; empty where it has no user.
func whoami() string {
	name := cmp.Or(os.Getenv("USER"), os.Getenv("LOGNAME"))
	if name == "" {
		u, err := user.Current()
		if err != nil {
			return ""
		}
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		return name
	}
	return name + "@" + host
}

func (o *control) submit(ctx context.Context, c *scheduler.Client, ask submit, tell func(idempotency.Command) string) error {
	record, err := ask(ctx, c)
	switch {
	case errors.Is(err, idempotency.ErrRejected), errors.Is(err, scheduler.ErrUnknown):
		return err
	case err != nil:
		return fmt.Errorf("%w; whether it was done is not known: ask again with --%s %s, which changes nothing if it was", err, o.name, o.by.Request)
	}
	if o.json {
		return writeJSON(o.out, viewCommand(record))
	}
	if !o.set.Changed("key") && !o.set.Changed("key-hex") {
		record.ID.Key = "" // that of a job without keys is its name, which nobody has to give
	}
	_, err = fmt.Fprintf(o.out, "%s\nrecorded at %s as %s, by %s\n", tell(record), show.Instant(record.At), record.Request, show.Line(record.Actor))
	return err
}

// ofJob names the job and key of a record.
func ofJob(c idempotency.Command) string {
	if key := ownKey(c.ID, true); key != "" {
		return c.ID.Job + ", key " + key
	}
	return c.ID.Job
}

func pauseCommand() *cobra.Command {
	var o control
	cmd := o.control(&cobra.Command{
		Use:   "pause JOB",
		Short: "Skip a job's dues until it is resumed",
		Long: `Pause a job: what falls due from now on is recorded as skipped (paused), until the
job is resumed. Runs that have begun, or wait, go on. It takes effect on every
replica within two sweeps, and is kept over restarts.`,
		Example: `  belfry pause renewals --reason "the provider is down" --store sqlite:billing.db --namespace billing`,
	}, "request", func(args []string) (submit, error) {
		job, err := oneJob(args)
		return func(ctx context.Context, c *scheduler.Client) (idempotency.Command, error) {
			return c.Pause(ctx, job, o.by)
		}, err
	}, func(c idempotency.Command) string {
		if c.Changed == 0 {
			return c.ID.Job + " was paused already; nothing changed"
		}
		return c.ID.Job + " is paused: what falls due is recorded as skipped (paused), until belfry resume " + c.ID.Job
	})
	o.byFlags()
	return cmd
}

func resumeCommand() *cobra.Command {
	var o control
	cmd := o.control(&cobra.Command{
		Use:   "resume JOB",
		Short: "End a pause",
		Long: `End a job's pause: what falls due from now on runs again. What fell due meanwhile
was skipped; belfry backfill runs it.`,
		Example: "  belfry resume renewals --store sqlite:billing.db --namespace billing",
	}, "request", func(args []string) (submit, error) {
		job, err := oneJob(args)
		return func(ctx context.Context, c *scheduler.Client) (idempotency.Command, error) {
			return c.Resume(ctx, job, o.by)
		}, err
	}, func(c idempotency.Command) string {
		if c.Changed == 0 {
			return c.ID.Job + " was not paused; nothing changed"
		}
		return c.ID.Job + " is resumed: what falls due from now on runs"
	})
	o.byFlags()
	return cmd
}

func skipCommand() *cobra.Command {
	var o control
	var key keyFlags
	cmd := o.control(&cobra.Command{
		Use:   "skip JOB",
		Short: "Skip a job's next due",
		Long: `Skip the job's next due, or one key's run of it: it is recorded as skipped (by
hand). Asked again, it skips the same due, not the one after.`,
		Example: "  belfry skip renewals --key c-000042 --store sqlite:billing.db --namespace billing",
	}, "request", func(args []string) (submit, error) {
		job, key, err := jobAndKey(args, &key)
		return func(ctx context.Context, c *scheduler.Client) (idempotency.Command, error) {
			return c.SkipNext(ctx, job, key, o.by)
		}, err
	}, func(c idempotency.Command) string {
		if c.Changed == 0 {
			return fmt.Sprintf("the due %s of %s was skipped already; nothing changed", show.Instant(c.ID.Due), ofJob(c))
		}
		return fmt.Sprintf("the due %s of %s is skipped", show.Instant(c.ID.Due), ofJob(c))
	})
	key.define(o.set, "this key's run alone")
	o.byFlags()
	return cmd
}

// jobAndKey reads the only argument and the key flags.
func jobAndKey(args []string, key *keyFlags) (string, string, error) {
	job, err := oneJob(args)
	if err != nil {
		return "", "", err
	}
	k, err := key.read()
	return job, k, err
}
