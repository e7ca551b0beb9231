package scheduler_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/scheduler"
)

func TestOneReplicaRunsEveryDueOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		ran := map[string]int{}
		store := idempotency.NewMemory(nil)
		s, err := scheduler.New(scheduler.Config{Namespace: "test", Store: store, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		var keys []string
		for i := range 100 {
			keys = append(keys, fmt.Sprintf("c-%03d", i))
		}
		count := func(ctx context.Context, o jobs.Occurrence) error {
			time.Sleep(20 * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			ran[o.ID()]++
			return nil
		}
		if err := s.Add(
			jobs.Job{Name: "single", Schedule: jobs.Every(10 * time.Second), Run: count},
			jobs.Job{Name: "keyed", Schedule: jobs.Every(30 * time.Second), Keys: jobs.KeyList(keys...), Run: count},
			jobs.Job{Name: "cheap", Schedule: jobs.Every(5 * time.Second), Guarantee: jobs.Efficiency, Run: count},
		); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 125*time.Second)
		defer cancel()
		if err := s.Run(ctx); err != nil {
			t.Fatal(err)
		}
		per := map[string]int{}
		for id, n := range ran {
			if n != 1 {
				t.Errorf("%s ran %d times", id, n)
			}
			for _, j := range []string{"single", "keyed", "cheap"} {
				if id[:len("test:")+len(j)] == "test:"+j {
					per[j]++
				}
			}
		}
		t.Log(per)
		if per["single"] != 12 || per["keyed"] != 400 || per["cheap"] != 25 {
			t.Errorf("ran %v", per)
		}
	})
}
