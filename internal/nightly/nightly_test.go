package nightly

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/belfry-go/belfry/internal/testservers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testservers.Main(m)) }

// TestExample plays the night of the example, with its kill, on Postgres. A test that was skipped there has not passed.
func TestExample(t *testing.T) {
	t.Parallel()
	db := testservers.Postgres(t).Database(t)
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-v", "-run", "^(TestNightOnPostgres|TestDatabase)$",
		"github.com/belfry-go/belfry/examples/nightly-renewals")
	cmd.Env = append(os.Environ(), "DATABASE_URL="+db.URL())
	out, err := cmd.CombinedOutput()
	for _, passed := range []string{"--- PASS: TestNightOnPostgres ", "--- PASS: TestDatabase/postgres "} {
		if err != nil || !strings.Contains(string(out), passed) {
			t.Fatalf("no %q (%v):\n%s", passed, err, out)
		}
	}
}
