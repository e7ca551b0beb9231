package ordeal

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	mysqlclient "github.com/go-sql-driver/mysql"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/mysql"
	"github.com/belfry-go/belfry/idempotency/sqlite"
	"github.com/belfry-go/belfry/idempotency/storetest"
	"github.com/belfry-go/belfry/internal/testservers"
)

// driver is one kind of store.
type driver struct {
	name string

	// make makes an empty place for a store.
	make func(t *testing.T) *site

	// Of drivers for servers: one that other tests use too, and one of this test alone.
	shared  func(testing.TB) *testservers.Server
	private func(testing.TB, testservers.Options) testservers.Private
	dialect *dialect
}

var drivers = []driver{
	{name: "memory", make: func(*testing.T) *site {
		s := idempotency.NewMemory(nil)
		return &site{open: func(*testing.T) storetest.Store { return s }}
	}},
	{name: "sqlite", make: func(t *testing.T) *site {
		path := filepath.Join(t.TempDir(), "belfry.db")
		return &site{open: func(t *testing.T) storetest.Store {
			s, err := sqlite.Open(t.Context(), path, nil)
			return closed(t, s, err)
		}}
	}},
	{name: "mysql", shared: testservers.MariaDB, private: testservers.StartMariaDB, dialect: &dialect{
		client: "mysql",
		open: func(t *testing.T, d testservers.Database) storetest.Store {
			s, err := mysql.Open(t.Context(), mysqlPool(t, d), nil)
			return closed(t, s, err)
		},
	}},
}

// closed is a store that is closed with its test.
func closed[S interface {
	storetest.Store
	Close() error
}](t *testing.T, s S, err error) storetest.Store {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func mysqlPool(t *testing.T, d testservers.Database) *sql.DB {
	t.Helper()
	c, err := mysqlclient.ParseDSN(d.DSN())
	if err != nil {
		t.Fatal(err)
	}
	c.Logger = &mysqlclient.NopLogger{} // it would tell of each connection that a test breaks
	connector, err := mysqlclient.NewConnector(c)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() }) // its connections may be broken
	return db
}

// dialect is what tests need to know of a kind of server.
type dialect struct {
	client string // what database/sql calls its client
	open   func(t *testing.T, d testservers.Database) storetest.Store
}

// site is where one store's data is, empty at first.
type site struct {
	open func(t *testing.T) storetest.Store // another handle on it, closed with the test

	// Where it is on a server:
	server  testservers.Private // its Server is nil where others use it too
	db      testservers.Database
	dialect *dialect
}

// exec runs a statement as the server's administrator, not through the proxy.
func (s *site) exec(t *testing.T, statement string) {
	t.Helper()
	db, err := sql.Open(s.dialect.client, s.db.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(context.WithoutCancel(t.Context()), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// need is what a test needs of a store.
type need int

const (
	anyStore     need = iota
	onServer          // one that is a process of its own
	onServerOfIt      // and nobody else's
)

// each runs a test on every driver that has what it needs.
func each(t *testing.T, n need, test func(t *testing.T, s *site)) {
	t.Parallel()
	for _, d := range drivers {
		if n > anyStore && d.dialect == nil {
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			if d.dialect == nil {
				test(t, d.make(t))
				return
			}
			test(t, d.site(t, n))
		})
	}
}

func (d driver) site(t *testing.T, n need) *site {
	s := &site{dialect: d.dialect}
	if n == onServerOfIt {
		s.server = d.private(t, testservers.Options{})
		s.db = s.server.Database(t)
	} else {
		s.db = d.shared(t).Database(t)
	}
	s.open = func(t *testing.T) storetest.Store { return d.dialect.open(t, s.db) }
	return s
}
