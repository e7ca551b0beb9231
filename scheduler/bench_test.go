package scheduler_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/sqlite"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/scheduler"
)

// BenchmarkRuns is runs a second end to end, of one replica: one due with b.N keys, from its opening to the last
// record, with a handler that does nothing.
func BenchmarkRuns(b *testing.B) {
	b.Run("memory", func(b *testing.B) { benchRuns(b, idempotency.NewMemory(nil)) })
	b.Run("sqlite", func(b *testing.B) {
		store, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "bench.db"), nil)
		if err != nil {
			b.Fatal(err)
		}
		defer store.Close()
		benchRuns(b, store)
	})
}

func benchRuns(b *testing.B, store idempotency.Store) {
	timed := &timedStore{Store: store, b: b, ended: make(chan struct{})}
	timed.left.Store(int64(b.N))
	s, err := scheduler.New(scheduler.Config{Namespace: "bench", Store: timed, Concurrency: 1000, Drain: time.Second,
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	list := make([]string, b.N)
	for i := range list {
		list[i] = fmt.Sprintf("key-%08d", i)
	}
	keys := jobs.KeyList(list...)
	due := time.Now().Add(3 * time.Second).Truncate(time.Second) // 2 s at least: a due before the start would never run
	err = s.Add(jobs.Job{Name: "bench", Schedule: jobs.At(due), Keys: keys, Run: func(context.Context, jobs.Occurrence) error { return nil }})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	defer stop()
	stopped := make(chan error, 1)
	go func() { stopped <- s.Run(ctx) }()
	<-timed.ended
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
	stop()
	if err := <-stopped; err != nil {
		b.Fatal(err)
	}
}

// timedStore restarts the timer when a due is opened, and closes ended once as many runs as left are recorded. Hooks
// would not do: they may drop what they are told, and the benchmark would wait for it.
type timedStore struct {
	idempotency.Store
	b     *testing.B
	left  atomic.Int64
	ended chan struct{}
}

func (s *timedStore) Decide(ctx context.Context, session idempotency.Session, nonce int64, d []idempotency.Decision) ([]idempotency.Decided, error) {
	s.b.ResetTimer()
	return s.Store.Decide(ctx, session, nonce, d)
}

func (s *timedStore) Finish(ctx context.Context, namespace string, f []idempotency.Finish) ([]idempotency.FinishAnswer, error) {
	answers, err := s.Store.Finish(ctx, namespace, f)
	var n int64
	for _, a := range answers {
		if a == idempotency.Finished {
			n++
		}
	}
	if n > 0 && s.left.Add(-n) == 0 {
		close(s.ended)
	}
	return answers, err
}
