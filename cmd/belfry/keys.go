package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/belfry-go/belfry/cmd/belfry/internal/keyfill"
	"github.com/belfry-go/belfry/cmd/belfry/internal/storeurl"
)

// tellEach is after how many rows a long fill says how far it is.
const tellEach = 100_000

func keysCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Prepare the table that a job's keys are in",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(fillCommand())
	return cmd
}

func fillCommand() *cobra.Command {
	var store string
	var t keyfill.Target
	cmd := &cobra.Command{
		Use:   "fill --store URL --table TABLE --key COLUMN --slot COLUMN",
		Short: "Write the slot of each key into a column beside it",
		Long: `Write the slot of each key, as belfry ring slot prints it, into a column of the
same row, wherever it is missing or wrong. postgres.Keys, mysql.Keys and
sqlite.Keys read it. New rows get their slot from the program that adds them
(ring.Slot); this is for those that are there already.

Rows are read in the order of the key and written a thousand at a time, each
thousand in a transaction of its own, so that it can run beside the application
and be broken off and begun again. Give the key's column an index if it has none.
A key is text, a UUID, an integer (its digits are the key) or bytes.` + storeHelp,
		Example: "  belfry keys fill --store postgres://app@db.example.com/billing --table customers --key id --slot slot",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withClient(cmd.Context(), store, func(c *storeurl.Client) error {
				next := int64(tellEach)
				n, err := keyfill.Fill(cmd.Context(), c, t, func(n keyfill.Counts) {
					if n.Rows >= next {
						next = n.Rows + tellEach
						fmt.Fprintf(cmd.ErrOrStderr(), "%d rows looked at, %d written\n", n.Rows, n.Written)
					}
				})
				if err == nil || n.Rows > 0 { // also where it was broken off
					fmt.Fprintf(cmd.OutOrStdout(), "%s: %d rows looked at, with %d keys; %d slots written\n", t.Table, n.Rows, n.Keys, n.Written)
				}
				return err
			})
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	storeFlag(cmd, &store)
	f.StringVar(&t.Table, "table", "", "the table, or SCHEMA.TABLE")
	f.StringVar(&t.Key, "key", "", "its `column` of keys")
	f.StringVar(&t.Slot, "slot", "", "its `column` of slots: integer")
	return cmd
}
