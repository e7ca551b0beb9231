//go:build unix

package rig

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	mysqlclient "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/mysql"
	"github.com/belfry-go/belfry/idempotency/postgres"
	"github.com/belfry-go/belfry/idempotency/sqlite"
	"github.com/belfry-go/belfry/internal/faultproxy"
	"github.com/belfry-go/belfry/internal/testservers"
	"github.com/belfry-go/belfry/jobs"
)

// driver is one kind of store. A further one joins by its line in drivers.
type driver struct {
	name   string
	client string                                                    // what database/sql calls a client of it
	open   func(ctx context.Context, dsn string) (*handle, error)    // in a replica, and in the test
	shared func(testing.TB) *testservers.Server                      // nil: its store is a file
	own    func(testing.TB, testservers.Options) testservers.Private // a server that may be killed

	// lose has a proxy lose the replies to commits that match; nil: no longer.
	commit faultproxy.Match
	lose   func(p *faultproxy.Proxy, commit faultproxy.Match, end faultproxy.End)
}

var drivers = []*driver{
	{name: "sqlite", client: "sqlite", open: openSQLite},
	{name: "postgres", client: "pgx", open: openPostgres, shared: testservers.Postgres, own: testservers.StartPostgres,
		commit: faultproxy.PostgresCommitted,
		lose:   func(p *faultproxy.Proxy, m faultproxy.Match, end faultproxy.End) { p.ToClient.Lose(m, end) }},
	{name: "mysql", client: "mysql", open: openMySQL, shared: testservers.MariaDB, own: testservers.StartMariaDB,
		commit: faultproxy.MySQLCommit, lose: (*faultproxy.Proxy).LoseReply},
}

// sqliteDriver is what a fleet has that does not ask for another.
var sqliteDriver = drivers[0]

func driverNamed(name string) *driver {
	for _, d := range drivers {
		if d.name == name {
			return d
		}
	}
	return nil
}

// site says where a store is, and of which driver, as a replica is told.
type site struct {
	Driver, DSN string
}

func (s site) open(ctx context.Context) (*handle, error) {
	return driverNamed(s.Driver).open(ctx, s.DSN)
}

// history is a store to read.
type history interface {
	idempotency.Store
	idempotency.History
}

// handle is an opened store.
type handle struct {
	history
	close func() error

	// effect writes the occurrence's effect into the table effects, in the transaction that completes its run; applied is
	// called in between. Nil: the driver has no such transactions.
	effect func(ctx context.Context, o jobs.Occurrence, applied func()) error
}

const (
	makeEffects = `create table effects (idem varchar(255) not null, fence bigint not null)`
	readEffects = `select idem, fence from effects`
	insertMarks = `insert into effects values (?, ?)`
)

// conns is how many connections a replica's pool has at most.
const conns = 4

func openSQLite(ctx context.Context, dsn string) (*handle, error) {
	s, err := sqlite.Open(ctx, dsn, nil)
	if err != nil {
		return nil, err
	}
	return &handle{history: s, close: s.Close, effect: func(ctx context.Context, o jobs.Occurrence, applied func()) error {
		return sqlite.InTx(ctx, s, o, writes(ctx, o, applied))
	}}, nil
}

func writes(ctx context.Context, o jobs.Occurrence, applied func()) func(tx *sql.Tx) error {
	return func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, insertMarks, o.IdempotencyKey(), o.Fence)
		if err == nil {
			applied()
		}
		return err
	}
}

func openPostgres(ctx context.Context, dsn string) (*handle, error) {
	c, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	c.MaxConns = conns
	pool, err := pgxpool.NewWithConfig(ctx, c)
	if err != nil {
		return nil, err
	}
	s, err := postgres.Open(ctx, pool, &postgres.Options{Logger: quiet})
	if err != nil {
		pool.Close()
		return nil, err
	}
	effect := func(ctx context.Context, o jobs.Occurrence, applied func()) error {
		return postgres.InTx(ctx, s, o, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `insert into effects values ($1, $2)`, o.IdempotencyKey(), o.Fence)
			if err == nil {
				applied()
			}
			return err
		})
	}
	return &handle{s, func() error { err := s.Close(); pool.Close(); return err }, effect}, nil
}

