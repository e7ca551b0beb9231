package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/belfry-go/belfry/idempotency/storetest"
	"github.com/belfry-go/belfry/internal/testservers"
	"github.com/belfry-go/belfry/jobs"
)

var day = time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)

// application is the application's pool, until the test ends.
func application(t testing.TB, d testservers.Database, change func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(d.URL())
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(config)
	}
	p, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// book is the application's table of notes.
type book struct {
	p     *pgxpool.Pool
	table string
}

func newBook(t testing.TB, p *pgxpool.Pool, table string) book {
	t.Helper()
	if _, err := p.Exec(context.Background(), `create table `+table+` (text text not null)`); err != nil {
		t.Fatal(err)
	}
	return book{p, table}
}

func (b book) note(ctx context.Context, tx pgx.Tx, text string) error {
	_, err := tx.Exec(ctx, `insert into `+b.table+` (text) values ($1)`, text)
	return err
}

func (b book) notes(t testing.TB) []string {
	t.Helper()
	rows, err := b.p.Query(context.Background(), `select text from `+b.table+` order by text`)
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// effects is a store and a table of the application's.
func effects(s *Store, b book) storetest.Effects[pgx.Tx] {
	return storetest.Effects[pgx.Tx]{
		Store:    s,
		InTx:     func(ctx context.Context, o jobs.Occurrence, f func(pgx.Tx) error) error { return InTx(ctx, s, o, f) },
		Complete: func(ctx context.Context, tx pgx.Tx, o jobs.Occurrence) error { return Complete(ctx, tx, s, o) },
		Begin: func(ctx context.Context) (pgx.Tx, func() error, func() error, error) {
			tx, err := b.p.Begin(ctx)
			if err != nil {
				return nil, nil, nil, err
			}
			return tx, func() error { return tx.Commit(ctx) }, func() error { return tx.Rollback(context.WithoutCancel(ctx)) }, nil
		},
		Note:  b.note,
		Notes: func(t *testing.T) []string { return b.notes(t) },
	}
}

// At every isolation level, and in every way in which pgx may send statements.
func TestEffects(t *testing.T) {
	t.Parallel()
	server := testservers.Postgres(t)
	for _, c := range []struct {
		level string
		mode  pgx.QueryExecMode
	}{
		{"read committed", pgx.QueryExecModeCacheStatement}, {"read committed", pgx.QueryExecModeExec},
		{"repeatable read", pgx.QueryExecModeCacheStatement},
		{"serializable", pgx.QueryExecModeCacheStatement}, {"serializable", pgx.QueryExecModeSimpleProtocol},
	} {
		t.Run(c.level+"/"+c.mode.String(), func(t *testing.T) {
			t.Parallel()
			p := application(t, server.Database(t), func(x *pgxpool.Config) {
				x.ConnConfig.RuntimeParams["default_transaction_isolation"] = c.level
				x.ConnConfig.DefaultQueryExecMode = c.mode
			})
			var n atomic.Int64
			storetest.RunEffects(t, func(t *testing.T) storetest.Effects[pgx.Tx] {
				prefix := fmt.Sprintf("p%d_", n.Add(1))
				return effects(openAt(t, p, &Options{Prefix: prefix}, "clock_timestamp()"), newBook(t, p, prefix+"notes"))
			})
		})
	}
}

// A transaction of another database can never be one with the store's completion.
func TestCompleteElsewhere(t *testing.T) {
	t.Parallel()
	server := testservers.Postgres(t)
	s := openAt(t, application(t, server.Database(t), nil), nil, "clock_timestamp()")
	other, bare := application(t, server.Database(t), nil), application(t, server.Database(t), nil)
	openAt(t, other, nil, "clock_timestamp()")
	for name, p := range map[string]*pgxpool.Pool{"another store's database": other, "a database without a store": bare} {
		tx, err := p.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		o := jobs.Occurrence{Namespace: "ns", Job: "j", Key: "j", Due: day, Attempt: 1, Fence: 1}
		if err := Complete(t.Context(), tx, s, o); err == nil || errors.Is(err, jobs.ErrOvertaken) {
			t.Errorf("%s: %v", name, err)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// F05, F35. A client that falls silent between the completion and its commit keeps the run's row from others no longer than
// the server is told to wait for it.
func TestServerWaitsShortlyForTheCommit(t *testing.T) {
	t.Parallel()
	p := application(t, testservers.Postgres(t).Database(t), nil)
	s := openAt(t, p, nil, "clock_timestamp()")
	tx, err := p.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o := jobs.Occurrence{Namespace: "ns", Job: "j", Key: "j", Due: day, Attempt: 1, Fence: 1}
	if err := Complete(t.Context(), tx, s, o); !errors.Is(err, jobs.ErrOvertaken) { // there is no such run
		t.Error(err)
	}
	var wait string
	if err := tx.QueryRow(t.Context(), `SELECT current_setting('idle_in_transaction_session_timeout')`).Scan(&wait); err != nil || wait != "5s" {
		t.Errorf("the server waits for the client for %q, %v", wait, err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestEffectOfNil(t *testing.T) {
	t.Parallel()
	o := jobs.Occurrence{Namespace: "ns", Job: "j", Key: "j", Due: day, Attempt: 1, Fence: 1}
	for name, err := range map[string]error{
		"store":             InTx(t.Context(), nil, o, func(pgx.Tx) error { return nil }),
		"function":          InTx(t.Context(), new(Store), o, nil),
		"transaction":       Complete(t.Context(), nil, new(Store), o),
		"store of Complete": Complete(t.Context(), nil, nil, o),
	} {
		if err == nil || !strings.Contains(err.Error(), "is nil") {
			t.Errorf("a nil %s: %v", name, err)
		}
	}
}
