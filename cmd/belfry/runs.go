package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-go/belfry/cmd/belfry/internal/show"
	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/scheduler"
)

const (
	defaultRows = 50
	maxRows     = 100_000
)

// runsFlags are the flags as they were given.
type runsFlags struct {
	operation
	key                           keyFlags
	job, state, outcome, from, to string
	limit                         int
}

func runsCommand() *cobra.Command {
	var f runsFlags
	cmd := f.operate(&cobra.Command{
		Use:   "runs",
		Short: "List runs, the newest due first",
		Long: `List the runs that the store has a row of, the newest due first. Dues that were
skipped or missed many at once, such as those of a long pause, have one record
together: of these belfry explain tells.`,
		Example: "  belfry runs --store sqlite:billing.db --namespace billing --job renewals --outcome failed\n" +
			"  belfry runs --store sqlite:billing.db --namespace billing --from 2026-10-01T00:00:00Z --json",
	}, func(args []string) (action, error) {
		filter, err := f.read(args)
		return func(ctx context.Context, c *scheduler.Client) error { return f.runs(ctx, c, filter) }, err
	})
	f.set.StringVar(&f.job, "job", "", "of this job")
	f.key.define(f.set, "of this key")
	f.set.StringVar(&f.state, "state", "", "that are waiting, running or ended")
	f.set.StringVar(&f.outcome, "outcome", "", "that ended done, failed, skipped or missed")
	f.set.StringVar(&f.from, "from", "", "due at this `instant` or later, such as 2026-10-01T04:00:00Z")
	f.set.StringVar(&f.to, "to", "", "due before this `instant`")
	f.set.IntVar(&f.limit, "limit", defaultRows, fmt.Sprintf("how many, 1 to %d", maxRows))
	f.storeFlags()
	return cmd
}

func (f *runsFlags) read(args []string) (filter idempotency.Filter, err error) {
	if err := noArguments(args); err != nil {
		return filter, err
	}
	filter = idempotency.Filter{Job: f.job, Newest: true, Limit: f.limit}
	if f.set.Changed("job") {
		if err := jobs.ValidateName(f.job); err != nil {
			return filter, fmt.Errorf("--job: %w", err)
		}
	}
	if filter.Key, err = f.key.read(); err != nil {
		return filter, err
	}
	if filter.State, err = chosen("--state", f.state, idempotency.Waiting, idempotency.Running, idempotency.Ended); err != nil {
		return filter, err
	}
	if filter.Outcome, err = chosen("--outcome", f.outcome, idempotency.Done, idempotency.Failed, idempotency.Skipped, idempotency.Missed); err != nil {
		return filter, err
	}
	if filter.Outcome != 0 && filter.State != 0 && filter.State != idempotency.Ended {
		return filter, errors.New("only runs that have ended have an outcome; leave --state or --outcome out")
	}
	if filter.From, filter.To, err = span(f.from, f.to); err != nil {
		return filter, err
	}
	return filter, limited(f.limit)
}

func limited(rows int) error {
	if rows < 1 || rows > maxRows {
		return fmt.Errorf("--limit %d: give 1 to %d", rows, maxRows)
	}
	return nil
}

// chosen returns which of the values a flag names; zero where it is not given.
func chosen[T interface {
	comparable
	fmt.Stringer
}](flag, text string, values ...T) (chosen T, err error) {
	if text == "" {
		return chosen, nil
	}
	words := ""
	for i, v := range values {
		if v.String() == text {
			return v, nil
		}
		words += map[bool]string{true: "", false: ", "}[i == 0] + v.String()
	}
	return chosen, fmt.Errorf("%s %.80q: give one of %s", flag, text, words)
}

// span reads --from and --to; zero where they are not given.
func span(from, to string) (a, b time.Time, err error) {
	if from != "" {
		if a, err = instantOf("--from", from); err != nil {
			return a, b, err
		}
	}
	if to != "" {
		if b, err = instantOf("--to", to); err != nil {
			return a, b, err
		}
	}
	if from != "" && to != "" && !a.Before(b) {
		err = fmt.Errorf("--from %s is not before --to %s; exchange them", show.Instant(a), show.Instant(b))
	}
	return a, b, err
}

func (f *runsFlags) runs(ctx context.Context, c *scheduler.Client, filter idempotency.Filter) error {
	var list []idempotency.Run
	for r, err := range c.Runs(ctx, filter) {
		if err != nil {
			return err
		}
		list = append(list, r)
	}
	if len(list) == 0 {
		if err := f.known(ctx, c); err != nil {
			return err
		}
	}
	if f.json {
		return writeJSON(f.out, viewAll(list, f.viewRun))
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(f.out, "no such run")
		return err
	}
	keyed, err := f.keyed(ctx)
	if err != nil {
		return err
	}
	now := time.Now()
	t := show.NewTable("DUE", "JOB", "KEY", "REQUEST", "STATE", "", "ATTEMPTS", "CRASHES", "REPLICA", "TERM", "TEXT")
	for _, r := range list {
		t.Add(show.Instant(r.ID.Due), r.ID.Job, ownKey(r.ID, keyed[r.ID.Job]), r.ID.Request, stateOf(r), whenOf(r, now),
			strconv.Itoa(r.Attempt), count(r.Crashes), name(r.Replica), count(r.Term), show.Line(show.Clip(r.Text, maxShown)))
	}
	return t.Write(f.out)
}

// stateOf is a run's state or outcome, with its reason.
func stateOf(r idempotency.Run) string {
	text := r.State.String()
	if r.State == idempotency.Ended {
		text = r.Outcome.String()
	}
	if reason := cmp.Or(r.Cancel, r.Reason); reason != "" {
		text += " (" + show.Line(reason) + ")"
	}
	return text
}

// whenOf is since when a run is in its state or, where it waits, until when.
func whenOf(r idempotency.Run, now time.Time) string {
	at := r.Finished
	switch r.State {
	case idempotency.Waiting:
		at = r.Wake
	case idempotency.Running:
		at = r.Started
	}
	if at.IsZero() {
		return ""
	}
	return show.Age(at, now)
}

// count is a number that is only told where there is one.
func count[N int | int64](n N) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(int64(n), 10)
}

func name(s string) string {
	if s == "" {
		return ""
	}
	return show.Word(s)
}
