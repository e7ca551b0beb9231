package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// openTimeout ends an opening or a migration whose context has no deadline.
const openTimeout = time.Minute

// Options are the ways to open a store. Nil means all of their zero values.
type Options struct {
	// Prefix begins the names of all tables: [a-z_][a-z0-9_]{0,30}. Default: belfry_.
	Prefix string

	// AllowLossy turns the refusal of a server that may lose commits into a warning. A replica that comes back may run
	// what it had already run.
	AllowLossy bool

	// NoMigrate refuses a database whose schema is missing or old, instead of making or upgrading it: set it where an
	// empty store can only be a wrong database, and where the user may not change tables.
	NoMigrate bool

	// Logger gets warnings. Default: slog.Default().
	Logger *slog.Logger
}

// Store is a store in a MySQL or MariaDB database. All its methods are safe for concurrent use, and block until their
// context ends at the latest, ten seconds where it has no deadline.
type Store struct {
	prefix   string
	id       string // the store's identity
	clock    func() string
	calls    *pool
	renewals *pool // so that a renewal never waits for other calls
}

var (
	_ idempotency.Store   = (*Store)(nil)
	_ idempotency.History = (*Store)(nil)
	_ idempotency.Control = (*Store)(nil)
	_ idempotency.Leaders = (*Store)(nil)
)

var prefixes = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,30}$`)

// Open opens the store in the database that db connects to, and makes its tables if they are not there. db stays the
// caller's, and must outlive the store, which keeps up to five connections of it for itself: a limit set by
// db.SetMaxOpenConns counts them. The caller closes the store.
//
// It refuses, with an error that wraps idempotency.ErrRefused and says what to do, a server that is too old, read-only
// or not set up to keep what it has acknowledged; a schema that is newer, changed or half made by something else; and a
// user that lacks a right. What a store can live with is logged as a warning. It waits for another process that
// migrates, until the context ends, or for a minute where that has no deadline.
func Open(ctx context.Context, db *sql.DB, o *Options) (*Store, error) {
	with, err := o.filled()
	if err != nil {
		return nil, err
	}
	s := newStore(db, with.Prefix)
	if err := s.prepare(ctx, db, with); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// filled is a copy with the defaults.
func (o *Options) filled() (Options, error) {
	var with Options
	if o != nil {
		with = *o
	}
	if with.Prefix == "" {
		with.Prefix = defaultPrefix
	}
	if !prefixes.MatchString(with.Prefix) {
		return with, fmt.Errorf("mysql: prefix %q: use a letter or _, then up to 30 of a-z 0-9 _", with.Prefix)
	}
	if with.Logger == nil {
		with.Logger = slog.Default()
	}
	return with, nil
}

func newStore(db *sql.DB, prefix string) *Store {
	return &Store{prefix: prefix, clock: serverClock, calls: newPool(db, callConns), renewals: newPool(db, 1)}
}

// prepare refuses what is not fit to be a store, and brings its schema up to date.
func (s *Store) prepare(ctx context.Context, db *sql.DB, o Options) error {
	return singly(ctx, db, o.Prefix, func(t *tx) error {
		var err error
		if s.id, err = examine(t, steps, o); err != nil {
			return err
		}
		_, err = t.get([]any{&s.calls.database}, `SELECT DATABASE()`)
		s.renewals.database = s.calls.database
		return err
	})
}

// examine looks at the server, then at the schema and the user's rights, and returns the store's identity.
func examine(t *tx, steps [][]string, o Options) (id string, err error) {
	facts := make(server)
	if err := facts.ask(t); err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("mysql: store %s* in database %q: %w", o.Prefix, facts["database"], err)
		}
	}()
	all := facts.findings()
	if err := refusals(all, o.AllowLossy); err != nil {
		return "", err
	}
	made, err := migrate(t, schemaOf(o.Prefix, steps), !o.NoMigrate)
	if err != nil {
		return "", err
	}
	if _, err := t.get([]any{&id}, `SELECT id FROM belfry_store`); err != nil {
		return "", err
	}
	warn(t.ctx, o.Logger, all)
	if made {
		o.Logger.InfoContext(t.ctx, "mysql: a new store was made; whoever knew another one should look at the address", "store", id, "database", facts["database"], "prefix", o.Prefix)
	}
	return id, nil
}

// singly runs f on a connection of its own, each of whose statements commits by itself.
func singly(ctx context.Context, db *sql.DB, prefix string, f func(*tx) error) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, openTimeout)
		defer cancel()
	}
	c, err := connect(ctx, db, "")
	if err != nil {
		return explain(err)
	}
	defer c.discard()
	t := &tx{querier: c, ctx: ctx, prefix: prefix, packet: c.packet}
	// What changes a table waits for those who use it, and lets nobody begin meanwhile: not for long.
	if _, err := t.exec(`SET SESSION autocommit = 1, SESSION lock_wait_timeout = 10`); err != nil {
		return explain(err)
	}
	return f(t)
}

// Close waits for the calls in flight, lets all later ones fail and closes the store's connections. Closing again does
// nothing.
func (s *Store) Close() error {
	s.calls.close()
	s.renewals.close()
	return nil
}
