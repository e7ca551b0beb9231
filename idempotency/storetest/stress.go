package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

const (
	contenders  = 16
	stressBatch = 20
	stressRuns  = 320
	stressIn    = "STORETEST_STRESS" // so many runs
	firstLease  = 60 * time.Millisecond
	standstill  = time.Minute // without a win or an end, until the test gives up

	// Of a hundred holders so many crash, are paused past their lease, and renew before they finish.
	crashing, pausing, renewing = 10, 12, 18
)

// Stress has 16 replicas contend for every run of one due, with leases that are far too short on purpose: each claims
// all of them in shuffled batches of 20 and takes up what others left. One holder in ten crashes, one in eight is
// paused for twice its lease and then finishes all the same. It then asks: was every run ended exactly once, was no
// finish accepted of a holder that had been overtaken, did every key's fence rise, was none used twice; and, where the
// harness has an Effect, was every effect committed exactly once. I1, I3, I4, F09.
//
// It is a test of 320 runs, or of as many as the environment variable STORETEST_STRESS says. The harness's store must
// have a clock that runs by itself.
func Stress(t *testing.T, open func(t *testing.T) Harness) {
	b := &bundle{T: t, Harness: open(t)}
	if b.Advance != nil {
		t.Fatal("storetest: Stress needs a store whose clock runs by itself; leave Advance nil")
	}
	s := &stress{bundle: b, seed: seed(t), judge: judge{
		high: make(map[string]int64), used: make(map[int64]bool), ended: make(map[string]int64), done: make(chan struct{}),
	}}
	for i := range number(t, stressIn, stressRuns) {
		s.keys = append(s.keys, fmt.Sprintf("k%05d", i))
	}
	s.left = len(s.keys)
	first := b.ready("first", "h1")
	s.due = b.ago(time.Minute)
	first.opens(s.due)

	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	go s.watch(ctx, stop)
	second := b.second()
	var wg sync.WaitGroup
	for i := range contenders {
		c := &contender{stress: s, store: b.Store, name: i, lease: firstLease, rng: rand.New(rand.NewPCG(s.seed, uint64(i)))}
		if i%2 == 1 {
			c.store = second
		}
		wg.Go(func() {
			if err := c.work(ctx); err != nil {
				stop(err)
			}
		})
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		t.Fatalf("%v\nrun again with the same choices, if not the same interleaving: %s=%d %s=%d go test -run '^%s$'",
			err, seedIn, s.seed, stressIn, len(s.keys), t.Name())
	}
	s.settle(ctx)
}

// seed is the run's own, or the one that is to be repeated.
func seed(t *testing.T) uint64 {
	if s := os.Getenv(seedIn); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", seedIn, err)
		}
		return n
	}
	return rand.Uint64()
}

