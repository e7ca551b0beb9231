//go:build unix

package etcdrig

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

var (
	rounds = flag.Int("etcdrig.rounds", 0, "how often each fault is repeated (default: 2, of the store's election 1; with the race detector 1)")
	keep   = flag.Bool("etcdrig.keep", false, "keep ledger, store and logs of what passes too")
	seed   = flag.Uint64("etcdrig.seed", 0, "seed of the faults; 0 draws one")
)

// role is the first argument of a copy of the test binary that is to be a replica.
const role = "etcdrig-replica"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == role {
		if err := replica(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	// The tests mostly wait for leases to lapse, so more of them run at once than there are processors.
	if n := flag.Lookup("test.parallel"); n.Value.String() == n.DefValue {
		_ = n.Value.Set("6") // a number
	}
	goleak.VerifyTestMain(m)
}

// times is how often a fault is repeated that a plain run has n times.
func times(n int) int {
	switch {
	case *rounds > 0:
		return *rounds
	case slow:
		return 1
	}
	return n
}

// pace is how long a leader waits between two looks at its term.
func pace() time.Duration {
	if slow {
		return 100 * time.Millisecond
	}
	return 20 * time.Millisecond
}

// lease is that of the replicas, in the store and in etcd. Where they are slow, one of 2 s would lapse for want of a processor.
func lease() time.Duration {
	if slow {
		return 4 * time.Second
	}
	return 2 * time.Second
}
