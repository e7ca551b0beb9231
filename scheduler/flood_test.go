package scheduler_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/scheduler"
)

// began are when the handlers of jobs began, by job.
type began struct {
	mu sync.Mutex
	at map[string][]begun
}

type begun struct {
	jobs.Occurrence
	at      time.Time
	replica string
}

func (s *began) of(job string) []begun {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at[job]
}

// replicas runs so many schedulers of one configuration until the bubble's clock has moved on by d.
func (s *began) replicas(t *testing.T, d time.Duration, c scheduler.Config, list []jobs.Job, names ...string) {
	t.Helper()
	s.at = map[string][]begun{}
	c.Namespace, c.Logger = "test", slog.New(slog.DiscardHandler)
	g := newGossip()
	var wg sync.WaitGroup
	ctx, stop := context.WithTimeout(t.Context(), d)
	defer stop()
	for _, name := range names {
		c.Members = seat{g, name}
		c.Middleware = []scheduler.Middleware{func(next jobs.Handler) jobs.Handler {
			return func(ctx context.Context, o jobs.Occurrence) error {
				s.mu.Lock()
				s.at[o.Job] = append(s.at[o.Job], begun{o, time.Now(), name})
				s.mu.Unlock()
				return next(ctx, o)
			}
		}}
		r, err := scheduler.New(c)
		if err == nil {
			err = r.Add(list...)
		}
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() { _ = r.Run(ctx) })
	}
	wg.Wait()
}

// One job floods its replica with 100,000 keys, one has handlers that hang: with and without keys, of both guarantees. The dues of other
// jobs begin within a second and a half, and the flood goes on.
func TestFloodAndHangHoldNobodyUp(t *testing.T) {
	for _, g := range []jobs.Guarantee{jobs.Correctness, jobs.Efficiency} {
		t.Run(fmt.Sprint("guarantee=", g), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				work := func(d time.Duration) jobs.Handler {
					return func(ctx context.Context, _ jobs.Occurrence) error {
						select {
						case <-time.After(d):
						case <-ctx.Done():
						}
						return ctx.Err()
					}
				}
				hang, flood := work(time.Hour), work(50*time.Millisecond)
				once := jobs.At(begin.Add(30 * time.Second))
				minute := jobs.Every(time.Minute).Phase(45 * time.Second)
				list := []jobs.Job{
					{Name: "hang", Schedule: once, Keys: keys(40), Run: hang, Guarantee: g},
					{Name: "hang-plain", Schedule: once, Run: hang, Guarantee: g},
					{Name: "flood", Schedule: jobs.At(begin.Add(40 * time.Second)), Keys: keys(100_000), Run: flood, Guarantee: g},
				}
				others := []string{}
				for i, k := range []jobs.KeySource{nil, keys(5)} {
					for _, own := range []jobs.Guarantee{jobs.Correctness, jobs.Efficiency} {
						name := fmt.Sprint("other-", i, "-", own)
						others = append(others, name)
						list = append(list, jobs.Job{Name: name, Schedule: minute, Keys: k, Run: quick, Guarantee: own})
					}
				}
				var s began
				s.replicas(t, 5*time.Minute, scheduler.Config{Store: idempotency.NewMemory(nil), Concurrency: 16, Drain: time.Second}, list, "a")
				for i, name := range others {
					runs := s.of(name)
					if want := 5 * []int{1, 1, 5, 5}[i]; len(runs) != want {
						t.Errorf("job %s began %d times, want %d", name, len(runs), want)
					}
					for _, r := range runs {
						if late := r.at.Sub(r.Due); late > 1500*time.Millisecond {
							t.Errorf("job %s, due at %v, began %v late", name, r.Due, late)
						}
					}
				}
				if n := len(s.of("hang")); n != 14 {
					t.Errorf("%d handlers hang, want 14 of 16", n)
				}
				if n := len(s.of("flood")); g == jobs.Correctness && n < 2000 {
					t.Errorf("the flood began %d runs in 4 minutes with a worker or so that takes 50 ms, want 2,000", n)
				}
			})
		})
	}
}

// slowStore takes long for each call that changes runs, and bounds and counts the calls under way.
type slowStore struct {
	*idempotency.Memory
	takes time.Duration
	slots chan struct{} // nil: no bound

	now, most atomic.Int32
}

func (s *slowStore) wait() (done func()) {
	if s.slots != nil {
		s.slots <- struct{}{}
	}
	n := s.now.Add(1)
	for m := s.most.Load(); n > m && !s.most.CompareAndSwap(m, n); m = s.most.Load() {
	}
	time.Sleep(s.takes)
	return func() {
		s.now.Add(-1)
		if s.slots != nil {
			<-s.slots
		}
	}
}

func (s *slowStore) Decide(ctx context.Context, ses idempotency.Session, nonce int64, d []idempotency.Decision) ([]idempotency.Decided, error) {
	defer s.wait()()
	return s.Memory.Decide(ctx, ses, nonce, d)
}