// number reads a count from the environment.
func number(t *testing.T, name string, otherwise int) int {
	s := os.Getenv(name)
	if s == "" {
		return otherwise
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < stressBatch {
		t.Fatalf("%s is %q; set it to a number of runs, at least %d", name, s, stressBatch)
	}
	return n
}

// stress is one run of the test.
type stress struct {
	*bundle
	judge
	seed uint64
	keys []string
	due  time.Time
}

// watch ends a test in which nothing moves: a run was lost.
func (s *stress) watch(ctx context.Context, stop context.CancelCauseFunc) {
	again := time.NewTicker(standstill)
	defer again.Stop()
	for last := -1; ; {
		select {
		case <-ctx.Done():
			return
		case <-s.done:
			return
		case <-again.C:
		}
		moves, left := s.moved()
		if moves == last {
			stop(fmt.Errorf("nothing was won or ended for %v, and %d runs are left", standstill, left))
		}
		last = moves
	}
}

// settle compares the rows with what was answered.
func (s *stress) settle(ctx context.Context) {
	s.Helper()
	rows := s.list(idempotency.Filter{})
	want(s.T, "rows", len(rows), len(s.keys))
	for _, x := range rows {
		if x.State != idempotency.Ended || x.Outcome != idempotency.Done || x.Fence != s.ended[x.ID.Key] {
			s.Errorf("the row is %+v, and fence %d was told that it had ended the run", x, s.ended[x.ID.Key])
		}
	}
	if s.Effect != nil {
		effects, err := s.Effect.Count(ctx)
		if err != nil {
			s.Fatalf("counting effects: %v", err)
		}
		want(s.T, "occurrences with an effect", len(effects), len(s.keys))
		for id, n := range effects {
			want(s.T, "effects of "+id, n, 1)
		}
	}
	if s.takeUps == 0 || s.stale == 0 {
		s.Errorf("%d take-ups and %d refused finishes: nobody was overtaken, and nothing was shown", s.takeUps, s.stale)
	}
	s.Logf("%d replicas x %d runs, %d sessions: %d claims taken by others, %d take-ups, %d stale finishes refused; 0 accepted, 0 double ends or effects, 0 fences going back or used twice",
		contenders, len(s.keys), s.sessions, s.taken, s.takeUps, s.stale)
}

// judge knows nothing of the store but what was asked and answered, and in which order.
type judge struct {
	mu    sync.Mutex
	high  map[string]int64 // highest fence answered, by key
	used  map[int64]bool
	ended map[string]int64 // the fence that was told that it ended the run, by key
	left  int              // runs that have not ended
	done  chan struct{}    // closed when none is left

	holders, sessions, taken, takeUps, stale, moves int
}

func (j *judge) moved() (moves, left int) {
	j.mu.Lock()
	defer j.mu.Unlock()

	return j.moves, j.left
}

// before is the highest fence of each run that had been answered when something is about to be sent; -1: the run had ended.
func (j *judge) before(ids []idempotency.ID) []int64 {
	j.mu.Lock()
	defer j.mu.Unlock()

	high := make([]int64, len(ids))
	for i, id := range ids {
		high[i] = j.high[id.Key]
		if j.ended[id.Key] != 0 {
			high[i] = -1
		}
	}
	return high
}

// claimed judges the answers to a claim, and returns what was won, and whether it is the how-manieth holding.
func (j *judge) claimed(c []idempotency.Claim, before []int64, answers []idempotency.Answer) (won []idempotency.Finish, holder int, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()

	for i, a := range answers {
		k := c[i].ID.Key
		switch {
		case a.Verdict == idempotency.Taken:
			j.taken++
			continue
		case a.Verdict != idempotency.Won:
			return nil, 0, fmt.Errorf("claim %+v: verdict %d, want won or taken", c[i], a.Verdict)
		case before[i] < 0:
			return nil, 0, fmt.Errorf("key %q was won with fence %d after its run had ended", k, a.Fence)
		case a.Fence <= before[i] || a.Fence <= c[i].Seen:
			return nil, 0, fmt.Errorf("key %q was won with fence %d after %d had been answered", k, a.Fence, max(before[i], c[i].Seen))
		case j.used[a.Fence]:
			return nil, 0, fmt.Errorf("fence %d was used twice, the second time for key %q", a.Fence, k)
		}
		if c[i].TakeUp {
			j.takeUps++
		}
		j.moves++
		j.used[a.Fence] = true
		j.high[k] = max(j.high[k], a.Fence)
		won = append(won, done(c[i].ID, a.Fence))
	}
	if len(won) > 0 {
		j.holders++
	}
	return won, j.holders, nil
}

// finished judges the answer to a finish.
func (j *judge) finished(f idempotency.Finish, before int64, accepted bool) error {
	j.mu.Lock()
	defer j.mu.Unlock()

	k := f.ID.Key
	switch {
	case !accepted:
		j.stale++
		return nil
	case j.ended[k] != 0:
		return fmt.Errorf("key %q was ended by fence %d and again by %d", k, j.ended[k], f.Fence)
	case before < 0 || before > f.Fence:
		return fmt.Errorf("key %q: the finish of fence %d was accepted after %d had been answered", k, f.Fence, before)
	}
	j.moves++
	j.ended[k] = f.Fence
	if j.left--; j.left == 0 {
		close(j.done)
	}
	return nil
}

// overtaken reports whether somebody else was told that it holds one of these.
func (j *judge) overtaken(held []idempotency.Finish) bool {
	j.mu.Lock()
	defer j.mu.Unlock()

	return slices.ContainsFunc(held, func(f idempotency.Finish) bool { return j.high[f.ID.Key] > f.Fence })
}
