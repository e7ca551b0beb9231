package ordeal

import (
	"flag"
	"math/rand/v2"
	"testing"

	"go.uber.org/goleak"

	"github.com/belfry-go/belfry/internal/testservers"
)

var (
	ops     = flag.Int("ordeal.ops", 2000, "questions in each history that is judged")
	kills   = flag.Int("ordeal.kills", 3, "how often the server of a test is ended")
	commits = flag.Int("ordeal.commits", 0, "how many commits lose their reply, of claims and of finishes each (default: 100, with the race detector 20)")
	outages = flag.Int("ordeal.outages", 1, "how often a server is away, in each way; more than once: in each way that there is")
	pooler  = flag.Bool("ordeal.pooler", false, "run the suite of stores through PgBouncer")
	seedIn  = flag.Uint64("ordeal.seed", 0, "seed of all that is random; 0 draws one")
)

func TestMain(m *testing.M) {
	flag.Parse()
	if *commits == 0 {
		*commits = defaultCommits
	}
	goleak.VerifyTestMain(testservers.Main(m))
}

// seed is what the test's choices come from. A test that fails prints how to make them again.
func seed(t *testing.T) uint64 {
	s := *seedIn
	if s == 0 {
		s = rand.Uint64()
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the same choices, if not the same interleaving: go test ./internal/ordeal -run '^%s$' -ordeal.seed %d", t.Name(), s)
		}
	})
	return s
}
