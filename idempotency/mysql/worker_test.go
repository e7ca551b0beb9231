package mysql

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// worker is a live session that has one job with keys, of which one due is open.
type worker struct {
	*Store
	session idempotency.Session
	due     time.Time
	keys    int // that it made so far
	nonce   int64
}

func newWorker(t testing.TB, s *Store) *worker {
	t.Helper()
	ctx := context.Background()
	session, renewal, err := s.OpenSession(ctx, idempotency.Opening{
		Namespace: "ns", Replica: "replica-a", Boot: "a", Partitions: 4096, Lease: time.Hour, Horizon: time.Hour, Retention: 2 * time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	w := &worker{Store: s, session: session, due: renewal.Now.Truncate(time.Second)}
	def := idempotency.Definition{Job: "keyed", Hash: "h1", Keyed: true}
	entries, err := s.Declare(ctx, session, 0, []idempotency.Declaration{{Definition: def, Opened: w.due.Add(-time.Hour)}})
	if err != nil {
		t.Fatal(err)
	}
	decided, err := s.Decide(ctx, session, 1, []idempotency.Decision{{Seen: entries[0], Definition: def, Opened: w.due, Keyed: true, Run: []time.Time{w.due}}})
	if err != nil || !decided[0].Won {
		t.Fatalf("opening the due: %+v %v", decided, err)
	}
	return w
}

// beside is another session of the same job and due.
func (w *worker) beside(t testing.TB, s *Store) *worker {
	t.Helper()
	session, _, err := s.OpenSession(context.Background(), idempotency.Opening{
		Namespace: "ns", Replica: "replica-b", Boot: "b", Partitions: 4096, Lease: time.Hour, Horizon: time.Hour, Retention: 2 * time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	def := idempotency.Definition{Job: "keyed", Hash: "h1", Keyed: true}
	if _, err := s.Declare(context.Background(), session, 0, []idempotency.Declaration{{Definition: def, Opened: w.due.Add(-time.Hour)}}); err != nil {
		t.Fatal(err)
	}
	return &worker{Store: s, session: session, due: w.due}
}

// batch makes claims of ever new keys.
func (w *worker) batch(size int) []idempotency.Claim {
	c := make([]idempotency.Claim, size)
	for i := range c {
		w.keys++
		c[i] = w.insert(fmt.Sprintf("customer-%08d", w.keys))
	}
	return c
}

func (w *worker) insert(key string) idempotency.Claim {
	return idempotency.Claim{ID: idempotency.ID{Job: "keyed", Key: key, Due: w.due}, Hash: "h1", Exclusive: true}
}

func (w *worker) claim(ctx context.Context, c ...idempotency.Claim) ([]idempotency.Answer, error) {
	w.nonce++
	return w.Claim(ctx, w.session, w.nonce, c)
}

// wins claims a new key and returns what finishes it.
func (w *worker) wins(t testing.TB, key string) idempotency.Finish {
	t.Helper()
	a, err := w.claim(context.Background(), w.insert(key))
	if err != nil || a[0].Verdict != idempotency.Won {
		t.Fatalf("claim of %q: %+v %v, want won", key, a, err)
	}
	return idempotency.Finish{ID: w.insert(key).ID, Fence: a[0].Fence, Outcome: idempotency.Done, Attempt: 1}
}

// run is the row of a key's run.
func (w *worker) run(t testing.TB, key string) idempotency.Run {
	t.Helper()
	for r, err := range w.List(context.Background(), idempotency.Filter{Namespace: "ns", Key: key}) {
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	t.Fatalf("no run of %q", key)
	return idempotency.Run{}
}

// count is a number that a query yields.
func (w *worker) count(t testing.TB, query string) int64 {
	t.Helper()
	var n int64
	if err := w.write(context.Background(), func(t *tx) error { _, err := t.get([]any{&n}, query); return err }); err != nil {
		t.Fatal(err)
	}
	return n
}
