package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/belfry-go/belfry/jobs"
)

const (
	defaultDues = 5
	maxDues     = 10_000
)

// nextFlags are the flags as they were given.
type nextFlags struct {
	zone, after, key string
	count            int
	json             bool
	set              *pflag.FlagSet
}

func nextCommand() *cobra.Command {
	var f nextFlags
	cmd := &cobra.Command{
		Use:   "next [flags] [--] SPEC",
		Short: "Print the next dues of a schedule",
		Long: `Print the next dues of a schedule: in UTC, by the clock of its zone, and a note where
that clock was changed. SPEC is any text of jobs.ParseSchedule, in quotes; put -- before one
that begins with a dash. Dues are computed as replicas compute them, with the zones of this
program, or those that the variable ZONEINFO names. Where those cannot be read, standard
error says so.

The exit status is 2 where SPEC or a flag is wrong.`,
		Example: `  belfry next --tz Europe/Berlin "30 2 * * 1-5"
  belfry next --key renewals -n 3 "H H(0-3) * * *"
  belfry next --json --after 2026-03-28T00:00:00Z "TZ=America/New_York 0 9 * * *"`,
		// A flag that is wrong is told as --json says, which is known only when all flags were read.
		DisableFlagParsing: true,
	}
	f.set = cmd.Flags()
	f.set.StringVar(&f.zone, "tz", "", "the `zone` of a crontab line that names none (default UTC)")
	f.set.StringVar(&f.after, "after", "", "the `instant` after which dues count, such as 2026-10-01T04:00:00Z (default now)")
	f.set.IntVarP(&f.count, "count", "n", defaultDues, fmt.Sprintf("how many dues, 1 to %d", maxDues))
	f.set.StringVar(&f.key, "key", "", "the job's `name`, or the key, that each H of SPEC is hashed from")
	f.set.BoolVar(&f.json, "json", false, `print an array of instants in UTC, or {"error": "…"}`)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := f.set.Parse(args); err != nil {
			err = fmt.Errorf("next: %w; see belfry next --help, and put -- before a SPEC that begins with a dash", err)
			return misused(cmd.OutOrStdout(), f.json, args, err)
		}
		if help, _ := f.set.GetBool("help"); help {
			return cmd.Help()
		}
		if err := jobs.ZoneErr(); err != nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "belfry: next: %v\n", err)
		}
		dues, err := f.read(f.set.Args())
		if err == nil {
			return f.print(cmd.Context(), cmd.OutOrStdout(), dues)
		}
		return misused(cmd.OutOrStdout(), f.json, args, err)
	}
	return cmd
}

// duesOf is a schedule and where its dues are to begin.
type duesOf struct {
	jobs.Schedule
	after time.Time
	loc   *time.Location
}

func (f *nextFlags) read(args []string) (*duesOf, error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("next: %d arguments; give one schedule, in quotes, such as \"0 2 * * *\"", len(args))
	}
	if f.count < 1 || f.count > maxDues {
		return nil, fmt.Errorf("next: -n %d: give 1 to %d", f.count, maxDues)
	}
	d := &duesOf{after: time.Now()}
	var err error
	if f.set.Changed("after") {
		if d.after, err = time.Parse(time.RFC3339, f.after); err != nil {
			return nil, fmt.Errorf("next: --after %.80q: write the instant as 2026-10-01T04:00:00Z", f.after)
		}
	}
	if d.Schedule, err = jobs.ParseSchedule(args[0]); err != nil {
		return nil, err
	}
	d.loc = time.UTC
	if f.set.Changed("tz") {
		zoned := jobs.Cron("* * * * *").In(f.zone)
		if err := zoned.Err(); err != nil {
			return nil, fmt.Errorf("next: --tz: %s", strings.TrimPrefix(err.Error(), fmt.Sprintf("jobs: schedule %q: ", zoned)))
		}
		d.loc = zoned.Location()
		d.Schedule = d.In(f.zone)
	}
	if err := f.resolve(d); err != nil {
		return nil, err
	}
	if l := d.Location(); l != time.UTC {
		d.loc = l
	}
	return d, d.Err()
}

// resolve hashes each H. What has one is another schedule afterwards.
func (f *nextFlags) resolve(d *duesOf) error {
	if f.set.Changed("key") {
		if err := jobs.ValidateKey(f.key); err != nil {
			return fmt.Errorf("next: --key: %w", err)
		}
		d.Schedule = d.For(f.key)
		return nil
	}
	if d.For("job") != d.Schedule {
		return fmt.Errorf("next: %q has an H, which is hashed from the job's name; give that with --key", d.String())
	}
	return nil
}

func (f *nextFlags) print(ctx context.Context, out io.Writer, d *duesOf) (err error) {
	var dues []time.Time
	for t, ok := d.Next(d.after); ok && len(dues) < f.count && ctx.Err() == nil; t, ok = d.Next(t) {
		dues = append(dues, t)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if f.json {
		texts := []string{} // not null
		for _, t := range dues {
			texts = append(texts, t.Format(time.RFC3339))
		}
		return writeJSON(out, texts)
	}
	w := bufio.NewWriter(out)
	defer func() { err = errors.Join(err, w.Flush()) }()
	if d.Schedule == jobs.Manual() {
		fmt.Fprintln(w, "no due: it runs only when it is triggered")
		return nil
	}
	if len(dues) == 0 {
		fmt.Fprintf(w, "no due after %s\n", d.after.UTC().Format(time.RFC3339))
		return nil
	}
	n := newNoter(d.Schedule, d.loc)
	before, ok := d.Prev(dues[0])
	if !ok {
		before = dues[0]
	}
	for _, t := range dues {
		fmt.Fprintf(w, "%s\t%s", t.Format(time.RFC3339), t.In(d.loc).Format("Mon 2006-01-02 15:04:05 -07:00 MST"))
		if note := n.note(before, t); note != "" {
			fmt.Fprintf(w, "\t%s", note)
		}
		fmt.Fprintln(w)
		before = t
	}
	return nil
}
