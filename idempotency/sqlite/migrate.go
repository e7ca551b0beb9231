package sqlite

import (
	"context"
	"strings"
)

// Migrate makes the store in the file at path where there is none, and brings one of an older version up to this
// program's; where neither is to be done it does nothing. Many processes may call it at once: one does it, and the
// others wait until it has. Options.NoMigrate has no effect. It refuses what Open refuses.
func Migrate(ctx context.Context, path string, o *Options) error {
	s, err := Open(ctx, path, may(o))
	if err != nil {
		return err
	}
	return s.Close()
}

// Script returns the SQL that makes a store in a file that has none, for people who do that by hand. It draws the store's
// identity when it runs. The file should be readable by the replicas' user alone, as Open would make it.
func Script(*Options) (string, error) {
	id := "lower(hex(randomblob(16)))"
	return "BEGIN IMMEDIATE;\n" + strings.Join(append(schema[:len(schema):len(schema)], firstRow(id)), ";\n") + ";\nCOMMIT;\n", nil
}

// may is o with leave to migrate.
func may(o *Options) *Options {
	var with Options
	if o != nil {
		with = *o
	}
	with.NoMigrate = false
	return &with
}
