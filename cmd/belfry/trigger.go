package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/belfry-go/belfry/cmd/belfry/internal/show"
	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/scheduler"
)

// maxPayload is what stores take at most.
const maxPayload = 64 << 10

func triggerCommand() *cobra.Command {
	var o control
	var key keyFlags
	var payload string
	cmd := o.control(&cobra.Command{
		Use:   "trigger JOB",
		Short: "Run a job now",
		Long: `Ask for a run of a job now, beside its schedule, also while it is paused. The run
waits in the store until a replica takes it. Of a job with keys it runs all, or the
one that --key names.

The run's request is that of the command: belfry explain and belfry cancel take it
as --request.`,
		Example: "  belfry trigger renewals --key c-000042 --reason \"asked for by phone\" --store sqlite:billing.db --namespace billing\n" +
			"  belfry trigger report --payload '{\"month\": \"2026-09\"}' --store sqlite:billing.db --namespace billing",
	}, "request", func(args []string) (submit, error) {
		job, key, err := jobAndKey(args, &key)
		if err != nil {
			return nil, err
		}
		var body []byte
		if o.set.Changed("payload") {
			body, err = readPayload(payload, o.in)
		}
		return func(ctx context.Context, c *scheduler.Client) (idempotency.Command, error) {
			return c.Trigger(ctx, job, key, body, o.by)
		}, err
	}, func(c idempotency.Command) string {
		if c.Changed == 0 {
			return fmt.Sprintf("a due %s of %s is there already; nothing changed", show.Instant(c.ID.Due), ofJob(c))
		}
		return fmt.Sprintf("%s is to run now; what becomes of it tells\n  belfry runs --job %s --from %s", ofJob(c), c.ID.Job, show.Instant(c.ID.Due))
	})
	key.define(o.set, "of this key alone, where the job has keys")
	o.set.StringVar(&payload, "payload", "", "what the handler gets in place of the job's payload: `JSON`, @FILE, or - for standard input")
	o.byFlags()
	return cmd
}

// readPayload returns the payload that a flag names. It is not nil. A text has to be JSON, since nothing else tells that a shell
// has changed it; a file may hold anything.
func readPayload(flag string, in io.Reader) ([]byte, error) {
	path, isFile := strings.CutPrefix(flag, "@")
	switch {
	case isFile:
		f, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("--payload: %w", err)
		}
		defer f.Close()
		in = f
	case flag != "-":
		if !json.Valid([]byte(flag)) {
			return nil, fmt.Errorf("--payload %.80q is not JSON; put it in quotes for the shell, or give @FILE or - for what is not JSON", flag)
		}
		in = strings.NewReader(flag)
	}
	body, err := io.ReadAll(io.LimitReader(in, maxPayload+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("--payload: %w", err)
	case len(body) > maxPayload:
		return nil, errors.New("--payload: it has more than 64 KiB; give the handler where to find it instead")
	}
	return body, nil
}
