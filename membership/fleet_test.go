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
	"github.com/belfry-go/belfry/ring"
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

// shift is some schedulers of one bubble, and what they did.
type shift struct {
	store *idempotency.Memory
	ring  *ring.Options    // nil: the default layout
	doors map[string]*door // each replica's own way to the store
	crew  map[string]*scheduler.Scheduler
	wg    sync.WaitGroup

	mu      sync.Mutex
	ran     map[string]int // by occurrence
	calls   []call
	refused int
}

// call is one call of a handler.
type call struct {
	replica string
	due, at time.Time
}

func newShift() *shift {
	return &shift{store: idempotency.NewMemory(nil), doors: map[string]*door{}, crew: map[string]*scheduler.Scheduler{}, ran: map[string]int{}}
}

func (f *fleet) schedule(groups [][]int, held time.Duration) {
	n := 0
	for _, g := range groups {
		n += len(g)
	}
	s := f.work(n, func(*shift) {
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
	})
	if s.refused == 0 {
		f.Errorf("seed %d: the sides never met in the store: nothing was cut", f.seed)
	}
}

// work runs n schedulers for 10 s, through trouble, and for 10 s more, and judges what they did. They have more jobs
// than the judged ones if told.
func (f *fleet) work(n int, trouble func(*shift), more ...jobs.Job) *shift {
	s := newShift()
	ctx, stop := context.WithCancel(context.Background())
	defer s.wg.Wait() // also after a Fatal: the schedulers end before the members
	defer stop()
	var seeds []string
	for i := range n {
		m := f.join(Config{Name: letter(i), Seeds: seeds})
		seeds = append(seeds, m.Addr())
		f.run(ctx, m, s, more...)
	}
	f.agree(formed, f.all, names(n))
	begun := time.Now()
	rest(10 * time.Second)
	trouble(s)
	rest(10 * time.Second)
	ended := time.Now()
	rest(5 * time.Second) // for what is under way
	stop()
	s.wg.Wait()
	f.judge(s, begun, ended)
	return s
}

// rest lets time pass, and what it set off at that instant happen.
func rest(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// run runs a scheduler on a member until ctx ends, and closes ended when it has returned.
func (f *fleet) run(ctx context.Context, m *Cluster, s *shift, more ...jobs.Job) (ended <-chan struct{}) {
	f.Helper()
	s.doors[m.Self()] = &door{Store: s.store}
	sched, err := scheduler.New(scheduler.Config{
		Namespace: "test", Members: m, Store: s.doors[m.Self()], Ring: s.ring, Concurrency: 8, Lease: 2 * time.Second, Sweep: 200 * time.Millisecond, Logger: quietLog(),
		Hooks: []scheduler.Hooks{{Refused: func(context.Context, scheduler.Refused) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.refused++
		}}},
	})
	if err != nil {
		f.Fatal(err)
	}
	s.crew[m.Self()] = sched
	work := func(_ context.Context, o jobs.Occurrence) error {
		s.mu.Lock()
		s.ran[o.ID()]++
		s.calls = append(s.calls, call{m.Self(), o.Due, time.Now()})
		s.mu.Unlock()
		time.Sleep(20 * time.Millisecond)
		return nil
	}
	var keys []string
	for i := range splitKeys {
		keys = append(keys, splitKey(i))
	}
	if err := sched.Add(append(more,
		jobs.Job{Name: "plain", Schedule: jobs.Every(time.Second), Run: work},
		jobs.Job{Name: "keyed", Schedule: jobs.Every(5 * time.Second), Keys: jobs.KeyList(keys...), Run: work},
	)...); err != nil {
		f.Fatal(err)
	}
	done := make(chan struct{})
	s.wg.Go(func() {
		defer close(done)
		if err := sched.Run(ctx); err != nil {
			f.Error(err)
		}
	})
	return done
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
	f.Logf("seed %d: %d dues ran once each, %d claims were refused", f.seed, wanted, s.refused)
}
