package ring

import (
	"fmt"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// schemes are the ways fleets name their replicas: numbered from 1, a padded
// ordinal, an address.
var schemes = []string{"node-%d", "sched-%04d", "10.0.0.%d:7946"}

// named is n names of a scheme, from 1 on.
func named(scheme string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf(scheme, i+1)
	}
	return names
}

func mustNew(tb testing.TB, names []string, o *Options) *Ring {
	tb.Helper()
	r, err := New(names, o)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}
