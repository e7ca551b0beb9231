package sqlite

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/storetest"
)

func BenchmarkStore(b *testing.B) {
	storetest.Bench(b, func(b *testing.B) storetest.Store { return openAt(b, file(b), nil, time.Now) })
}

func BenchmarkStoreAllowLossy(b *testing.B) {
	storetest.Bench(b, func(b *testing.B) storetest.Store {
		return openAt(b, file(b), &Options{AllowLossy: true}, time.Now)
	})
}

// BenchmarkNight claims and finishes batches of a thousand keys of one new due, through the store and as the bare
// statements for each row, in transactions of the same size on a connection of the same settings; in turns, so that both
// meet the same machine. It prints how much of the bare rate the store reaches.
func BenchmarkNight(b *testing.B) {
	ctx := context.Background()
	s := openAt(b, file(b), nil, time.Now)
	raw := openAt(b, file(b), nil, time.Now)
	ses, due := newNight(b, s)
	var store, bare time.Duration
	nonce := int64(1)
	for b.Loop() {
		nonce++
		claims := make([]idempotency.Claim, idempotency.MaxBatch)
		for i := range claims {
			key := fmt.Sprintf("customer-%08d", int(nonce)*len(claims)+i)
			claims[i] = idempotency.Claim{ID: idempotency.ID{Job: "renewals", Key: key, Due: due}, Hash: "h1", Exclusive: true}
		}
		began := time.Now()
		answers, err := s.Claim(ctx, ses, nonce, claims)
		if err != nil {
			b.Fatal(err)
		}
		f := make([]idempotency.Finish, len(claims))
		for i := range f {
			f[i] = idempotency.Finish{ID: claims[i].ID, Fence: answers[i].Fence, Outcome: idempotency.Done, Attempt: 1}
		}
		ends, err := s.Finish(ctx, "ns", f)
		store += time.Since(began)
		if err != nil || slices.ContainsFunc(ends, func(a idempotency.FinishAnswer) bool { return a != idempotency.Finished }) {
			b.Fatal(ends, err)
		}
		began = time.Now()
		rawNight(b, raw, f)
		bare += time.Since(began)
	}
	runs := float64((nonce - 1) * idempotency.MaxBatch)
	b.ReportMetric(runs/store.Seconds(), "store-runs/s")
	b.ReportMetric(runs/bare.Seconds(), "raw-runs/s")
	b.ReportMetric(100*bare.Seconds()/store.Seconds(), "%-of-raw")
}

// newNight opens a due of the job with keys.
func newNight(b *testing.B, s *Store) (idempotency.Session, time.Time) {
	ctx := context.Background()
	ses, r, err := s.OpenSession(ctx, idempotency.Opening{
		Namespace: "ns", Replica: "a", Boot: "a", Partitions: 4096, Lease: 24 * time.Hour, Horizon: time.Hour, Retention: 2 * time.Hour,
	})
	if err != nil {
		b.Fatal(err)
	}
	due := r.Now.Truncate(time.Second)
	def := idempotency.Definition{Job: "renewals", Hash: "h1"}
	entries, err := s.Declare(ctx, ses, 0, []idempotency.Declaration{{Definition: def, Opened: due.Add(-time.Hour)}})
	if err != nil {
		b.Fatal(err)
	}
	d, err := s.Decide(ctx, ses, 1, []idempotency.Decision{{Seen: entries[0], Definition: def, Opened: due, Keyed: true, Run: []time.Time{due}}})
	if err != nil || !d[0].Won {
		b.Fatalf("opening the due: %+v %v", d, err)
	}
	return ses, due
}

// rawNight writes what a claim and a finish of the same rows write, and looks at nothing.
func rawNight(b *testing.B, s *Store, f []idempotency.Finish) {
	now := time.Now()
	for _, each := range []func(t *tx, i int) (int64, error){
		func(t *tx, i int) (int64, error) {
			return t.exec(insertRunning, 1, f[i].ID.Due.Unix(), f[i].ID.Job, []byte(f[i].ID.Key), []byte{}, f[i].Fence, 0, 1, 1, 1, micro(now))
		},
		func(t *tx, i int) (int64, error) {
			return t.exec(updateFinished, append(finishArgs(f[i], now), 1, f[i].ID.Due.Unix(), f[i].ID.Job, []byte(f[i].ID.Key), []byte{}, f[i].Fence)...)
		},
	} {
		err := s.write(context.Background(), false, func(t *tx) error {
			for i := range f {
				if n, err := each(t, i); err != nil || n != 1 {
					return fmt.Errorf("%d rows: %w", n, err)
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}
