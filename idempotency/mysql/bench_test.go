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
	through := newWorker(b, openOn(b, client(b, d, ""), &Options{Prefix: "store_"}))
	raw := newWorker(b, openOn(b, client(b, d, ""), &Options{Prefix: "raw_"}))
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

func (w *worker) claimAndFinish() error {
	c := w.batch(idempotency.MaxBatch)
	won, err := w.claim(context.Background(), c...)
	if err != nil {
		return err
	}
	f := make([]idempotency.Finish, len(c))
	for i := range f {
		f[i] = idempotency.Finish{ID: c[i].ID, Fence: won[i].Fence, Outcome: idempotency.Done, Attempt: 1}
	}
	answers, err := w.Finish(context.Background(), "ns", f)
	if err == nil && answers[0] != idempotency.Finished {
		err = fmt.Errorf("answer %d, want finished", answers[0])
	}
	return err
}

// raw is claimAndFinish without a look at anything.
func (w *worker) raw() error {
	c := w.batch(idempotency.MaxBatch)
	f := make([]idempotency.Finish, len(c))
	err := w.write(context.Background(), func(t *tx) error {
		x := changes{call: &call{tx: t, by: session{id: w.session.ID, space: 1, replica: []byte("replica-a")}}, nonce: int64(w.keys), rows: make(map[ref]*row), held: make(map[jobKey]ref)}
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
	return w.write(context.Background(), func(t *tx) error {
		return (&finishing{tx: t, space: 1, batch: f, answers: make([]idempotency.FinishAnswer, len(f))}).all()
	})
}
