package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/internal/rule"
)

// openTimeout ends an opening or a migration whose context has no deadline.
const openTimeout = time.Minute

// The connections of a store's own, at most.
const (
	callConns    = 4
	sessionConns = 2 // for sessions alone

	// connectTimeout is how long a server that does not answer keeps one of them: a call that gives up does not end the
	// attempt to connect.
	connectTimeout = 3 * time.Second

	forever = 100 * 365 * 24 * time.Hour
)

// PostgreSQL's own tables begin with pg_, and are found wherever one looks.
var prefixes = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,30}$`)

// Options are the ways to open a store. Nil means all of their zero values.
type Options struct {
	// Prefix begins the names of all tables: ^[a-z_][a-z0-9_]{0,30}$. Empty means belfry_.
	Prefix string

	// AllowLossy lets a server that may lose acknowledged commits be used all the same, with a warning. A replica that
	// comes back may then run what it had already run.
	AllowLossy bool

	// NoMigrate refuses a database without the schema, or with an older one, instead of making or upgrading it: set it
	// where an empty store can only be a wrong database, and where the role may not change tables.
	NoMigrate bool

	// Logger takes warnings. Nil means slog.Default().
	Logger *slog.Logger
}

// Store is a store in a database. All its methods are safe for concurrent use, and block until their context ends, where it
// has no deadline for ten seconds. Where the server does not answer they take half a second more, and two at most where it
// answers that, but not the end of its transaction.
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
	_ idempotency.Control = (*Store)(nil)
	_ idempotency.Leaders = (*Store)(nil)
)

// Open opens the store in the database of the pool, and makes its tables if they are not there, in the first schema of
// the search_path. The pool stays the caller's: the store takes its configuration and makes a few connections of its
// own. The caller closes the store, and the pool after it.
//
// It refuses, with an error that wraps idempotency.ErrRefused and says what to do, a server that is too old, read-only
// or not set up to keep what it has acknowledged; a schema that is newer, changed or half made; and a role that lacks a
// privilege. What a store can live with is logged as a warning. It waits for another process that migrates, until the
// context ends, or for a minute where that has no deadline.
func Open(ctx context.Context, p *pgxpool.Pool, o *Options) (*Store, error) {
	return open(ctx, p, o, "clock_timestamp()")
}

// open opens a store whose clock is the SQL expression.
func open(ctx context.Context, p *pgxpool.Pool, o *Options, clock string) (*Store, error) {
	with, err := o.filled()
	if err != nil {
		return nil, err
	}
	s := &Store{pool: p, texts: newTexts(with.Prefix, clock)}
	if err := s.connect(ctx); err != nil {
		return nil, err
	}
	if err := s.prepare(ctx, steps, with); err != nil {
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
		with.Prefix = "belfry_"
	}
	if !prefixes.MatchString(with.Prefix) || strings.HasPrefix(with.Prefix, "pg_") {
		return with, fmt.Errorf("postgres: prefix %q: use a letter or _, then up to 30 of a-z 0-9 _, and not pg_", with.Prefix)
	}
	if with.Logger == nil {
		with.Logger = slog.Default()
	}
	return with, nil
}

// prepare refuses what is not fit to be a store, and brings its schema up to date.
func (s *Store) prepare(ctx context.Context, steps [][]string, o Options) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, openTimeout)
		defer cancel()
	}
	var facts server
	schema := schemaOf(o.Prefix, steps)
	ready, err := s.examine(ctx, &facts, schema, o)
	made := false
	if err == nil && !ready {
		if made, err = s.migrate(ctx, schema, o); err == nil {
			_, err = s.examine(ctx, &facts, schema, o)
		}
	}
	if errors.Is(err, idempotency.ErrRefused) {
		return fmt.Errorf("postgres: store %s* in database %q: %w", o.Prefix, facts.database, err)
	}
	if err == nil {
		err = explain(s.sessions.Ping(ctx)) // from now on there is a connection for renewals
	}
	if err != nil {
		return err
	}
	warn(ctx, o.Logger, facts.findings())
	if made {
		o.Logger.InfoContext(ctx, "postgres: a new store was made; whoever knew another one should look at the address",
			"store", s.id, "database", facts.database, "schema", facts.schema, "prefix", o.Prefix)
	}
	return nil
}

// examine looks at the server, and where the schema is up to date at the rest, and notes the store's identity.
func (s *Store) examine(ctx context.Context, facts *server, schema rule.Schema, o Options) (ready bool, err error) {
	err = s.write(ctx, s.calls, func(t *tx) error {
		if err := facts.ask(t); err != nil {
			return err
		}
		if err := refusals(facts.findings(), o.AllowLossy); err != nil {
			return err
		}
		f, err := find(t, schema)
		if err != nil {
			return err
		}
		from, err := schema.Plan(f, false)
		if ready = err == nil && from == schema.Version(); !ready {
			return nil
		}
		if err := errors.Join(checkSequence(t), checkRights(t, facts.user)); err != nil {
			return err
		}
		_, err = t.get([]any{&s.id}, `SELECT id FROM belfry_store`)
		return err
	})
	return ready, err
}

func (s *Store) connect(ctx context.Context) (err error) {
	config := s.pool.Config()
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "belfry"
	}
	if t := config.ConnConfig.ConnectTimeout; t <= 0 || t > connectTimeout {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	config.ConnConfig.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.DeadlineContextWatcherHandler{Conn: c.Conn(), DeadlineDelay: linger}
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

// Close closes the store's own connections, when the calls in flight have ended. Closing again does nothing.
func (s *Store) Close() error {
	s.calls.Close()
	s.sessions.Close()
	return nil
}
