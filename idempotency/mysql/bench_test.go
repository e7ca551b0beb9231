package mysql

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/storetest"
	"github.com/belfry-go/belfry/internal/testservers"
)

func BenchmarkStore(b *testing.B) {
	d := testservers.MariaDB(b).Database(b)
	n := 0
	storetest.Bench(b, func(b *testing.B) storetest.Store {
		n++
		return openOn(b, client(b, d, ""), &Options{Prefix: fmt.Sprintf("b%d_", n)})
	})
}

// BenchmarkNight is what a night consists of, claims and then finishes of 1,000 ever new keys, through the store and
// by its statements alone: the raw loop sends the same inserts, updates and deletes in transactions of the same size, and
// neither looks nor locks before. The two take turns, so that they meet the same machine.
func BenchmarkNight(b *testing.B) {
	d := testservers.MariaDB(b).Database(b)
	through := newNight(b, openOn(b, client(b, d, ""), &Options{Prefix: "store_"}))
	raw := newNight(b, openOn(b, client(b, d, ""), &Options{Prefix: "raw_"}))
	var took, took0 time.Duration
	for b.Loop() {
		took += timed(b, through.claimAndFinish)
		took0 += timed(b, raw.raw)
	}
	keys := float64(b.N * idempotency.MaxBatch)
	b.ReportMetric(keys/took.Seconds(), "keys/s")
	b.ReportMetric(keys/took0.Seconds(), "raw-keys/s")
	b.ReportMetric(100*took0.Seconds()/took.Seconds(), "%-of-raw")
}

func timed(b *testing.B, f func() error) time.Duration {
	start := time.Now()
	if err := f(); err != nil {
		b.Fatal(err)
	}
	return time.Since(start)
}

// night is a store with one open due.
type night struct {
	*Store
	session idempotency.Session
	due     time.Time
	keys    int
}

func newNight(b *testing.B, s *Store) *night {
	b.Helper()
	ctx := b.Context()
	session, renewal, err := s.OpenSession(ctx, idempotency.Opening{
		Namespace: "ns", Replica: "replica-a", Boot: "a", Partitions: 4096, Lease: time.Hour, Horizon: time.Hour, Retention: 2 * time.Hour,
	})
	if err != nil {
		b.Fatal(err)
	}
	n := &night{Store: s, session: session, due: renewal.Now.Truncate(time.Second)}
	def := idempotency.Definition{Job: "keyed", Hash: "h1"}
	entries, err := s.Declare(ctx, session, 0, []idempotency.Declaration{{Definition: def, Opened: n.due.Add(-time.Hour)}})
	if err != nil {
		b.Fatal(err)
	}
	decided, err := s.Decide(ctx, session, 1, []idempotency.Decision{{Seen: entries[0], Definition: def, Opened: n.due, Keyed: true, Run: []time.Time{n.due}}})
	if err != nil || !decided[0].Won {
		b.Fatalf("opening the due: %+v %v", decided, err)
	}
	return n
}

func (n *night) batch() []idempotency.Claim {
	c := make([]idempotency.Claim, idempotency.MaxBatch)
	for i := range c {
		n.keys++
		c[i] = idempotency.Claim{ID: idempotency.ID{Job: "keyed", Key: fmt.Sprintf("customer-%08d", n.keys), Due: n.due}, Hash: "h1", Exclusive: true}
	}
	return c
}

func (n *night) claimAndFinish() error {
	c := n.batch()
	won, err := n.Claim(context.Background(), n.session, int64(n.keys), c)
	if err != nil {
		return err
	}
	f := make([]idempotency.Finish, len(c))
	for i := range f {
		f[i] = idempotency.Finish{ID: c[i].ID, Fence: won[i].Fence, Outcome: idempotency.Done, Attempt: 1}
	}
	answers, err := n.Finish(context.Background(), "ns", f)
	if err == nil && answers[0] != idempotency.Finished {
		err = fmt.Errorf("answer %d, want finished", answers[0])
	}
	return err
}

// raw is claimAndFinish without a look at anything.
func (n *night) raw() error {
	c := n.batch()
	f := make([]idempotency.Finish, len(c))
	err := n.write(context.Background(), func(t *tx) error {
		x := changes{call: &call{tx: t, by: session{id: n.session.ID, space: 1, replica: []byte("replica-a")}}, nonce: int64(n.keys), rows: make(map[ref]*row), held: make(map[jobKey]ref)}
		for _, y := range c {
			x.run(nil, y, 0)
		}
		err := x.write()
		for i, y := range c {
			f[i] = idempotency.Finish{ID: y.ID, Fence: x.rows[refOf(y.ID)].Fence, Outcome: idempotency.Done, Attempt: 1}
		}
		return err
	})
	if err != nil {
		return err
	}
	return n.write(context.Background(), func(t *tx) error {
		return (&finishing{tx: t, space: 1, batch: f, answers: make([]idempotency.FinishAnswer, len(f))}).all()
	})
}
