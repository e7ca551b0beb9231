package membership

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/internal/storecut"
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

// TestSchedulersInCrookedCuts: F15 with the store in reach. Whoever thinks that it owns what, nothing is lost or done
// twice.
func TestSchedulersInCrookedCuts(t *testing.T) {
	t.Parallel()
	for _, c := range crookedCuts {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, seedsOr(t, 1), func(f *fleet) {
				f.work(3, func(*shift) {
					c.cut(f, f.all)
					rest(time.Minute)
					f.net.Heal()
					f.agree(merged, f.all, names(3))
				})
			})
		})
	}
}

// TestSchedulersInChurn runs a scheduler on each while 27 join 3 and leave again (F23): nothing is lost or done twice.
func TestSchedulersInChurn(t *testing.T) {
	t.Parallel()
	bubble(t, seedsOr(t, 1), func(f *fleet) {
		s := newShift()
		s.ring = &ring.Options{Partitions: 256, VirtualNodes: 20} // quick to build: 30 replicas build 54 rings each
		defer s.wg.Wait()                                         // also after a Fatal: the schedulers end before the members
		all, stopAll := context.WithCancel(context.Background())
		defer stopAll()
		type at struct {
			stop  context.CancelFunc
			ended <-chan struct{}
		}
		var posts []at
		add := func(i int) {
			ctx, stop := context.WithCancel(all)
			m := f.join(Config{Name: letter(i), Seeds: addrs(f.all[:min(1, len(f.all))])})
			posts = append(posts, at{stop, f.run(ctx, m, s)})
		}
		for i := range few {
			add(i)
		}
		f.agree(formed, f.all, names(few))
		begun := time.Now()
		eachSecond(upTo(few, many), add)
		_, up := f.agreeRing(settled, f.all, names(many))
		which := upTo(few, many)
		slices.Reverse(which)
		eachSecond(which, func(i int) {
			posts[i].stop()
			<-posts[i].ended
			f.leave(f.all[i])
		})
		_, down := f.agreeRing(settled, f.all, names(few))
		rest(5 * time.Second)
		ended := time.Now()
		rest(5 * time.Second) // for what is under way
		stopAll()
		s.wg.Wait()
		f.Logf("seed %d: one ring of %d after %s, of %d after %s", f.seed, many, up, few, down)
		f.judge(s, begun, ended)
	})
}

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

// shift is some schedulers of one bubble, and what they did.
type shift struct {
	store  *idempotency.Memory
	ring   *ring.Options              // nil: the default layout
	stores map[string]*storecut.Store // each replica's own way to the store
	crew   map[string]*scheduler.Scheduler
	wg     sync.WaitGroup

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
	return &shift{store: idempotency.NewMemory(nil), stores: map[string]*storecut.Store{}, crew: map[string]*scheduler.Scheduler{}, ran: map[string]int{}}
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
	s.stores[m.Self()] = storecut.New(s.store, func() time.Duration { return time.Millisecond + rand.N(4*time.Millisecond) })
	sched, err := scheduler.New(scheduler.Config{
		Namespace: "test", Members: m, Store: s.stores[m.Self()], Ring: s.ring, Concurrency: 8, Lease: 2 * time.Second, Sweep: 200 * time.Millisecond, Logger: quietLog(),
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
