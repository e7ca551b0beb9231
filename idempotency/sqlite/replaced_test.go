package sqlite

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// F38. A process that goes on in a file which is no longer where the others look is not of their fleet.
func TestReplacedFileIsNoticed(t *testing.T) {
	t.Parallel()
	path := file(t)
	s := openAt(t, path, nil, time.Now)
	opening := idempotency.Opening{Namespace: "ns", Replica: "a", Boot: "a", Partitions: 8, Lease: time.Minute, Horizon: time.Hour, Retention: 2 * time.Hour}
	ses, _, err := s.OpenSession(t.Context(), opening)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.RenewSession(t.Context(), ses); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	noticed := func(what string) {
		t.Helper()
		_, err := s.RenewSession(t.Context(), ses)
		if err == nil || !strings.Contains(err.Error(), "deleted or replaced") {
			t.Errorf("a renewal %s: %v", what, err)
		}
		if _, _, err := s.OpenSession(t.Context(), opening); err == nil {
			t.Errorf("a session was opened %s", what)
		}
	}
	noticed("in a deleted file")
	openAt(t, path, nil, time.Now)
	noticed("beside a new file")
}
