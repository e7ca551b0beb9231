package mysql

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"

	"github.com/belfry-go/belfry/idempotency"
)

// Options are the ways to open a store. Nil means all of their zero values.
type Options struct {
	// Prefix begins the names of all tables: [a-z_][a-z0-9_]{0,30}. Default: belfry_.
	Prefix string

	// AllowLossy turns the refusal of a server that may lose commits into a warning.
	AllowLossy bool

	// NoMigrate refuses a database whose schema is missing or old, instead of making or upgrading it.
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
)

var prefixes = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,30}$`)

// Open opens the store in the database that db connects to, and makes its tables if they are not there. db stays the
// caller's, and must outlive the store, which keeps up to five connections of it for itself: a limit set by
// db.SetMaxOpenConns counts them. The caller closes the store.
func Open(ctx context.Context, db *sql.DB, o *Options) (*Store, error) {
	if o == nil {
		o = &Options{}
	}
	prefix := o.Prefix
	if prefix == "" {
		prefix = defaultPrefix
	}
	if !prefixes.MatchString(prefix) {
		return nil, fmt.Errorf("mysql: prefix %q: use a letter or _, then up to 30 of a-z 0-9 _", prefix)
	}
	s := newStore(db, prefix)
	if err := s.prepare(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func newStore(db *sql.DB, prefix string) *Store {
	return &Store{prefix: prefix, clock: serverClock, calls: newPool(db, callConns), renewals: newPool(db, 1)}
}

func (s *Store) prepare(ctx context.Context) error {
	return s.write(ctx, func(t *tx) error {
		for _, text := range schema {
			if _, err := t.exec(strings.Replace(text, "CREATE TABLE", "CREATE TABLE IF NOT EXISTS", 1)); err != nil {
				return err
			}
		}
		if _, err := t.exec(`INSERT IGNORE INTO belfry_store (one, version, id) VALUES (1, ?, ?)`, version, rand.Text()); err != nil {
			return err
		}
		_, err := t.get([]any{&s.id}, `SELECT id FROM belfry_store`)
		return err
	})
}

// Close waits for the calls in flight, lets all later ones fail and closes the store's connections. Closing again does
// nothing.
func (s *Store) Close() error {
	s.calls.close()
	s.renewals.close()
	return nil
}
