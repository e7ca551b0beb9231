package etcdservers

import (
	"os"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

// shared is the one server of a package's tests.
var shared struct {
	once    sync.Once
	dir     string
	servers *Servers
	err     error
}

// Shared returns one server that all tests of a package share, started by the first that asks for it: who uses it keeps to keys that
// begin with the test's name, and neither stops it nor fills it. TestMain ends it, by Main.
func Shared(t testing.TB) *Servers {
	t.Helper()
	shared.once.Do(func() {
		if shared.dir, shared.err = os.MkdirTemp("", "belfry-etcd-"); shared.err == nil {
			shared.servers, shared.err = open(shared.dir, Config{})
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.servers
}

// Main is m with the end of the shared server after it.
func Main(m goleak.TestingM) goleak.TestingM { return main{m} }

type main struct{ goleak.TestingM }

func (m main) Run() int {
	defer func() {
		if shared.servers != nil {
			shared.servers.stop()
		}
		os.RemoveAll(shared.dir) // "" where nobody asked
	}()
	return m.TestingM.Run()
}
