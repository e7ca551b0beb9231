package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-go/belfry/cmd/belfry/internal/bench"
	"github.com/belfry-go/belfry/cmd/belfry/internal/storeurl"
)

func benchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure on this machine",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(latencyCommand(), idleCommand(), gossipCommand(), timersCommand(), soakCommand(), childCommand("replica NAME", 1, bench.Replica),
		childCommand("idler NAME", 1, bench.Idler), childCommand("member NAME", 1, bench.Member), childCommand("timekeeper NAME", 1, bench.Timekeeper),
		childCommand("soaker NAME", 1, bench.Soaker))
	return cmd
}

// report is what a measurement ends with: JSON for programs, Print for people.
type report interface{ Print(io.Writer) }

// measureCommand is a command that measures and prints a report, and tells log meanwhile how far it is. A report that
// asserts something has an Err.
func measureCommand[R report](cmd *cobra.Command, measure func(ctx context.Context, log io.Writer) (R, error)) *cobra.Command {
	var asJSON bool
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the result as one JSON object")
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		r, err := measure(cmd.Context(), cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		if asJSON {
			err = json.NewEncoder(cmd.OutOrStdout()).Encode(r)
		} else {
			r.Print(cmd.OutOrStdout())
		}
		if v, asserts := any(r).(interface{ Err() error }); asserts {
			err = errors.Join(err, v.Err())
		}
		return err
	}
	return cmd
}

func latencyCommand() *cobra.Command {
	var o bench.Options
	cmd := &cobra.Command{
		Use:   "latency",
		Short: "Measure how late runs start, and how soon others take over",
		Long: `Run three replicas as processes of their own on one SQLite file, and measure: how
late a job due each second starts; and, after its owner was killed or stopped,
how soon another replica runs what is due. It takes some three minutes and prints
what it saw; nothing is asserted.`,
	}
	f := cmd.Flags()
	f.IntVar(&o.Seconds, "seconds", 60, "how long to measure lateness")
	f.IntVar(&o.Rounds, "rounds", 5, "how often to kill or stop an owner, in each way")
	return measureCommand(cmd, func(ctx context.Context, log io.Writer) (bench.Report, error) { return bench.Latency(ctx, o, log) })
}

func idleCommand() *cobra.Command {
	var o bench.IdleOptions
	cmd := &cobra.Command{
		Use:   "idle",
		Short: "Measure what replicas cost that have nothing to do",
		Long: `Run three replicas as processes of their own on one SQLite file, with 100 jobs
that are due hourly and not meanwhile, and measure each one's processor time and
calls of the store: with 10,000 keys a job, with 10, and with 65,536 partitions.
It takes some two minutes and prints what it saw; nothing is asserted.`,
	}
	cmd.Flags().IntVar(&o.Seconds, "seconds", 30, "how long to measure each load")
	return measureCommand(cmd, func(ctx context.Context, log io.Writer) (bench.IdleReport, error) { return bench.Idle(ctx, o, log) })
}

func gossipCommand() *cobra.Command {
	var o bench.GossipOptions
	cmd := &cobra.Command{
		Use:   "gossip",
		Short: "Measure how soon members see each other come and go",
		Long: `Run members of a gossip cluster as processes of their own, on loopback with a key,
without a store and jobs, and measure: how soon all see all at the start; what
idling costs, and whether anybody is lost meanwhile; and how soon all others see
that a member is unfit, drains, closes, is killed, or joins in its place. With
the defaults it takes two minutes and prints what it saw; nothing is asserted.`,
	}
	f := cmd.Flags()
	f.IntVar(&o.Members, "members", 5, "how many members")
	f.StringVar(&o.Profile, "profile", "fast", "gossip profile: fast, lan or wan")
	f.IntVar(&o.Rounds, "rounds", 10, "how often to kill a member, and to have one close, drain and be unfit")
	f.DurationVar(&o.Idle, "idle", 30*time.Second, "how long to measure idling")
	return measureCommand(cmd, func(ctx context.Context, log io.Writer) (bench.GossipReport, error) { return bench.Gossip(ctx, o, log) })
}

func timersCommand() *cobra.Command {
	var o bench.TimersOptions
	cmd := &cobra.Command{
		Use:   "timers",
		Short: "Measure what a million timers cost",
		Long: `Run the structure that tells what is due next in a process of its own, under the real
clock, and measure: how long it takes to add all entries, and one more; the memory
of each; the processor time while none is due but one each second, and while each
is due hourly at its own second; and, with all due in one second, how late each
reaches a worker. With the defaults it takes half a minute and prints what it saw;
nothing is asserted.`,
	}
	f := cmd.Flags()
	f.IntVar(&o.Entries, "entries", 1_000_000, "how many entries")
	f.IntVar(&o.Seconds, "seconds", 10, "how long to measure processor time, in each way")
	return measureCommand(cmd, func(ctx context.Context, log io.Writer) (bench.TimersReport, error) { return bench.Timers(ctx, o, log) })
}

func soakCommand() *cobra.Command {
	var o bench.SoakOptions
	var store string
	cmd := &cobra.Command{
		Use:   "soak",
		Short: "Run handlers that panic, hang and fail, kill replicas, and see that nothing grows",
		Long: `Run three replicas as processes of their own, on a SQLite file or the store that is
named, with some 2,500 occurrences a minute: jobs of each second, of the leader, and
of keys that come and go. 5 % panic, 5 % hang until their second is over (and some of
these longer), 5 % return an error, half of all these only at their first attempt.
Each minute a replica is killed or leaves, and comes back, and a job is edited.

Every occurrence is held to what it had to become, by the store's record and by what
the handlers told. It fails where one is missing, ended twice or was recorded otherwise;
and where goroutines, file descriptors, metric series, rows, or SQLite's WAL grew
beyond what they may. From half an hour on it also fails where the heap grows by more
than 1 % an hour, if that is more than half a megabyte.`,
		Example: "  belfry bench soak --minutes 1440 --store postgres://app@db/belfry",
	}
	cmd.Flags().IntVar(&o.Minutes, "minutes", 3, "how long")
	cmd.Flags().StringVar(&store, "store", "", "where to run, such as postgres://user@host/database; it gets a namespace that is dropped at the end (default: a SQLite file)")
	return measureCommand(cmd, func(ctx context.Context, log io.Writer) (bench.SoakReport, error) {
		var err error
		if store != "" {
			o.Store, err = storeurl.FromFlag(store)
		}
		if err != nil {
			return bench.SoakReport{}, err
		}
		return bench.Soak(ctx, o, log)
	})
}
