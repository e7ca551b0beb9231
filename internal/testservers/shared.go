package testservers

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
)

// share is what the tests of a process have in common of one engine, each made by the first that asks.
type share struct {
	server func() (*Server, error)
	data   func() (*Server, error) // never runs: private servers begin with copies of its data
}

var shares = map[*engine]share{postgres: newShare(postgres), mariaDB: newShare(mariaDB)}

func newShare(e *engine) share {
	return share{
		server: sync.OnceValues(func() (*Server, error) { return atEnd.add(launch(e, Options{}, "")) }),
		data:   sync.OnceValues(func() (*Server, error) { return atEnd.add(create(e, Options{}, "")) }),
	}
}

// atEnd is what Main discards.
var atEnd ending

type ending struct {
	mu       sync.Mutex
	promised bool // by a call of Main
	servers  []*Server
}

func (a *ending) add(s *Server, err error) (*Server, error) {
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	s.shared = true
	a.servers = append(a.servers, s)
	return s, nil
}

// promise says whether there is an end, and returns what was said before.
func (a *ending) promise(is bool) (was bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	was, a.promised = a.promised, is
	return was
}

func (a *ending) discard() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	var failed error
	for _, s := range a.servers {
		failed = errors.Join(failed, s.discard())
	}
	return failed
}

// Postgres returns the PostgreSQL server that the tests of this package share, and starts it if this is the first to
// ask. Whoever ends or pauses it, or changes settings of the whole server, wants StartPostgres.
//
// Without an installed PostgreSQL the test is skipped, in CI it fails.
func Postgres(t testing.TB) *Server {
	t.Helper()
	return shared(t, postgres)
}

// MariaDB is Postgres for MariaDB.
func MariaDB(t testing.TB) *Server {
	t.Helper()
	return shared(t, mariaDB)
}

func shared(t testing.TB, e *engine) *Server {
	t.Helper()
	need(t, e)
	s, err := shares[e].server()
	if err != nil {
		t.Fatal(err)
	}
	s.watch(t)
	return s
}

// need ends the test where the engine cannot be had.
func need(t testing.TB, e *engine) {
	t.Helper()
	if err := unsupported(); err != nil {
		t.Skipf("skipped: %v", err)
	}
	_, _, err := e.programs()
	switch {
	case err == nil:
	case os.Getenv("CI") != "":
		t.Fatalf("testservers: %v; in CI it has to be (%s)", err, e.install)
	default:
		t.Skipf("skipped: %v; to install it: %s", err, e.install)
	}
	atEnd.mu.Lock()
	defer atEnd.mu.Unlock()
	if !atEnd.promised {
		t.Fatal("testservers: servers would be left behind; in TestMain, give goleak.VerifyTestMain the value of testservers.Main(m)")
	}
}

// Tests are the tests of a package, as goleak.VerifyTestMain takes them.
type Tests struct{ m *testing.M }

// Main is m, but ends the shared servers after the tests.
func Main(m *testing.M) Tests {
	atEnd.promise(true)
	return Tests{m}
}

// Run runs the tests, ends the servers and returns the exit status.
func (r Tests) Run() int {
	code := r.m.Run()
	if err := atEnd.discard(); err != nil {
		fmt.Fprintln(os.Stderr, "testservers: end of the shared servers:", err)
		return max(code, 1)
	}
	return code
}
