package ordeal

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/sqlite"
	"github.com/belfry-go/belfry/idempotency/storetest"
	"github.com/belfry-go/belfry/internal/faultproxy"
	"github.com/belfry-go/belfry/internal/testservers"
	"github.com/belfry-go/belfry/jobs"
)

// driver is one kind of store.
type driver struct {
	name    string
	local   func(t *testing.T) *site // makes an empty place for a store of this process; nil: it is on a server
	dialect *dialect
}

var drivers = []driver{
	{name: "memory", local: func(*testing.T) *site {
		s := idempotency.NewMemory(nil)
		return &site{open: func(*testing.T) *handle { return &handle{Store: s} }}
	}},
	{name: "sqlite", local: func(t *testing.T) *site {
		path := filepath.Join(t.TempDir(), "belfry.db")
		return &site{client: "sqlite", path: path, open: func(t *testing.T) *handle {
			s, err := sqlite.Open(t.Context(), path, nil)
			if err != nil {
				t.Fatal(err)
			}
			closes(t, s)
			return &handle{Store: s, effect: func(ctx context.Context, o jobs.Occurrence) error {
				return sqlite.InTx(ctx, s, o, func(tx *sql.Tx) error {
					_, err := tx.ExecContext(ctx, `insert into effects values (?)`, o.Key)
					return err
				})
			}}
		}}
	}},
	{name: "postgres", dialect: &postgresDialect},
	{name: "mysql", dialect: &mysqlDialect},
}

// closes closes a store with its test.
func closes(t *testing.T, s interface{ Close() error }) {
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// handle is an opened store.
type handle struct {
	storetest.Store

	// effect writes the occurrence's key into the table effects, in the transaction that completes its run. Nil for memory.
	effect func(ctx context.Context, o jobs.Occurrence) error

	// take takes one connection of the pool that the store was opened with, until the end of the test. For stores on servers.
	take func(ctx context.Context) error
}

// dialect is what tests need to know of one kind of server.
type dialect struct {
	client  string
	shared  func(testing.TB) *testservers.Server
	private func(testing.TB, testservers.Options) testservers.Private
	admin   string // whom a Database's DSN names

	// open opens a store with a pool of the caller's, which has so many connections at most.
	open func(t *testing.T, dsn string, conns int) *handle

	// Statements about a database and a user who may do in it what a store needs. The user is named as the database is.
	user           []string
	forbid, permit []string // to write
	limit          string   // of the user's connections, to six
	connections    string   // how many there are
	tables         string   // how many there are

	// commit matches a chunk by which a commit is known, and lose has the proxy lose its reply; nil: no longer. lost counts.
	commit faultproxy.Match
	lose   func(p *faultproxy.Proxy, commit faultproxy.Match, end faultproxy.End)
	lost   func(c faultproxy.Counts) int
}

// site is where one store's data is, empty at first.
type site struct {
	open   func(t *testing.T) *handle // another handle on it, closed with the test
	client string                     // what database/sql calls a client of it; empty: there is none
	path   string                     // of a file

	// Where it is on a server:
	*dialect
	server testservers.Private // its Server is nil where others use it too
	db     testservers.Database
	proxy  *faultproxy.Proxy // through which handles are opened from now on; nil: directly
}

// through puts a proxy between the server and the handles that are opened from now on.
func (s *site) through(t *testing.T) *faultproxy.Proxy {
	t.Helper()
	p, err := faultproxy.Listen(s.db.Addr)
	if err != nil {
		t.Fatal(err)
	}
	closes(t, p)
	s.proxy = p
	return p
}

// dsn is how the user reaches the site.
func (s *site) dsn(user string) string {
	at := s.db
	if s.proxy != nil {
		at = at.At(s.proxy.Addr())
	}
	return strings.Replace(at.DSN(), s.admin+"@", user+"@", 1)
}

// exec runs statements as the server's administrator, not through the proxy. %s in them is the database.
func (s *site) exec(t *testing.T, statements ...string) {
	t.Helper()
	s.admins(t, func(db *sql.DB) error {
		for _, text := range statements {
			if _, err := db.ExecContext(t.Context(), strings.ReplaceAll(text, "%s", s.db.Name)); err != nil {
				return err
			}
		}
		return nil
	})
}

// ask asks the administrator's question, which has one number as its answer.
func (s *site) ask(t *testing.T, query string) (answer int) {
	t.Helper()
	s.admins(t, func(db *sql.DB) error {
		return db.QueryRowContext(t.Context(), strings.ReplaceAll(query, "%s", s.db.Name)).Scan(&answer)
	})
	return answer
}

func (s *site) admins(t *testing.T, do func(*sql.DB) error) {
	t.Helper()
	dsn := s.path
	if s.dialect != nil {
		dsn = s.db.DSN()
	}
	db, err := sql.Open(s.client, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := do(db); err != nil {
		t.Fatal(err)
	}
}

const makeEffects = `create table effects (k varchar(255) not null)`

// effects counts the effects of each key.
func (s *site) effects(t *testing.T) map[string]int {
	t.Helper()
	n := make(map[string]int)
	s.admins(t, func(db *sql.DB) error {
		rows, err := db.QueryContext(t.Context(), `select k, count(*) from effects group by k`)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var key string
			var count int
			if err := rows.Scan(&key, &count); err != nil {
				return err
			}
			n[key] = count
		}
		return rows.Err()
	})
	return n
}

// need is what a test needs of a store.
type need int

const (
	anyStore    need = iota
	onServer         // one that is a process of its own
	onOwnServer      // and that no other test uses
)

// each runs a test on every driver that has what it needs.
func each(t *testing.T, n need, test func(t *testing.T, s *site)) {
	t.Parallel()
	for _, d := range drivers {
		if n > anyStore && d.local != nil {
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			if d.local != nil {
				test(t, d.local(t))
				return
			}
			s := &site{dialect: d.dialect, client: d.dialect.client}
			if n == onOwnServer {
				s.server = d.dialect.private(t, testservers.Options{})
				s.db = s.server.Database(t)
			} else {
				s.db = d.dialect.shared(t).Database(t)
			}
			s.open = func(t *testing.T) *handle { return s.dialect.open(t, s.dsn(s.admin), plenty) }
			test(t, s)
		})
	}
}

// plenty is a size of a caller's pool that stops nobody.
const plenty = 20
