package testservers

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
)

// share is one server for all tests of a process, started by the first that asks.
type share struct {
	once   sync.Once
	server *Server
	err    error
}

var (
	shares = map[*engine]*share{postgres: {}, mariaDB: {}}
	ends   atomic.Bool // Main will end them
)

// Postgres returns the PostgreSQL server that the tests of this package share, and starts it if this is the first to
// ask. Whoever changes settings of the whole server, stops or pauses it, wants StartPostgres.
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
	if !ends.Load() {
		t.Fatal("testservers: nothing would end a shared server; give goleak.VerifyTestMain in TestMain the value of testservers.Main(m)")
	}
	s := shares[e]
	s.once.Do(func() {
		if s.server, s.err = launch(e, Options{}); s.err == nil {
			s.server.shared = true
		}
	})
	if s.err != nil {
		t.Fatal(s.err)
	}
	s.server.watch(t)
	return s.server
}

// need ends the test where the engine cannot be had.
func need(t testing.TB, e *engine) {
	t.Helper()
	if err := unsupported(); err != nil {
		t.Skip("skipped: ", err)
	}
	_, _, err := e.programs()
	switch {
	case err == nil:
	case os.Getenv("CI") != "":
		t.Fatalf("testservers: %v; in CI it has to be (%s)", err, e.install)
	default:
		t.Skipf("skipped: %v; to install it: %s", err, e.install)
	}
}

// Tests are the tests of a package, as goleak.VerifyTestMain takes them.
type Tests struct{ m *testing.M }

// Main is m, but ends the shared servers after the tests.
func Main(m *testing.M) Tests {
	ends.Store(true)
	return Tests{m}
}

// Run runs the tests, ends the servers and returns the exit status.
func (r Tests) Run() int {
	code := r.m.Run()
	var failed error
	for _, s := range shares {
		if s.server != nil {
			failed = errors.Join(failed, s.server.discard())
		}
	}
	if failed != nil {
		fmt.Fprintln(os.Stderr, "testservers: end of the shared servers:", failed)
		return max(code, 1)
	}
	return code
}
