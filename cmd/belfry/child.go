package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/belfry-go/belfry/internal/procs"
)

// childFunc is what a process does for its parent.
type childFunc = func(context.Context, *procs.Parent) error

// childCommand is a command that this program starts itself with. The arguments only tell people which process is
// which; what it is to do comes from the parent, on standard input.
func childCommand(use string, args int, run childFunc) *cobra.Command {
	return &cobra.Command{
		Use:    use,
		Hidden: true,
		Args:   cobra.ExactArgs(args),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, parent := procs.Attach(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
			return run(ctx, parent)
		},
	}
}
