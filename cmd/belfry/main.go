// Command belfry shows and inspects what package scheduler does.
//
//	belfry demo             three replicas renew subscriptions once each, and one is killed
//	belfry bench latency    how late runs start, and how soon others take over
//	belfry bench idle       what replicas cost that have nothing to do
//	belfry bench gossip     how soon members see each other come and go
//	belfry bench timers     what a million timers cost
//	belfry sim              simulates clusters under faults, and judges them
//	belfry next             the next dues of a schedule
//	belfry ring owner       who owns a key
//	belfry ring slot        the slot of a key
//	belfry ring plan        what moves when members change
//	belfry jobs             the jobs of a namespace
//	belfry runs             their runs
//	belfry leader           who leads them
//	belfry explain          what became of a run, and why
//	belfry gaps             dues without a record
//	belfry commands         what people asked for
//	belfry pause            skips a job's dues until it is resumed
//	belfry resume           ends a pause
//	belfry trigger          runs a job now
//	belfry skip             skips a job's next due
//	belfry backfill         runs dues that did not run
//	belfry cancel           ends a run
//	belfry retry            runs a failed run again
//	belfry keys fill        writes slots beside the keys of a table
//	belfry migrate          makes or upgrades a store's tables
//	belfry version
//
// Results go to standard output, everything else to standard error.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/belfry-go/belfry/cmd/belfry/internal/show"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends it at once
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run runs one command and returns the exit status.
func run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	cmd := root()
	cmd.SetArgs(args)
	cmd.SetIn(in)
	cmd.SetOut(out)
	cmd.SetErr(errOut)
	begun := false
	cmd.PersistentPreRun = func(*cobra.Command, []string) { begun = true }
	err := cmd.ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		fmt.Fprintln(errOut, "belfry: interrupted")
		return interrupted
	case !errors.Is(err, errSilent):
		fmt.Fprintf(errOut, "belfry: %s\n", show.Lines(err.Error()))
	}
	if c, ok := errors.AsType[coded](err); ok {
		return c.status
	}
	if !begun { // there is no such command or flag, or there are too many arguments
		return statusMisuse
	}
	return statusFailed
}

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:           "belfry",
		Short:         "Schedule jobs on a fleet of identical replicas",
		Long:          "Belfry schedules jobs on a fleet of identical replicas.\nThe ring decides who goes first; the store decides who wins.",
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.CompletionOptions.HiddenDefaultCmd = true
	cmd.AddCommand(demoCommand(), benchCommand(), simCommand(), nextCommand(), ringCommand(), keysCommand(), migrateCommand(), versionCommand(),
		jobsCommand(), runsCommand(), leaderCommand(), explainCommand(), gapsCommand(), commandsCommand(),
		pauseCommand(), resumeCommand(), triggerCommand(), skipCommand(), backfillCommand(), cancelCommand(), retryCommand())
	return cmd
}
