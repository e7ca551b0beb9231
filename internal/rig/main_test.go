//go:build unix

package rig

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/belfry-go/belfry/internal/testservers"
)

var (
	rounds = flag.Int("rig.rounds", 0, "how often each fault is repeated (default 1, with BELFRY_LONG=1 10)")
	kills  = flag.Int("rig.kills", 0, "how many kills TestKilled has, over all drivers; 0: the default round")
	pauses = flag.Int("rig.pauses", 0, "how many pauses TestPaused has, over all drivers; 0: the default round")
	lanes  = flag.Int("rig.lanes", 2, "how many fleets of each driver a long run of kills has at once, and two more one of pauses")
	leased = flag.Duration("rig.lease", 0, "lease of the replicas, on a machine that has much else to do; default 2s")
	keep   = flag.Bool("rig.keep", false, "keep ledger, store and logs of what passes too")
	calmly = flag.Duration("rig.calm", 10*time.Second, "how long the replicas of TestCalm are left in peace")
	seed   = flag.Uint64("rig.seed", 0, "seed of the faults; 0 draws one")
)

// The first argument of a copy of the test binary says what it is to be.
const (
	role    = "rig-replica"
	spinner = "rig-spinner"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == role {
		if err := replica(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 1 && os.Args[1] == spinner {
		for sum := sha256.Sum256(nil); ; sum = sha256.Sum256(sum[:]) {
		}
	}
	flag.Parse()
	// The tests mostly wait for leases to lapse, so more of them run at once than there are processors.
	if n := flag.Lookup("test.parallel"); n.Value.String() == n.DefValue && !slow {
		_ = n.Value.Set("6") // a number
	}
	goleak.VerifyTestMain(testservers.Main(m))
}

// times is how often a fault is to be repeated that a default round has n times.
func times(n int) int {
	switch {
	case *rounds > 0:
		return n * *rounds
	case os.Getenv("BELFRY_LONG") == "1":
		return n * 10
	}
	return n
}

// lease is that of the replicas. Where they are slow, one of 2 s would lapse for want of a processor.
func lease() time.Duration {
	switch {
	case *leased > 0:
		return *leased
	case slow:
		return 6 * time.Second
	}
	return 2 * time.Second
}