func openMySQL(ctx context.Context, dsn string) (*handle, error) {
	c, err := mysqlclient.ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	c.Logger = &mysqlclient.NopLogger{} // it would tell of each connection that a test breaks
	connector, err := mysqlclient.NewConnector(c)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(2 * conns) // the store is one of its users
	s, err := mysql.Open(ctx, db, &mysql.Options{Logger: quiet})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	effect := func(ctx context.Context, o jobs.Occurrence, applied func()) error {
		return mysql.InTx(ctx, s, o, writes(ctx, o, applied))
	}
	return &handle{s, func() error {
		err := s.Close()
		_ = db.Close() // errs for connections that a test broke
		return err
	}, effect}, nil
}

var quiet = slog.New(slog.DiscardHandler)

// openPatiently opens a store that may be down or cut off for a while, as one does whom a supervisor starts again.
func openPatiently(ctx context.Context, at site) (*handle, error) {
	ctx, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		try, done := context.WithTimeout(ctx, openWithin/12)
		h, err := at.open(try)
		done()
		if err == nil {
			return h, nil
		}
		slog.Warn("the store is not opened", "err", err)
		select {
		case <-ctx.Done():
			return nil, err
		case <-again.C:
		}
	}
}

// place is where one fleet's store is, empty at first.
type place struct {
	*driver
	path   string               // of a file
	db     testservers.Database // on a server
	server *testservers.Private // that of this fleet alone; nil: there is none, or other tests use it too
}

// newPlace makes one. alone demands a server that no other fleet uses.
func (d *driver) newPlace(t *testing.T, alone bool) place {
	t.Helper()
	p := place{driver: d}
	switch {
	case d.shared == nil:
		p.path = filepath.Join(memory(t), "store.db")
	case alone:
		s := d.own(t, testservers.Options{})
		p.server, p.db = &s, s.Database(t)
	default:
		p.db = d.shared(t).Database(t)
	}
	return p
}

// memory is a folder in memory where there is such a place: no process that is killed takes what it wrote with it, and
// syncing to a disk that others use would take longer than a call may.
func memory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "belfry-rig-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// keep copies a store that is a file to a folder.
func (p place) keep(t *testing.T, to string) {
	t.Helper()
	if p.path == "" {
		return
	}
	if err := os.CopyFS(filepath.Join(to, "store"), os.DirFS(filepath.Dir(p.path))); err != nil {
		t.Error(err)
	}
}

// site is where the store is reached, directly or by way of a proxy, whose address is not empty.
func (p place) site(proxy string) site {
	switch {
	case p.shared == nil:
		return site{p.name, p.path}
	case proxy != "":
		return site{p.name, p.db.At(proxy).DSN()}
	}
	return site{p.name, p.db.DSN()}
}

// ask lets do use the store's database, as the application does to which it belongs.
func (p place) ask(t *testing.T, do func(db *sql.DB) error) {
	t.Helper()
	db, err := sql.Open(p.client, p.site("").DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := do(db); err != nil {
		t.Fatal(err)
	}
}

// left is whether a driver is left to a step of its own: processes that work through servers take more of the machine than
// other packages' tests beside them leave.
func (d *driver) left() bool { return d.shared != nil && *size == "small" }

// each tells a story on every driver, to a fleet of its own.
func each(t *testing.T, base spec, story func(t *testing.T, f *fleet)) {
	t.Helper()
	skipSlow(t)
	for _, d := range drivers {
		if d.left() {
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			story(t, newFleetOn(t, d, false, base))
		})
	}
}
