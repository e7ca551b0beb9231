package membership

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/scheduler"
)

// TestSchedulersInSplit: F12, F18 with the store in reach. Each side thinks that it owns everything, and says so to the
// store, which lets one win. Nothing is lost or done twice, and afterwards all have one ring again.
func TestSchedulersInSplit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		groups [][]int
		held   time.Duration
	}{
		{"2|1 for 60 s", [][]int{{0, 1}, {2}}, time.Minute},
		{"1|1|1 for 120 s", [][]int{{0}, {1}, {2}}, 2 * time.Minute},
		{"2|2 for 60 s", [][]int{{0, 1}, {2, 3}}, time.Minute},
		{"1|3 for 60 s", [][]int{{0}, {1, 2, 3}}, time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, 2, func(f *fleet) { f.schedule(c.groups, c.held) })
		})
	}
}

// shift is what the schedulers of one bubble did.
type shift struct {
	store *idempotency.Memory
	wg    sync.WaitGroup

	mu      sync.Mutex
	ran     map[string]int // by occurrence
	refused int
}

func (f *fleet) schedule(groups [][]int, held time.Duration) {
	s := &shift{store: idempotency.NewMemory(nil), ran: map[string]int{}}
	ctx, stop := context.WithCancel(context.Background())
	defer s.wg.Wait() // also after a Fatal: the schedulers end before the members
	defer stop()
	n := 0
	for _, g := range groups {
		n += len(g)
	}
	var seeds []string
	for i := range n {
		m := f.join(Config{Name: letter(i), Seeds: seeds})
		seeds = append(seeds, m.Addr())
		f.run(ctx, m, s)
	}
	f.agree(formed, f.all, names(n))
	begun := time.Now()
	rest(10 * time.Second)

	var cut [][]string
	for _, g := range groups {
		cut = append(cut, addrs(pickOf(f.all, g)))
	}
	f.net.Split(cut...)
	for _, g := range groups {
		f.agree(time.Minute, pickOf(f.all, g), letters(g))
	}
	rest(held)
	f.net.Heal()
	f.agree(merged, f.all, names(n))
	rest(10 * time.Second)
	ended := time.Now()
	rest(5 * time.Second) // for what is under way
	stop()
	s.wg.Wait()
	f.judge(s, begun, ended)
}

// rest lets time pass, and what it set off at that instant happen.
func rest(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// run runs a scheduler on a member until ctx ends.
func (f *fleet) run(ctx context.Context, m *Cluster, s *shift) {
	f.Helper()
	sched, err := scheduler.New(scheduler.Config{
		Namespace: "test", Members: m, Store: s.store, Concurrency: 8, Lease: 2 * time.Second, Sweep: 200 * time.Millisecond, Logger: quietLog(),
		Hooks: []scheduler.Hooks{{Refused: func(context.Context, scheduler.Refused) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.refused++
		}}},
	})
	if err != nil {
		f.Fatal(err)
	}
	work := func(_ context.Context, o jobs.Occurrence) error {
		s.mu.Lock()
		s.ran[o.ID()]++
		s.mu.Unlock()
		time.Sleep(20 * time.Millisecond)
		return nil
	}
	var keys []string
	for i := range splitKeys {
		keys = append(keys, splitKey(i))
	}
	if err := sched.Add(
		jobs.Job{Name: "plain", Schedule: jobs.Every(time.Second), Run: work},
		jobs.Job{Name: "keyed", Schedule: jobs.Every(5 * time.Second), Keys: jobs.KeyList(keys...), Run: work},
	); err != nil {
		f.Fatal(err)
	}
	s.wg.Go(func() {
		if err := sched.Run(ctx); err != nil {
			f.Error(err)
		}
	})
}

const splitKeys = 24

func splitKey(i int) string { return fmt.Sprintf("k%02d", i) }

// judge expands the dues of (begun, ended], and demands that each ran once, and is done.
func (f *fleet) judge(s *shift, begun, ended time.Time) {
	f.Helper()
	done := map[string]bool{}
	for r, err := range s.store.List(context.Background(), idempotency.Filter{Namespace: "test"}) {
		if err != nil {
			f.Fatal(err)
		}
		id := jobs.Occurrence{Namespace: "test", Job: r.ID.Job, Key: r.ID.Key, Due: r.ID.Due}.ID()
		done[id] = r.State == idempotency.Ended && r.Outcome == idempotency.Done
	}
	wanted := 0
	want := func(job, key string, due time.Time) {
		id := fmt.Sprintf("test:%s/%s@%s", job, key, due.UTC().Format(time.RFC3339))
		if wanted++; !done[id] || s.ran[id] != 1 {
			f.Errorf("seed %d: %s ran %d times (done: %t)", f.seed, id, s.ran[id], done[id])
		}
	}
	for t := begun.Unix() + 1; t <= ended.Unix(); t++ {
		due := time.Unix(t, 0)
		want("plain", "plain", due)
		for i := range splitKeys {
			if t%5 == 0 {
				want("keyed", splitKey(i), due)
			}
		}
	}
	for id, n := range s.ran {
		if n != 1 {
			f.Errorf("seed %d: %s ran %d times", f.seed, id, n)
		}
	}
	if s.refused == 0 {
		f.Errorf("seed %d: the sides never met in the store: nothing was cut", f.seed)
	}
	f.Logf("seed %d: %d dues ran once each, %d claims were refused", f.seed, wanted, s.refused)
}
