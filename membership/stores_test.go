package membership

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/scheduler"
)

// TestSchedulersOfTwoStores gives one replica of three a store of its own, as a wrong address does (F38): it owns nothing,
// runs nothing, is not ready and says why, and all others see that. The two go on.
func TestSchedulersOfTwoStores(t *testing.T) {
	t.Parallel()
	bubble(t, 2, func(f *fleet) {
		var mu sync.Mutex
		ran := map[string]int{}
		ctx, stop := context.WithCancel(f.Context())
		var all sync.WaitGroup
		defer all.Wait()
		defer stop()
		ours, wrong := idempotency.NewMemory(nil), idempotency.NewMemory(nil)
		var scheds []*scheduler.Scheduler
		for i, store := range []idempotency.Store{ours, ours, wrong} {
			m := f.join(Config{Name: letter(i), Seeds: addrs(f.all)})
			s, err := scheduler.New(scheduler.Config{Namespace: "test", Members: m, Store: store, Logger: quietLog()})
			if err != nil {
				f.Fatal(err)
			}
			if err := s.Add(jobs.Job{Name: "job", Schedule: jobs.Every(time.Second), Keys: jobs.KeyList("a", "b", "c", "d"),
				Run: func(context.Context, jobs.Occurrence) error {
					mu.Lock()
					defer mu.Unlock()
					ran[m.Self()]++
					return nil
				}}); err != nil {
				f.Fatal(err)
			}
			scheds = append(scheds, s)
			all.Go(func() {
				if err := s.Run(ctx); err != nil {
					f.Error(err)
				}
			})
			rest(5 * time.Second)
		}
		f.agree(time.Second, f.all, names(2))
		for _, c := range f.all {
			if m := find(c.Members(), f.all[2].Boot()); m.State != Unfit || !strings.Contains(m.Reason, "its store") {
				f.Errorf("seed %d: %s sees %v", f.seed, c.Self(), m)
			}
		}
		if err := scheds[2].Ready(); err == nil || !strings.Contains(err.Error(), "which 2 of 3 members use") {
			f.Errorf("seed %d: the odd one is ready: %v", f.seed, err)
		}
		for _, s := range scheds[:2] {
			if err := s.Ready(); err != nil {
				f.Errorf("seed %d: %v", f.seed, err)
			}
		}
		mu.Lock()
		clear(ran)
		mu.Unlock()
		rest(10 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		if ran[letter(2)] > 0 || ran[letter(0)]+ran[letter(1)] < 36 {
			f.Errorf("seed %d: in 10 s they ran %v", f.seed, ran)
		}
	})
}
