package ordeal

import (
	"context"
	"database/sql"
	"log/slog"
	"testing"

	mysqlclient "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/belfry-go/belfry/idempotency/mysql"
	"github.com/belfry-go/belfry/idempotency/postgres"
	"github.com/belfry-go/belfry/internal/faultproxy"
	"github.com/belfry-go/belfry/internal/testservers"
	"github.com/belfry-go/belfry/jobs"
)

var postgresDialect = dialect{
	client:  "pgx",
	shared:  testservers.Postgres,
	private: testservers.StartPostgres,
	admin:   "postgres",
	open:    openPostgres,
	user:    []string{`create role %s login`, `alter database %s owner to %s`},
	forbid:  []string{`revoke insert, update, delete on all tables in schema public from %s`},
	permit:  []string{`grant insert, update, delete on all tables in schema public to %s`},
	limit:   `alter role %s connection limit 6`,

	connections: `select count(*) from pg_stat_activity where datname = '%s' and backend_type = 'client backend'`,
	tables:      `select count(*) from information_schema.tables where table_schema = 'public'`,
	commit:      faultproxy.PostgresCommitted,
	lose:        func(p *faultproxy.Proxy, m faultproxy.Match, end faultproxy.End) { p.ToClient.Lose(m, end) },
	lost:        func(c faultproxy.Counts) int { return c.Lost },
}

func openPostgres(t *testing.T, dsn string, conns int) *handle {
	t.Helper()
	c, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	c.MaxConns = int32(conns)
	pool, err := pgxpool.NewWithConfig(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s, err := postgres.Open(t.Context(), pool, &postgres.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	closes(t, s)
	effect := func(ctx context.Context, o jobs.Occurrence) error {
		return postgres.InTx(ctx, s, o, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `insert into effects values ($1)`, o.Key)
			return err
		})
	}
	return &handle{Store: s, effect: effect, take: func(ctx context.Context) error {
		c, err := pool.Acquire(ctx)
		if err == nil {
			t.Cleanup(c.Release)
		}
		return err
	}}
}

var mysqlDialect = dialect{
	client:  "mysql",
	shared:  testservers.MariaDB,
	private: testservers.StartMariaDB,
	admin:   "root",
	open:    openMySQL,
	user:    []string{`create user %s`, `grant all on %s.* to %s`},
	forbid:  []string{`set global read_only = 1`},
	permit:  []string{`set global read_only = 0`},
	limit:   `alter user %s with max_user_connections 6`,

	connections: `select count(*) from information_schema.processlist where db = '%s'`,
	tables:      `select count(*) from information_schema.tables where table_schema = '%s'`,
	commit:      faultproxy.MySQLCommit,
	lose:        (*faultproxy.Proxy).LoseReply,
	lost:        func(c faultproxy.Counts) int { return c.Replies },
}

func openMySQL(t *testing.T, dsn string, conns int) *handle {
	t.Helper()
	c, err := mysqlclient.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	c.Logger = &mysqlclient.NopLogger{} // it would tell of each connection that a test breaks
	connector, err := mysqlclient.NewConnector(c)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(conns)
	t.Cleanup(func() { _ = db.Close() }) // errs for connections that a test broke
	s, err := mysql.Open(t.Context(), db, &mysql.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	closes(t, s)
	effect := func(ctx context.Context, o jobs.Occurrence) error {
		return mysql.InTx(ctx, s, o, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, `insert into effects values (?)`, o.Key)
			return err
		})
	}
	return &handle{Store: s, effect: effect, take: func(ctx context.Context) error {
		c, err := db.Conn(ctx)
		if err == nil {
			t.Cleanup(func() { _ = c.Close() })
		}
		return err
	}}
}
