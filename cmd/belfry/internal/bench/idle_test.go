package bench

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/fleet"
	"github.com/belfry-go/belfry/jobs"
)

func TestIdle(t *testing.T) {
	t.Parallel()
	l := load{keys: 10, partitions: 64}
	r, err := idle{measure: time.Second, usage: 100 * time.Millisecond, loads: []load{l}, timing: fleet.Brisk(replicas), log: io.Discard}.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != replicas {
		t.Fatalf("%d rows, want one of each replica: %+v", len(r.Rows), r.Rows)
	}
	for i, row := range r.Rows {
		name := fmt.Sprintf("replica-%d", i+1)
		if row.Keys != l.keys || row.Partitions != l.partitions || row.Replica != name || row.CPU <= 0 || row.Calls <= 0 {
			t.Errorf("row %d: got %+v, want %s under %+v, and more than nothing used", i, row, name, l)
		}
	}
	var b strings.Builder
	r.Print(&b)
	if n := strings.Count(b.String(), "replica-"); n != len(r.Rows) {
		t.Errorf("%d replicas printed, want %d:\n%s", n, len(r.Rows), b.String())
	}
}

// TestIdlePlan: whatever the time is, nothing is due for as long as may be measured.
func TestIdlePlan(t *testing.T) {
	t.Parallel()
	for now := time.Date(2026, 3, 29, 0, 0, 0, 1, time.UTC); now.Hour() < 2; now = now.Add(7 * time.Minute) {
		next, ok := jobs.Every(time.Hour).Phase(newIdlePlan(1, now).Phase).Next(now)
		if in := next.Sub(now); !ok || in <= 29*time.Minute || in > 30*time.Minute {
			t.Errorf("at %v the jobs are due in %v", now, in)
		}
	}
}
