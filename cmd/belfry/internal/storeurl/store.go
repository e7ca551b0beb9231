package storeurl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/mysql"
	"github.com/belfry-go/belfry/idempotency/postgres"
	"github.com/belfry-go/belfry/idempotency/sqlite"
	"github.com/belfry-go/belfry/jobs"
)

// Store is an opened store of any kind.
type Store interface {
	idempotency.Store
	idempotency.History
	idempotency.Control
	idempotency.Leaders
	// DropNamespace removes all rows of a namespace; it wraps idempotency.ErrRefused while a session of it is live.
	DropNamespace(ctx context.Context, namespace string) error
	// Close closes the store, and leaves the client open.
	Close() error
}

// Open opens the store in the database, under the default prefix, and makes its tables where they are missing. The
// caller closes it, before the client.
func (c *Client) Open(ctx context.Context) (Store, error) {
	switch c.url.kind {
	case Postgres:
		return opened(postgres.Open(ctx, c.pool, nil))
	case MySQL:
		return opened(mysql.Open(ctx, c.db, nil))
	default:
		return opened(sqlite.Open(ctx, c.url.path, nil))
	}
}

// OpenMade opens a store that replicas use, for who looks at it and steers it: it makes and upgrades nothing, refuses where
// that would be needed, and leaves it to the replicas to judge the server. Prefix is that of Migrate. The caller closes the
// store, before the client.
func (c *Client) OpenMade(ctx context.Context, prefix string) (Store, error) {
	quiet := slog.New(slog.DiscardHandler)
	switch c.url.kind {
	case Postgres:
		return opened(postgres.Open(ctx, c.pool, &postgres.Options{Prefix: prefix, NoMigrate: true, AllowLossy: true, Logger: quiet}))
	case MySQL:
		return opened(mysql.Open(ctx, c.db, &mysql.Options{Prefix: prefix, NoMigrate: true, AllowLossy: true, Logger: quiet}))
	}
	if prefix != "" {
		return nil, errNoPrefix
	}
	if _, err := os.Stat(c.url.path); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("store %s: there is no such file; give the path of the one that the replicas use", c.url)
	}
	return opened(sqlite.Open(ctx, c.url.path, &sqlite.Options{NoMigrate: true}))
}

// opened keeps a nil pointer from becoming a Store.
func opened[S Store](s S, err error) (Store, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Migrate makes the store's tables, or brings them up to this version. Prefix "" is the default one, as in all below.
func (c *Client) Migrate(ctx context.Context, prefix string) error {
	switch c.url.kind {
	case Postgres:
		return postgres.Migrate(ctx, c.pool, &postgres.Options{Prefix: prefix})
	case MySQL:
		return mysql.Migrate(ctx, c.db, &mysql.Options{Prefix: prefix})
	}
	if prefix != "" {
		return errNoPrefix
	}
	return sqlite.Migrate(ctx, c.url.path, nil)
}

// Repartition gives a namespace another number of partitions. It is refused while a replica of the namespace lives.
func (c *Client) Repartition(ctx context.Context, namespace string, partitions int, prefix string) error {
	switch c.url.kind {
	case Postgres:
		return postgres.Repartition(ctx, c.pool, namespace, partitions, &postgres.Options{Prefix: prefix})
	case MySQL:
		return mysql.Repartition(ctx, c.db, namespace, partitions, &mysql.Options{Prefix: prefix})
	}
	if prefix != "" {
		return errNoPrefix
	}
	return sqlite.Repartition(ctx, c.url.path, namespace, partitions, nil)
}

// Script is the SQL that makes the tables in an empty database. It connects to nothing: of the URL it needs the kind.
func (u URL) Script(prefix string) (string, error) {
	switch u.kind {
	case Postgres:
		return postgres.Script(&postgres.Options{Prefix: prefix})
	case MySQL:
		return mysql.Script(&mysql.Options{Prefix: prefix})
	case SQLite:
		if prefix != "" {
			return "", errNoPrefix
		}
		return sqlite.Script(nil)
	}
	return "", ErrNone
}

// ErrNone is the error of whoever needs a store, and was told of none.
var ErrNone = errors.New("no store is named; give --store or set " + Variable + ": " + forms)

var errNoPrefix = errors.New("sqlite: tables have no other prefix than belfry_; leave --prefix out")

// Keys is the driver's KeySource of a table with the key in one column and its slot in another; keys compare by their
// bytes there. The names go into the query as they are.
func (c *Client) Keys(table, key, slot string) jobs.KeySource {
	switch c.url.kind {
	case Postgres:
		return postgres.Keys(c.pool, fmt.Sprintf(`select %[2]s from %[1]s where %[3]s = any($1) and %[2]s > $2 order by %[2]s limit $3`, table, key, slot))
	case MySQL:
		return mysql.Keys(c.db, fmt.Sprintf(`select %[2]s from %[1]s where %[3]s in (?) and %[2]s > ? order by %[2]s limit ?`, table, key, slot))
	default:
		return sqlite.Keys(c.db, fmt.Sprintf(`select %[2]s from %[1]s where %[3]s in (select value from json_each(?1)) and %[2]s > ?2 order by %[2]s limit ?3`, table, key, slot))
	}
}

// Exec runs a statement without arguments.
func (c *Client) Exec(ctx context.Context, statement string) error {
	if c.pool != nil {
		_, err := c.pool.Exec(ctx, statement)
		return err
	}
	_, err := c.db.ExecContext(ctx, statement)
	return err
}
