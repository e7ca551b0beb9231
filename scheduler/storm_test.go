package scheduler_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/sqlite"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/scheduler"
)

var (
	stormSeed  = flag.Uint64("storm.seed", 0, "first seed of TestStorm; 0: a random one")
	stormCount = flag.Uint64("storm.count", 1, "how many seeds TestStorm tries")
)

var errStorm = errors.New("storm: no answer")

// storm is a way to a store on which three calls of ten come to grief: their request is lost, or their answer, or the
// caller gives up and the request arrives all the same, later, or the answer is old when it comes. It calms down when told.
type storm struct {
	idempotency.Store

	mu     sync.Mutex
	rand   *rand.Rand
	calm   bool
	struck int
	late   sync.WaitGroup // requests that arrive after their callers gave up
}

// fate is what becomes of one call.
type fate int

const (
	passes fate = iota
	requestLost
	answerLost
	arrivesLate
	answerSlow
)

func (s *storm) draw() (fate, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calm || s.rand.Float64() >= 0.3 {
		return passes, 0
	}
	s.struck++
	return fate(1 + s.rand.IntN(4)), time.Duration(s.rand.Int64N(int64(3 * time.Second)))
}

func (s *storm) soothe() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calm = true
}

// through makes one call of the store, as fate has it.
func through[T any](ctx context.Context, s *storm, call func(context.Context) (T, error)) (T, error) {
	var none T
	switch f, after := s.draw(); f {
	case requestLost:
		return none, errStorm
	case answerLost:
		_, err := call(ctx)
		return none, errors.Join(errStorm, err)
	case arrivesLate:
		s.late.Go(func() {
			time.Sleep(after) // the request is under way
			_, _ = call(context.WithoutCancel(ctx))
		})
		return none, errStorm
	case answerSlow:
		answer, err := call(ctx)
		select {
		case <-time.After(after):
			return answer, err
		case <-ctx.Done():
			return none, ctx.Err()
		}
	}
	return call(ctx)
}

type opened struct {
	session idempotency.Session
	renewal idempotency.Renewal
}

func (s *storm) OpenSession(ctx context.Context, o idempotency.Opening) (idempotency.Session, idempotency.Renewal, error) {
	a, err := through(ctx, s, func(ctx context.Context) (opened, error) {
		id, r, err := s.Store.OpenSession(ctx, o)
		return opened{id, r}, err
	})
	return a.session, a.renewal, err
}

func (s *storm) RenewSession(ctx context.Context, id idempotency.Session) (idempotency.Renewal, error) {
	return through(ctx, s, func(ctx context.Context) (idempotency.Renewal, error) { return s.Store.RenewSession(ctx, id) })
}

func (s *storm) CloseSession(ctx context.Context, id idempotency.Session) error {
	_, err := through(ctx, s, func(ctx context.Context) (bool, error) { return true, s.Store.CloseSession(ctx, id) })
	return err
}

func (s *storm) MarkDead(ctx context.Context, id idempotency.Session, dead []int64) error {
	_, err := through(ctx, s, func(ctx context.Context) (bool, error) { return true, s.Store.MarkDead(ctx, id, dead) })
	return err
}

func (s *storm) Declare(ctx context.Context, id idempotency.Session, nonce int64, d []idempotency.Declaration) ([]idempotency.Entry, error) {
	return through(ctx, s, func(ctx context.Context) ([]idempotency.Entry, error) { return s.Store.Declare(ctx, id, nonce, d) })
}

func (s *storm) Decide(ctx context.Context, id idempotency.Session, nonce int64, d []idempotency.Decision) ([]idempotency.Decided, error) {
	return through(ctx, s, func(ctx context.Context) ([]idempotency.Decided, error) { return s.Store.Decide(ctx, id, nonce, d) })
}

func (s *storm) Lagging(ctx context.Context, id idempotency.Session, q idempotency.LagQuery) (idempotency.Lag, error) {
	return through(ctx, s, func(ctx context.Context) (idempotency.Lag, error) { return s.Store.Lagging(ctx, id, q) })
}

func (s *storm) Claim(ctx context.Context, id idempotency.Session, nonce int64, c []idempotency.Claim) ([]idempotency.Answer, error) {
	return through(ctx, s, func(ctx context.Context) ([]idempotency.Answer, error) { return s.Store.Claim(ctx, id, nonce, c) })
}

func (s *storm) Finish(ctx context.Context, ns string, f []idempotency.Finish) ([]idempotency.FinishAnswer, error) {
	return through(ctx, s, func(ctx context.Context) ([]idempotency.FinishAnswer, error) { return s.Store.Finish(ctx, ns, f) })
}

func (s *storm) Mine(ctx context.Context, id idempotency.Session) ([]idempotency.Run, error) {
	return through(ctx, s, func(ctx context.Context) ([]idempotency.Run, error) { return s.Store.Mine(ctx, id) })
}

func (s *storm) Prune(ctx context.Context, id idempotency.Session, limit int) (int, error) {
	return through(ctx, s, func(ctx context.Context) (int, error) { return s.Store.Prune(ctx, id, limit) })
}

func (s *storm) SavePass(ctx context.Context, id idempotency.Session, p []idempotency.Pass) ([]idempotency.Verdict, error) {
	return through(ctx, s, func(ctx context.Context) ([]idempotency.Verdict, error) { return s.Store.SavePass(ctx, id, p) })
}

func (s *storm) CloseDue(ctx context.Context, id idempotency.Session, job string, due time.Time, missed *idempotency.Range) (bool, error) {
	return through(ctx, s, func(ctx context.Context) (bool, error) { return s.Store.CloseDue(ctx, id, job, due, missed) })
}

