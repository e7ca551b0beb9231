package postgres

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/belfry-go/belfry/idempotency/storetest"
	"github.com/belfry-go/belfry/internal/testservers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testservers.Main(m)) }

const serverClock = "clock_timestamp()"

// pool connects to a database, until the test ends.
func pool(t testing.TB, db testservers.Database, change ...func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(db.URL())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range change {
		f(config)
	}
	p, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// openAt opens a store and closes it when the test ends.
func openAt(t testing.TB, p *pgxpool.Pool, o *Options, clock string) *Store {
	t.Helper()
	s, err := open(context.Background(), p, o, clock)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// exec runs statements one after another.
func exec(t testing.TB, p *pgxpool.Pool, text string) {
	t.Helper()
	if _, err := p.Exec(context.Background(), text, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// tables are the tables of one prefix, with the clock of their stores.
type tables struct {
	p      *pgxpool.Pool   // the test's
	client []*pgxpool.Pool // the stores', in turns
	prefix string
	role   string // of the stores, which has the published rights alone; empty: it may do all
	moved  bool
	open   []*Store
}

func (x *tables) clock() string {
	if !x.moved {
		return serverClock
	}
	return fmt.Sprintf(`(SELECT now FROM %sclock)`, x.prefix)
}

func (x *tables) advance(t testing.TB, d time.Duration) {
	exec(t, x.p, fmt.Sprintf(`UPDATE %sclock SET now = now + %d * interval '1 microsecond'`, x.prefix, d.Microseconds()))
}

// another opens one more store.
func (x *tables) another(t testing.TB) *Store {
	t.Helper()
	s, err := open(context.Background(), x.client[len(x.open)%len(x.client)], &Options{Prefix: x.prefix, NoMigrate: x.role != ""}, x.clock())
	if err != nil {
		t.Fatal(err)
	}
	x.open = append(x.open, s)
	return s
}

func (x *tables) close(t testing.TB) {
	t.Helper()
	for _, s := range x.open {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	x.open = nil
}

// empty deletes all rows, but the store's own.
func (x *tables) empty(t testing.TB) {
	for _, name := range []string{"space", "session", "definition", "seen", "entry", "decision", "leader", "due", "pass", "range", "run", "running"} {
		exec(t, x.p, fmt.Sprintf(`DELETE FROM %s%s`, x.prefix, name))
	}
}

// harnesses opens stores in one database, each under a prefix of its own; a law that has ended leaves its tables and
// connections to the next. Where the clock is to be moved, it is a table.
func harnesses(t *testing.T, p *pgxpool.Pool, role string, moved bool, client ...*pgxpool.Pool) func(t *testing.T) storetest.Harness {
	var mu sync.Mutex
	var free []*tables
	made := 0
	take := func(t *testing.T) *tables {
		mu.Lock()
		defer mu.Unlock()

		if n := len(free); n > 0 {
			x := free[n-1]
			free = free[:n-1]
			return x
		}
		made++
		if made%2 == 0 {
			client = slices.Clone(client)
			slices.Reverse(client) // what most laws use is another one
		}
		x := &tables{p: p, client: client, prefix: fmt.Sprintf("s%d_", made), role: role, moved: moved}
		if role != "" {
			if err := Migrate(t.Context(), p, &Options{Prefix: x.prefix}); err != nil {
				t.Fatal(err)
			}
			run(t, p, grants(x.prefix, role))
		}
		if moved {
			exec(t, p, fmt.Sprintf(`CREATE TABLE %sclock AS SELECT timestamptz '2026-10-01 04:00:00.123456Z' AS now`, x.prefix))
		}
		return x
	}
	give := func(x *tables) {
		mu.Lock()
		defer mu.Unlock()

		free = append(free, x)
	}
	t.Cleanup(func() {
		for _, x := range free {
			x.close(t)
		}
	})
	return func(t *testing.T) storetest.Harness {
		x := take(t)
		for len(x.open) < 2 {
			x.another(t)
		}
		t.Cleanup(func() {
			x.empty(t)
			give(x)
		})
		h := storetest.Harness{
			Store:  x.open[0],
			Second: func(t *testing.T) storetest.Store { return x.open[1] },
			Reopen: func(t *testing.T) storetest.Store {
				x.close(t)
				return x.another(t)
			},
		}
		if moved {
			h.Advance = func(d time.Duration) { x.advance(t, d) }
		}
		return h
	}
}

// As a user has it: with the server's clock, and a role with the published rights alone.
func TestStore(t *testing.T) {
	t.Parallel()
	admin, app, role := roles(t)
	storetest.Run(t, harnesses(t, admin, role, false, app))
}

// With defaults that make transactions other than the store wants them, and without prepared statements or even the extended
// protocol, as a pooler may ask for. F46. And with a clock that the laws move.
func TestStoreWithStrangeDefaults(t *testing.T) {
	if raced {
		t.Skip("the race detector runs, and has seen this code in TestStore")
	}
	t.Parallel()
	db := testservers.Postgres(t).Database(t)
	var clients []*pgxpool.Pool
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		clients = append(clients, pool(t, db, func(c *pgxpool.Config) {
			c.ConnConfig.DefaultQueryExecMode = mode
			for name, value := range map[string]string{
				"default_transaction_isolation": "serializable", "default_transaction_read_only": "on", "default_transaction_deferrable": "on",
				"lock_timeout": "1ms", "TimeZone": "Asia/Kathmandu", "bytea_output": "escape", "DateStyle": "German",
			} {
				c.ConnConfig.RuntimeParams[name] = value
			}
		}))
	}
	storetest.Run(t, harnesses(t, pool(t, db), "", true, clients...))
}
