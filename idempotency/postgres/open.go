package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/belfry-go/belfry/idempotency"
)

// The connections of a store's own, at most.
const (
	callConns    = 4
	sessionConns = 2 // for sessions alone

	forever = 100 * 365 * 24 * time.Hour
)

var prefixes = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,30}$`)

// Options are the ways to open a store. Nil means all of their zero values.
type Options struct {
	// Prefix begins the names of all tables: ^[a-z_][a-z0-9_]{0,30}$. Empty means belfry_.
	Prefix string

	// AllowLossy lets a server that may lose acknowledged commits be used all the same, with a warning.
	AllowLossy bool

	// NoMigrate refuses a database without the schema, or with an older one, instead of making it.
	NoMigrate bool

	// Logger takes warnings. Nil means slog.Default().
	Logger *slog.Logger
}

// Store is a store in a database. All its methods are safe for concurrent use, and block until their context ends at the
// latest; where it has no deadline, ten seconds.
type Store struct {
	pool     *pgxpool.Pool // the caller's
	calls    *pgxpool.Pool
	sessions *pgxpool.Pool // of renewals, openings and ends of sessions, which wait for nothing else

	id    string // the store's identity
	texts *texts
}

var (
	_ idempotency.Store   = (*Store)(nil)
	_ idempotency.History = (*Store)(nil)
)

// Open opens the store in the database of the pool, and makes its tables if they are not there. The pool stays the
// caller's: the store takes its configuration and makes a few connections of its own. The caller closes the store, and
// the pool after it.
func Open(ctx context.Context, p *pgxpool.Pool, o *Options) (*Store, error) {
	return open(ctx, p, o, "clock_timestamp()")
}

// open opens a store whose clock is the SQL expression.
func open(ctx context.Context, p *pgxpool.Pool, o *Options, clock string) (*Store, error) {
	if o == nil {
		o = &Options{}
	}
	prefix := o.Prefix
	if prefix == "" {
		prefix = "belfry_"
	}
	if !prefixes.MatchString(prefix) {
		return nil, fmt.Errorf("postgres: prefix %q: not one that matches %s", prefix, prefixes)
	}
	s := &Store{pool: p, texts: newTexts(prefix, clock)}
	if err := s.connect(ctx); err != nil {
		return nil, err
	}
	if err := s.migrate(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Store) connect(ctx context.Context) (err error) {
	config := s.pool.Config()
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "belfry"
	}
	config.MinConns, config.MinIdleConns = 0, 0
	config.MaxConns = callConns
	if s.calls, err = pgxpool.NewWithConfig(ctx, config.Copy()); err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	// A connection for sessions is given up only when it is lost: where the server has none left to give, renewals go on.
	config.MaxConns, config.MinConns = sessionConns, 1
	config.MaxConnLifetime, config.MaxConnIdleTime = forever, forever
	if s.sessions, err = pgxpool.NewWithConfig(ctx, config.Copy()); err != nil {
		s.calls.Close()
		return fmt.Errorf("postgres: %w", err)
	}
	return nil
}

// migrate makes the tables where there are none.
func (s *Store) migrate(ctx context.Context) error {
	return s.write(ctx, s.calls, func(t *tx) error {
		if _, err := t.exec(`SELECT pg_advisory_xact_lock(7234017283807667300)`); err != nil {
			return err
		}
		var made bool
		if _, err := t.get([]any{&made}, `SELECT to_regclass('belfry_store') IS NOT NULL`); err != nil {
			return err
		}
		if !made {
			for _, text := range schema {
				if _, err := t.exec(text); err != nil {
					return err
				}
			}
			if _, err := t.exec(`INSERT INTO belfry_store (one, version, id) VALUES (1, $1, $2)`, version, rand.Text()); err != nil {
				return err
			}
		}
		_, err := t.get([]any{&s.id}, `SELECT id FROM belfry_store`)
		return err
	})
}

// Close closes the store's own connections, when the calls in flight have ended. Closing again does nothing.
func (s *Store) Close() error {
	s.calls.Close()
	s.sessions.Close()
	return nil
}
