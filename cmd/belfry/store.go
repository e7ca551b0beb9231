package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/belfry-go/belfry/cmd/belfry/internal/storeurl"
)

// storeFlag adds the flag that names a store.
func storeFlag(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVar(to, "store", "", "`URL` of the store (default: that in "+storeurl.Variable+")")
}

// storeHelp is what the commands that take a store say of it.
const storeHelp = `

A store is sqlite:PATH, postgres://USER@HOST:PORT/DATABASE or
mysql://USER@HOST:PORT/DATABASE. A password in the flag is refused, since every
user of the host can read it there: put the URL into ` + storeurl.Variable + `, or the
password into ~/.pgpass (or the file that PGPASSFILE names) or PGPASSWORD; for
MySQL into MYSQL_PWD.`

// withClient connects to the store's database, uses it, and closes it.
func withClient(ctx context.Context, text string, use func(*storeurl.Client) error) error {
	u, err := storeurl.FromFlag(text)
	if err != nil {
		return err
	}
	c, err := storeurl.Connect(ctx, u)
	if err != nil {
		return err
	}
	return errors.Join(use(c), c.Close())
}
