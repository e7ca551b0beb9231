package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
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

// harness is a store all of whose handles share a clock; each has a pool of its own.
func harness(t *testing.T, pool func() *sql.DB, o Options, now func() string, advance func(time.Duration)) storetest.Harness {
	var handles []*Store
	another := func(t *testing.T) storetest.Store {
		s := openOn(t, pool(), &o)
		s.clock = now
		handles = append(handles, s)
		return s
	}
	return storetest.Harness{
		Store:   another(t),
		Second:  another,
		Advance: advance,
		Reopen: func(t *testing.T) storetest.Store {
			for _, s := range handles {
				if err := s.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			}
			return another(t)
		},
	}
}

// With a clock that the laws move, for a user with the published rights alone.
func TestStore(t *testing.T) {
	t.Parallel()
	admin, app, user := accounts(t)
	var n atomic.Int64
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		c, prefix := newClock(), fmt.Sprintf("p%d_", n.Add(1))
		if err := Migrate(t.Context(), admin, &Options{Prefix: prefix}); err != nil {
			t.Fatal(err)
		}
		run(t, admin, grants(prefix, user)...)
		return harness(t, app, Options{Prefix: prefix, NoMigrate: true}, c.sql, c.Advance)
	})
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
	var n atomic.Int64
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		pool := func() *sql.DB { return client(t, d, hostile) }
		return harness(t, pool, Options{Prefix: fmt.Sprintf("p%d_", n.Add(1))}, serverClock, nil)
	})
}
