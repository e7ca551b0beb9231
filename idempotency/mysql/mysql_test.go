package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"go.uber.org/goleak"

	"github.com/belfry-go/belfry/idempotency/storetest"
	"github.com/belfry-go/belfry/internal/testservers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testservers.Main(m)) }

// client opens a pool of the database, with parameters behind its DSN, and closes it when the test ends.
func client(t testing.TB, d testservers.Database, parameters string) *sql.DB {
	t.Helper()
	return clientOf(t, d.DSN()+parameters)
}

func clientOf(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	c, err := driver.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	c.Logger = &driver.NopLogger{} // it tells of each connection that the server closes
	connector, err := driver.NewConnector(c)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return db
}

// openOn opens a store on the pool and closes it when the test ends.
func openOn(t testing.TB, db *sql.DB, o *Options) *Store {
	t.Helper()
	s, err := Open(context.Background(), db, o)
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

// clock is a store's clock that a test moves.
type clock struct{ micros atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.micros.Store(time.Date(2026, 10, 1, 4, 0, 0, 123456789, time.UTC).UnixMicro())
	return c
}

func (c *clock) sql() string { return strconv.FormatInt(c.micros.Load(), 10) }

func (c *clock) Advance(d time.Duration) { c.micros.Add(d.Microseconds()) }

// prefixed are the tables of one prefix, with the clock of their stores.
type prefixed struct {
	admin  *sql.DB   // the test's
	client []*sql.DB // the stores', in turns
	o      Options
	clock  *clock // nil: the server's
	open   []*Store
}

// another opens one more store.
func (x *prefixed) another(t testing.TB) *Store {
	t.Helper()
	s, err := Open(context.Background(), x.client[len(x.open)%len(x.client)], &x.o)
	if err != nil {
		t.Fatal(err)
	}
	if x.clock != nil {
		s.clock = x.clock.sql
	}
	x.open = append(x.open, s)
	return s
}

func (x *prefixed) close(t testing.TB) {
	t.Helper()
	for _, s := range x.open {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	x.open = nil
}

// empty deletes all rows, but the store's own.
func (x *prefixed) empty(t testing.TB) {
	for table := range rights {
		if table != "belfry_store" {
			run(t, x.admin, "DELETE FROM "+strings.Replace(table, "belfry_", x.o.Prefix, 1))
		}
	}
}

// harnesses opens stores in one database, each under a prefix of its own; a law that has ended leaves its tables and
// connections to the next. A user that is named has the published rights alone; else the stores make their tables.
func harnesses(whole *testing.T, admin *sql.DB, client func() *sql.DB, user string, moved bool) func(t *testing.T) storetest.Harness {
	var mu sync.Mutex
	var free []*prefixed
	made := 0
	take := func(t *testing.T) *prefixed {
		mu.Lock()
		defer mu.Unlock()

		if n := len(free); n > 0 {
			x := free[n-1]
			free = free[:n-1]
			return x
		}
		made++
		x := &prefixed{admin: admin, o: Options{Prefix: fmt.Sprintf("s%d_", made), NoMigrate: user != ""}}
		if user != "" {
			if err := Migrate(t.Context(), admin, &Options{Prefix: x.o.Prefix}); err != nil {
				t.Fatal(err)
			}
			run(t, admin, grants(x.o.Prefix, user)...)
		}
		x.client = []*sql.DB{client(), client()}
		whole.Cleanup(func() { x.close(whole) }) // before its clients
		if moved {
			x.clock = newClock()
		}
		return x
	}
	return func(t *testing.T) storetest.Harness {
		x := take(t)
		for len(x.open) < 2 {
			x.another(t)
		}
		t.Cleanup(func() {
			x.empty(t)
			mu.Lock()
			defer mu.Unlock()
			free = append(free, x)
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
			h.Advance = x.clock.Advance
		}
		return h
	}
}

// With a clock that the laws move, for a user with the published rights alone.
func TestStore(t *testing.T) {
	t.Parallel()
	admin, app, user := accounts(t)
	storetest.Run(t, harnesses(t, admin, app, user, true))
}

// hostile are parameters of a client that would spoil what the store does, were it to depend on them: what an affected
// row is, types, charset and time zone, no transaction by default, the strictest isolation, no writes, no error where a
// value is cut.
const hostile = "?clientFoundRows=true&interpolateParams=true&parseTime=true&loc=Asia%2FTokyo&multiStatements=true&charset=gbk" +
	"&autocommit=0&sql_mode=%27ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PAD_CHAR_TO_FULL_LENGTH%27&tx_isolation=%27SERIALIZABLE%27&tx_read_only=1" +
	"&time_zone=%27%2B09:00%27&sql_select_limit=1&sql_safe_updates=1&sql_auto_is_null=1&unique_checks=0"

// With the server's clock, as a user has it, and a client as nobody should have it. F44 and F45.
func TestStoreOnServerClock(t *testing.T) {
	if raced {
		t.Skip("the race detector runs, and has seen this code in TestStore")
	}
	t.Parallel()
	d := testservers.MariaDB(t).Database(t)
	storetest.Run(t, harnesses(t, client(t, d, ""), func() *sql.DB { return client(t, d, hostile) }, "", false))
}
