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
	var ended atomic.Int64
	done := make(chan struct{})
	s, err := scheduler.New(scheduler.Config{Namespace: "bench", Store: store, Concurrency: 1000, Drain: time.Second,
		Logger: slog.New(slog.DiscardHandler),
		Hooks: []scheduler.Hooks{{
			Decided: func(context.Context, scheduler.Decided) { b.ResetTimer() },
			Called: func(_ context.Context, c scheduler.Call) {
				if c.Name == "CloseDue" && c.Err == nil && ended.Load() == int64(b.N) {
					select {
					case done <- struct{}{}:
					default:
					}
				}
			},
		}}})
	if err != nil {
		b.Fatal(err)
	}
	due := time.Now().Add(2 * time.Second).Truncate(time.Second)
	list := make([]string, b.N)
	for i := range list {
		list[i] = fmt.Sprintf("key-%08d", i)
	}
	err = s.Add(jobs.Job{Name: "bench", Schedule: jobs.At(due), Keys: jobs.KeyList(list...), Run: func(context.Context, jobs.Occurrence) error {
		ended.Add(1)
		return nil
	}})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	defer stop()
	stopped := make(chan error, 1)
	go func() { stopped <- s.Run(ctx) }()
	<-done
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
	stop()
	if err := <-stopped; err != nil {
		b.Fatal(err)
	}
}
