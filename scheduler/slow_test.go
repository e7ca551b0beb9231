package scheduler_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/scheduler"
)

// crawlingStore answers each call after half a second, and one in fifty after five. Half of those that a caller gives up have
// happened all the same.
type crawlingStore struct {
	*idempotency.Memory
	mu   sync.Mutex
	rand *rand.Rand

	opened, now, most atomic.Int32
}

func crawl[T any](ctx context.Context, s *crawlingStore, call func(context.Context) (T, error)) (T, error) {
	for n, m := s.now.Add(1), s.most.Load(); n > m && !s.most.CompareAndSwap(m, n); m = s.most.Load() {
	}
	defer s.now.Add(-1)
	s.mu.Lock()
	takes, happens := 450*time.Millisecond+time.Duration(s.rand.Int64N(int64(100*time.Millisecond))), s.rand.IntN(2) == 0
	if s.rand.IntN(50) == 0 {
		takes = 5 * time.Second
	}
	s.mu.Unlock()
	select {
	case <-time.After(takes):
		return call(ctx)
	case <-ctx.Done():
		if happens {
			_, _ = call(context.WithoutCancel(ctx)) // nobody hears of it
		}
		var none T
		return none, ctx.Err()
	}
}

func (s *crawlingStore) OpenSession(ctx context.Context, o idempotency.Opening) (idempotency.Session, idempotency.Renewal, error) {
	var told idempotency.Renewal
	ses, err := crawl(ctx, s, func(ctx context.Context) (ses idempotency.Session, err error) {
		s.opened.Add(1)
		ses, told, err = s.Memory.OpenSession(ctx, o)
		return ses, err
	})
	return ses, told, err
}

func (s *crawlingStore) RenewSession(ctx context.Context, ses idempotency.Session) (idempotency.Renewal, error) {
	return crawl(ctx, s, func(ctx context.Context) (idempotency.Renewal, error) { return s.Memory.RenewSession(ctx, ses) })
}

func (s *crawlingStore) Declare(ctx context.Context, ses idempotency.Session, nonce int64, d []idempotency.Declaration) ([]idempotency.Entry, error) {
	return crawl(ctx, s, func(ctx context.Context) ([]idempotency.Entry, error) { return s.Memory.Declare(ctx, ses, nonce, d) })
}

func (s *crawlingStore) Decide(ctx context.Context, ses idempotency.Session, nonce int64, d []idempotency.Decision) ([]idempotency.Decided, error) {
	return crawl(ctx, s, func(ctx context.Context) ([]idempotency.Decided, error) { return s.Memory.Decide(ctx, ses, nonce, d) })
}

func (s *crawlingStore) Claim(ctx context.Context, ses idempotency.Session, nonce int64, c []idempotency.Claim) ([]idempotency.Answer, error) {
	return crawl(ctx, s, func(ctx context.Context) ([]idempotency.Answer, error) { return s.Memory.Claim(ctx, ses, nonce, c) })
}

func (s *crawlingStore) Finish(ctx context.Context, namespace string, f []idempotency.Finish) ([]idempotency.FinishAnswer, error) {
	return crawl(ctx, s, func(ctx context.Context) ([]idempotency.FinishAnswer, error) {
		return s.Memory.Finish(ctx, namespace, f)
	})
}

func (s *crawlingStore) Lagging(ctx context.Context, ses idempotency.Session, q idempotency.LagQuery) (idempotency.Lag, error) {
	return crawl(ctx, s, func(ctx context.Context) (idempotency.Lag, error) { return s.Memory.Lagging(ctx, ses, q) })
}

// F36: for a quarter of an hour each call takes 0.5 s in the median and 5 s at the 99th percentile, which is more than a call may
// take. No replica's lease lapses for that; calls do not pile up; and all that is due is done, once.
func TestCrawlingStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const minutes, plain, keyed = 15, 20, 100
		begin := time.Now().Truncate(time.Minute).Add(time.Minute)
		schedule := jobs.Every(time.Minute).From(begin).Until(begin.Add(minutes * time.Minute))
		list := []jobs.Job{{Name: "keyed", Schedule: schedule, Keys: keys(keyed), Run: quick}}
		for i := range plain {
			list = append(list, jobs.Job{Name: fmt.Sprint("plain-", i), Schedule: schedule, Run: quick})
		}
		store := &crawlingStore{Memory: idempotency.NewMemory(nil), rand: rand.New(rand.NewPCG(36, 36))}
		var s began
		s.replicas(t, (minutes+3)*time.Minute, scheduler.Config{Store: store, Concurrency: 32}, list, "a", "b", "c")

		done, worst := 0, time.Duration(0)
		for run, err := range store.List(t.Context(), idempotency.Filter{Namespace: "test"}) {
			if err != nil || run.State != idempotency.Ended || run.Outcome != idempotency.Done || run.Attempt != 1 {
				t.Fatalf("%+v, %v; want it done at the first attempt", run, err)
			}
			done++
		}
		if want := minutes * (plain + keyed); done != want {
			t.Errorf("%d done, want %d", done, want)
		}
		began := 0
		for _, j := range list {
			for _, b := range s.of(j.Name) {
				began, worst = began+1, max(worst, b.at.Sub(b.Due))
			}
		}
		if began != done {
			t.Errorf("%d handlers began for %d runs: a run was taken from who held it", began, done)
		}
		if n := store.opened.Load(); n > 3+2 {
			t.Errorf("%d sessions were opened by three replicas: leases lapse", n)
		}
		if n := store.most.Load(); n > 3*8 {
			t.Errorf("%d calls were under way at once: they pile up", n)
		}
		t.Logf("F36: %d done of %d, the latest begun %v late; %d sessions opened, %d calls at once at most", done, minutes*(plain+keyed), worst.Round(time.Millisecond), store.opened.Load(), store.most.Load())
	})
}
