package bench

import (
	"context"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/belfry-go/belfry/internal/procs"
)

// TestMain lets the test binary be a child: "bench idler NAME", "bench member NAME" and so on.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "bench" {
		run := map[string]func(context.Context, *procs.Parent) error{"idler": Idler, "member": Member, "timekeeper": Timekeeper, "soaker": Soaker}[os.Args[2]]
		ctx, parent := procs.Attach(context.Background(), os.Stdin, os.Stdout)
		if err := run(ctx, parent); err != nil {
			os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(4)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}
