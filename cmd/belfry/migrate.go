package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/belfry-go/belfry/cmd/belfry/internal/storeurl"
)

// migration is what the flags of migrate ask for.
type migration struct {
	store, prefix, namespace string
	partitions               int
	print                    bool
}

func migrateCommand() *cobra.Command {
	var m migration
	cmd := &cobra.Command{
		Use:   "migrate --store URL",
		Short: "Make or upgrade the tables of a store",
		Long: `Make the tables of a store in its database, or bring them up to this version.
Doing it again changes nothing; several at once wait for each other. Replicas do
the same when they start, unless they are told not to (Options.NoMigrate): then a
user who may create tables runs this, and theirs need not.

With --print the SQL that makes the tables in an empty database is printed, and
nothing is touched, nor connected to: of the URL only the scheme counts.

With --namespace and --partitions the namespace gets another number of
partitions. All its replicas must have been stopped, and are then started with
the new number in scheduler.Config.Ring; open work is carried over.` + storeHelp,
		Example: "  belfry migrate --store postgres://owner@db.example.com/billing\n" +
			"  belfry migrate --store postgres: --print > schema.sql\n" +
			"  belfry migrate --store sqlite:billing.db --namespace billing --partitions 8192",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return m.run(cmd.Context(), cmd.OutOrStdout()) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	storeFlag(cmd, &m.store)
	f.BoolVar(&m.print, "print", false, "print the SQL and do nothing")
	f.StringVar(&m.prefix, "prefix", "", "what the tables' names begin with (default belfry_)")
	f.StringVar(&m.namespace, "namespace", "", "the namespace whose partitions to change")
	f.IntVar(&m.partitions, "partitions", 0, "partitions, a power of two up to 65536")
	return cmd
}

func (m migration) run(ctx context.Context, out io.Writer) error {
	repartition := m.namespace != "" || m.partitions != 0
	switch {
	case repartition && (m.namespace == "" || m.partitions == 0):
		return errors.New("migrate: --namespace and --partitions belong together; give both or neither")
	case repartition && m.print:
		return errors.New("migrate: --print prints the tables' SQL alone; leave out --namespace and --partitions")
	case m.print:
		return m.script(out)
	}
	return withClient(ctx, m.store, func(c *storeurl.Client) error {
		if repartition {
			if err := c.Repartition(ctx, m.namespace, m.partitions, m.prefix); err != nil {
				return err
			}
			fmt.Fprintf(out, "%s: namespace %s has %d partitions\n", c.URL(), m.namespace, m.partitions)
			return nil
		}
		if err := c.Migrate(ctx, m.prefix); err != nil {
			return err
		}
		fmt.Fprintf(out, "%s: the store's tables are up to date\n", c.URL())
		return nil
	})
}

func (m migration) script(out io.Writer) error {
	u, err := storeurl.FromFlag(m.store)
	if err != nil {
		return err
	}
	text, err := u.Script(m.prefix)
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, text)
	return err
}