// tale is what the handlers and the hooks saw.
type tale struct {
	mu     sync.Mutex
	fences map[string]map[int64]bool // occurrence -> the fences it ran under
	rand   *rand.Rand
	done   map[string][]int64 // occurrence -> the fences whose completion the store confirmed
	wrong  []string
}

// run takes up to a lease and does not look at its context: a session that is lost meanwhile leaves it at work.
func (l *tale) run(_ context.Context, o jobs.Occurrence) error {
	time.Sleep(l.began(o))
	return nil
}

func (l *tale) began(o jobs.Occurrence) (takes time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.fences[o.ID()]
	if f == nil {
		f = map[int64]bool{}
		l.fences[o.ID()] = f
	}
	if f[o.Fence] {
		l.wrong = append(l.wrong, fmt.Sprintf("%s started twice under fence %d", o.ID(), o.Fence))
	}
	f[o.Fence] = true
	return time.Duration(l.rand.Int64N(int64(4 * time.Second)))
}

func (l *tale) finished(_ context.Context, f scheduler.Finished) {
	if f.Outcome != idempotency.Done {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done[f.ID()] = append(l.done[f.ID()], f.Fence)
}

// TestStorm lets three replicas run five nights of 200 keys over one SQLite file, while three calls of ten fail before
// or after their commit, or commit later, or are answered late. Replay: go test ./scheduler -run TestStorm -storm.seed SEED -storm.count 1
func TestStorm(t *testing.T) {
	t.Parallel()
	first := *stormSeed
	if first == 0 {
		first = rand.Uint64()
	}
	for seed := first; seed < first+*stormCount; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "storm.db")
			synctest.Test(t, func(t *testing.T) { storming(t, path, seed) })
		})
	}
}

const (
	stormNights = 5
	stormKeys   = 200
)

func storming(t *testing.T, path string, seed uint64) {
	l := &tale{fences: map[string]map[int64]bool{}, done: map[string][]int64{}, rand: rand.New(rand.NewPCG(seed, 99))}
	g := newGossip()
	from := time.Now().Truncate(time.Second)
	var dues []time.Time
	for i := range stormNights {
		dues = append(dues, from.Add(time.Duration(5+30*i)*time.Second))
	}
	job := jobs.Job{Name: "renewals", Schedule: jobs.At(dues...), Keys: keys(stormKeys), Run: l.run}
	single := jobs.Job{Name: "report", Schedule: jobs.At(dues...), Run: l.run}

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var ways []*storm
	var stores []*sqlite.Store
	var running sync.WaitGroup
	for i := range 3 {
		store, err := sqlite.Open(ctx, path, nil)
		if err != nil {
			t.Fatal(err)
		}
		way := &storm{Store: store, rand: rand.New(rand.NewPCG(seed, uint64(i)))}
		ways, stores = append(ways, way), append(stores, store)
		s, err := scheduler.New(scheduler.Config{Namespace: "test", Store: way, Members: seat{g, fmt.Sprint("r", i)},
			Concurrency: 32, Lease: 4 * time.Second, Logger: slog.New(slog.DiscardHandler),
			Hooks: []scheduler.Hooks{{Finished: l.finished}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Add(job, single); err != nil {
			t.Fatal(err)
		}
		running.Go(func() {
			if err := s.Run(ctx); err != nil {
				t.Errorf("seed %d: Run: %v", seed, err)
			}
		})
	}
	time.Sleep(time.Until(dues[stormNights-1]) + 30*time.Second)
	for _, w := range ways {
		w.soothe()
	}
	time.Sleep(30 * time.Second) // whatever lay then has been taken up
	stop()
	running.Wait()
	struck := 0
	for _, w := range ways {
		w.late.Wait()
		struck += w.struck
	}
	l.check(t, stores[0], seed)
	if t.Logf("seed %d: %d calls came to grief", seed, struck); struck < 500 {
		t.Errorf("seed %d: only %d calls came to grief; that shows nothing", seed, struck)
	}
	for _, s := range stores {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// check compares what was seen with what the store says.
func (l *tale) check(t *testing.T, store idempotency.History, seed uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	rows, repeats := 0, 0
	for r, err := range store.List(context.Background(), idempotency.Filter{Namespace: "test"}) {
		if err != nil {
			t.Fatal(err)
		}
		rows++
		o := jobs.Occurrence{Namespace: "test", Job: r.ID.Job, Key: r.ID.Key, Due: r.ID.Due}
		done := l.done[o.ID()]
		switch {
		case r.Outcome != idempotency.Done:
			t.Errorf("seed %d: %s ended as %d (%s), state %d", seed, o.ID(), r.Outcome, r.Reason, r.State)
		case len(done) > 1:
			t.Errorf("seed %d: %s was completed %d times, under the fences %v", seed, o.ID(), len(done), done)
		case len(done) == 1 && done[0] != r.Fence:
			t.Errorf("seed %d: %s was completed under fence %d, the store says %d", seed, o.ID(), done[0], r.Fence)
		case !l.fences[o.ID()][r.Fence]:
			t.Errorf("seed %d: %s is done under fence %d, which never ran", seed, o.ID(), r.Fence)
		}
		repeats += len(l.fences[o.ID()]) - 1
	}
	if want := stormNights * (stormKeys + 1); rows != want {
		t.Errorf("seed %d: %d runs recorded, want %d", seed, rows, want)
	}
	for r, err := range store.Ranges(context.Background(), "test", "") {
		t.Errorf("seed %d: range %+v, %v", seed, r, err)
	}
	for _, w := range l.wrong {
		t.Errorf("seed %d: %s", seed, w)
	}
	t.Logf("seed %d: %d runs done, %d of them repeated", seed, rows, repeats)
}
