package main

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/belfry-go/belfry/cmd/belfry/internal/bench"
)

func benchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure on this machine",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(latencyCommand(), idleCommand(), childCommand("replica NAME", 1, bench.Replica), childCommand("idler NAME", 1, bench.Idler))
	return cmd
}

func latencyCommand() *cobra.Command {
	var o bench.Options
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "latency",
		Short: "Measure how late runs start, and how soon others take over",
		Long: `Run three replicas as processes of their own on one SQLite file, and measure: how
late a job due each second starts; and, after its owner was killed or stopped,
how soon another replica runs what is due. It takes some three minutes and prints
what it saw; nothing is asserted.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := bench.Latency(cmd.Context(), o, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(r)
			}
			r.Print(cmd.OutOrStdout())
			return nil
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.Seconds, "seconds", 60, "how long to measure lateness")
	f.IntVar(&o.Rounds, "rounds", 5, "how often to kill or stop an owner, in each way")
	f.BoolVar(&asJSON, "json", false, "print the result as one JSON object")
	return cmd
}

func idleCommand() *cobra.Command {
	var o bench.IdleOptions
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "idle",
		Short: "Measure what replicas cost that have nothing to do",
		Long: `Run three replicas as processes of their own on one SQLite file, with 100 jobs
that are due hourly and not meanwhile, and measure each one's processor time and
calls of the store: with 10,000 keys a job, with 10, and with 65,536 partitions.
It takes some two minutes and prints what it saw; nothing is asserted.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := bench.Idle(cmd.Context(), o, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(r)
			}
			r.Print(cmd.OutOrStdout())
			return nil
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.Seconds, "seconds", 30, "how long to measure each load")
	f.BoolVar(&asJSON, "json", false, "print the result as one JSON object")
	return cmd
}
