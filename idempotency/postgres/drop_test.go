package postgres

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/internal/testservers"
)

// fill puts runs into a namespace, more than are dropped at once, and a row of nearly every other kind, and stops.
func fill(t *testing.T, s *Store, p *pgxpool.Pool, namespace string) {
	t.Helper()
	ctx := t.Context()
	ses, r, err := s.OpenSession(ctx, idempotency.Opening{
		Namespace: namespace, Replica: "a", Boot: "a", Partitions: 8, Lease: time.Hour, Horizon: time.Hour, Retention: 2 * time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	def := idempotency.Definition{Job: "j", Schedule: "@every 1s", Hash: "h"}
	if _, err := s.Lead(ctx, ses, 0); err != nil {
		t.Fatal(err)
	}
	due := r.Now.Truncate(time.Second)
	e, err := s.Declare(ctx, ses, 0, []idempotency.Declaration{{Definition: def, Opened: due.Add(-time.Hour)}})
	if err != nil {
		t.Fatal(err)
	}
	d, err := s.Decide(ctx, ses, 1, []idempotency.Decision{{
		Seen: e[0], Definition: def, Opened: due, Keyed: true, Run: []time.Time{due},
		Ranges: []idempotency.Range{{Job: "j", From: due.Add(-time.Minute), To: due.Add(-time.Minute), Count: 1, Outcome: idempotency.Missed, Reason: "old"}},
	}})
	if err != nil || !d[0].Won {
		t.Fatalf("decide: %+v %v", d, err)
	}
	if _, err := s.SavePass(ctx, ses, []idempotency.Pass{{Job: "j", Due: due, Finished: []byte{1}}}); err != nil {
		t.Fatal(err)
	}
	id := idempotency.ID{Job: "j", Key: "k", Due: due}
	for _, key := range []string{"k", "waits"} {
		id.Key = key
		a, err := s.Claim(ctx, ses, 2, []idempotency.Claim{{ID: id, Hash: "h", Exclusive: true}})
		if err != nil || a[0].Verdict != idempotency.Won {
			t.Fatalf("claim: %+v %v", a, err)
		}
		if key == "waits" {
			if _, err := s.Finish(ctx, namespace, []idempotency.Finish{{ID: id, Fence: a[0].Fence, Outcome: idempotency.Wait, Wake: due}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := s.Submit(ctx, namespace, idempotency.Command{Request: "r", Kind: idempotency.Pause, ID: idempotency.ID{Job: "j"}, Actor: "me"}); err != nil {
		t.Fatal(err)
	}
	run(t, p, fmt.Sprintf(`INSERT INTO belfry_run (space, due, job, key, request, state, fence, session, nonce, exclusive, replica)
SELECT n.id, to_timestamp(%d), 'j', convert_to('old ' || i, 'UTF8'), '', 3, 0, 0, 0, false, '' FROM generate_series(1, 10000) i, belfry_space n WHERE n.name = '%s'`, due.Unix()-1, namespace))
	if err := s.CloseSession(ctx, ses); err != nil {
		t.Fatal(err)
	}
}

// filled are the tables with rows.
func filled(t *testing.T, p *pgxpool.Pool) (full []string) {
	t.Helper()
	for _, table := range slices.Sorted(maps.Keys(rights)) {
		var n int
		if err := p.QueryRow(t.Context(), `SELECT count(*) FROM `+table).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			full = append(full, strings.TrimPrefix(table, "belfry_"))
		}
	}
	return full
}

func runs(t *testing.T, p *pgxpool.Pool) (n int) {
	t.Helper()
	if err := p.QueryRow(t.Context(), `SELECT count(*) FROM belfry_run`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// No table keeps a row of a namespace that was dropped; and where that was interrupted, it is gone all the same, and
// the next call, of whatever namespace, removes the rest.
func TestDropNamespaceLeavesNoRow(t *testing.T) {
	t.Parallel()
	d := testservers.Postgres(t).Database(t)
	p := pool(t, d)
	s := openAt(t, p, nil, serverClock)
	fill(t, s, p, "ns")
	if full := filled(t, p); len(full) != len(rights) {
		t.Fatalf("rows are only in %q; the test has nothing to look at", full)
	}
	// Nobody else can take a row lock that the last batch needs.
	hold, err := p.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Rollback(context.Background()) // a failed test too must let the pool close
	if _, err := hold.Exec(t.Context(), `UPDATE belfry_run SET attempt = 1 WHERE key = 'waits'`); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	dropped := make(chan error, 1)
	go func() { dropped <- s.DropNamespace(ctx, "ns") }()
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for runs(t, p) > 2 {
		select {
		case <-poll.C:
		case err := <-dropped:
			t.Fatalf("it ended before it met the row that is held: %v", err)
		}
	}
	cancel()
	if err := <-dropped; err == nil {
		t.Fatal("it was dropped although a row of it was held")
	}
	if err := hold.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if full := filled(t, p); strings.Join(full, " ") != "number run space store" {
		t.Errorf("after the interruption rows are in %q", full)
	}
	for _, err := range s.List(t.Context(), idempotency.Filter{Namespace: "ns"}) {
		t.Fatalf("a run can still be seen: %v", err)
	}
	fill(t, s, p, "ns")
	if err := s.DropNamespace(t.Context(), "another"); err != nil {
		t.Fatal(err)
	}
	if n := runs(t, p); n != 10002 {
		t.Errorf("%d runs are left, want the 10002 of the new namespace", n)
	}
	if err := s.DropNamespace(t.Context(), "ns"); err != nil {
		t.Fatal(err)
	}
	if full := filled(t, p); strings.Join(full, " ") != "number store" {
		t.Errorf("rows are left in %q", full)
	}
}