func (s *slowStore) Claim(ctx context.Context, ses idempotency.Session, nonce int64, c []idempotency.Claim) ([]idempotency.Answer, error) {
	defer s.wait()()
	return s.Memory.Claim(ctx, ses, nonce, c)
}

func (s *slowStore) Finish(ctx context.Context, namespace string, f []idempotency.Finish) ([]idempotency.FinishAnswer, error) {
	defer s.wait()()
	return s.Memory.Finish(ctx, namespace, f)
}

func (s *slowStore) Lagging(ctx context.Context, ses idempotency.Session, q idempotency.LagQuery) (idempotency.Lag, error) {
	defer s.wait()()
	return s.Memory.Lagging(ctx, ses, q)
}

// once demands that each job began once, no earlier than its due and no later than most after it.
func (s *began) once(t *testing.T, list []jobs.Job, due time.Time, most time.Duration) {
	t.Helper()
	bad := 0
	for _, j := range list {
		runs := s.of(j.Name)
		if len(runs) == 1 && !runs[0].at.Before(due) && runs[0].at.Sub(due) <= most {
			continue
		}
		if bad++; bad < 5 {
			t.Errorf("job %s began %d times: %v; want once, within %v", j.Name, len(runs), runs, most)
		}
	}
}

// ST-09: each call of the store takes 3 s as 200 jobs are due at once. All of them begin well within the minute.
func TestSlowStoreAtMidnight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		due := time.Now().Add(24 * time.Hour)
		var list []jobs.Job
		for i := range 200 {
			list = append(list, jobs.Job{Name: fmt.Sprint("nightly-", i), Schedule: jobs.At(due), Run: quick})
		}
		time.Sleep(24*time.Hour - time.Minute)
		var s began
		s.replicas(t, 2*time.Minute, scheduler.Config{Store: &slowStore{Memory: idempotency.NewMemory(nil), takes: 3 * time.Second},
			Concurrency: 32, Lease: 20 * time.Second}, list, "a", "b", "c")
		s.once(t, list, due, 30*time.Second)
	})
}

// SC-01: 10,000 daily jobs are due at once on three replicas, and the store has 20 connections. All run once; their starts are
// spread, each at the same offset every night; and the calls of the store stay few.
func TestTenThousandJobsAtMidnight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		due := time.Now().Add(time.Minute)
		var list []jobs.Job
		for i := range 10_000 {
			list = append(list, jobs.Job{Name: fmt.Sprint("daily-", i), Schedule: jobs.At(due, due.Add(2*time.Minute)), Run: quick, Spread: time.Minute})
		}
		store := &slowStore{Memory: idempotency.NewMemory(nil), takes: 5 * time.Millisecond, slots: make(chan struct{}, 20)}
		var s began
		s.replicas(t, 150*time.Second, scheduler.Config{Store: store, Concurrency: 32, Lease: 30 * time.Second, Sweep: 15 * time.Second}, list, "a", "b", "c")
		s.once(t, list, due, 62*time.Second)
		perSecond := map[int64]int{}
		for _, j := range list {
			for _, r := range s.of(j.Name) {
				perSecond[r.at.Unix()]++
			}
		}
		for second, n := range perSecond {
			if n > 500 {
				t.Errorf("%d begin in second %d, want some 10,000 / 60", n, second)
			}
		}
		if n := store.most.Load(); n > 3*4 {
			t.Errorf("%d calls of the store were under way at once, want a call of a kind for each replica at most", n)
		}
	})
}

// DP-03: one replica of three has the job, whoever owns it. It runs there, once, a grace for each of the others late at most.
func TestNewJobOldOwner(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		names := []string{"a", "b", "c"}
		for _, knower := range names {
			f := newFleet(t)
			due := time.Now().Add(10 * time.Second)
			at := map[string]time.Duration{}
			var all []*replica
			for _, name := range names {
				var list []jobs.Job
				if name == knower {
					for i := range 12 {
						j := jobs.Job{Name: fmt.Sprint("new-", i), Schedule: jobs.At(due)}
						j.Run = func(_ context.Context, o jobs.Occurrence) error {
							f.mu.Lock()
							defer f.mu.Unlock()
							at[o.Job] = time.Since(due)
							return nil
						}
						list = append(list, j)
					}
				}
				all = append(all, f.start(name, list...))
			}
			time.Sleep(15 * time.Second)
			f.end(all...)
			if once, more := f.count(); once != 12 || more != 0 {
				t.Errorf("only %s has the jobs: %d of 12 ran once, %d more often", knower, once, more)
			}
			for job, late := range at {
				if late > 2500*time.Millisecond {
					t.Errorf("only %s has job %s: it began %v late", knower, job, late)
				}
			}
		}
	})
}
