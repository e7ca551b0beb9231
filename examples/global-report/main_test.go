package main

import (
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// TestMain lets the test binary be the program, with arguments that no test run has.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-test.") {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

func TestFlagsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, want string }{
		{"--store-election --etcd 127.0.0.1:2379", "--store-election needs no --etcd; give one of them"},
		{"kill a", `global-report: "kill a" is not a flag; see --help`},
		{"replica a", `global-report replica: "a" is not a flag; see --help`},
	} {
		if err := run(t.Context(), strings.Fields(c.args)); err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", c.args, err, c.want)
		}
	}
}
