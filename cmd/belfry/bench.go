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
	cmd.AddCommand(latencyCommand(), childCommand("replica NAME", 1, bench.Replica))
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
