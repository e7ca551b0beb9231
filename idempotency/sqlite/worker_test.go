package sqlite

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// worker is a session that claims keys of one open due.
type worker struct {
	s       *Store
	session idempotency.Session
	due     time.Time
	nonce   int64
}

const job = "renewals"

var definition = idempotency.Definition{Job: job, Schedule: "@every 1s", Hash: "h1"}

// newWorker opens a session that outlives the test, and the store's first due.
func newWorker(t testing.TB, s *Store) *worker {
	t.Helper()
	w, err := startWorker(context.Background(), s, "a", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// firstDue is the same for all workers of a test's processes.
func firstDue(now time.Time) time.Time { return now.Truncate(time.Hour) }

func startWorker(ctx context.Context, s *Store, name string, lease time.Duration) (*worker, error) {
	session, r, err := s.OpenSession(ctx, idempotency.Opening{
		Namespace: "ns", Replica: name, Boot: name, Partitions: 8,
		Lease: lease, Horizon: 48 * time.Hour, Retention: 96 * time.Hour,
	})
	if err != nil {
		return nil, err
	}
	w := &worker{s: s, session: session, due: firstDue(r.Now), nonce: 1}
	e, err := s.Declare(ctx, session, 0, []idempotency.Declaration{{Definition: definition, Opened: w.due.Add(-time.Hour)}})
	if err != nil {
		return nil, err
	}
	if e[0].Opened.Before(w.due) {
		_, err = s.Decide(ctx, session, 1, []idempotency.Decision{{
			Seen: e[0], Definition: definition, Opened: w.due, Keyed: true, Run: []time.Time{w.due},
		}})
	} else {
		w.due = e[0].Opened // another worker was before, maybe in the hour before
	}
	return w, err
}

func (w *worker) batch(from, n int) []idempotency.Claim {
	c := make([]idempotency.Claim, n)
	for i := range c {
		c[i] = idempotency.Claim{ID: idempotency.ID{Job: job, Key: fmt.Sprint("customer ", from+i), Due: w.due}, Hash: "h1", Exclusive: true}
	}
	return c
}

// claim wants n keys won.
func (w *worker) claim(t testing.TB, from, n int) []idempotency.Finish {
	t.Helper()
	f, err := w.tryClaim(context.Background(), from, n)
	if err != nil || len(f) != n {
		t.Fatalf("claimed %d of %d: %v", len(f), n, err)
	}
	return f
}

// tryClaim returns what finishes the keys that were won.
func (w *worker) tryClaim(ctx context.Context, from, n int) (f []idempotency.Finish, err error) {
	w.nonce++
	c := w.batch(from, n)
	answers, err := w.s.Claim(ctx, w.session, w.nonce, c)
	for i, a := range answers {
		if a.Verdict == idempotency.Won {
			f = append(f, idempotency.Finish{ID: c[i].ID, Fence: a.Fence, Outcome: idempotency.Done, Attempt: 1})
		}
	}
	return f, err
}

// count counts the runs, and demands that sessions count what names them.
func count(t testing.TB, s *Store) (n int) {
	t.Helper()
	for _, err := range s.List(context.Background(), idempotency.Filter{Namespace: "ns"}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	err := s.read(context.Background(), func(x *tx) error {
		var wrong int
		_, err := x.get([]any{&wrong}, `SELECT count(*) FROM belfry_session s WHERE named <> (SELECT count(*) FROM belfry_run r WHERE r.session = s.id)
  + (SELECT count(*) FROM belfry_leader l WHERE l.session = s.id)`)
		if wrong > 0 {
			t.Errorf("%d sessions have miscounted what names them", wrong)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
