package idempotency_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is a store's clock that a test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock {
	return &clock{now: time.Date(2026, 10, 1, 4, 0, 0, 123456789, time.UTC)}
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.now = c.now.Add(d)
}

func TestMemory(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) storetest.Harness {
		c := newClock()
		return storetest.Harness{Store: idempotency.NewMemory(c.Now), Advance: c.Advance}
	})
}

// With the host's clock, as a user has it; it is also how drivers run the suite
// that cannot move their clock.
func TestMemoryOnHostClock(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) storetest.Harness {
		return storetest.Harness{Store: idempotency.NewMemory(nil)}
	})
}

// F55: the store's clock steps back. A session that was marked dead, and whose
// run was taken up, stays dead, and its fence is worth nothing.
func TestMemoryClockStepsBack(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), newClock()
	m := idempotency.NewMemory(c.Now)
	open := func(boot string, lease time.Duration) idempotency.Session {
		s, r, err := m.OpenSession(ctx, idempotency.Opening{
			Namespace: "ns", Replica: boot, Boot: boot, Partitions: 8, Lease: lease, Horizon: time.Hour, Retention: 2 * time.Hour,
		})
		if err != nil || !r.Now.Equal(c.Now().Truncate(time.Microsecond)) {
			t.Fatalf("open session: %+v %v", r, err)
		}
		return s
	}
	a, dying := open("a", time.Hour), open("dying", time.Minute)
	def := idempotency.Definition{Job: "j", Hash: "h"}
	declaration := []idempotency.Declaration{{Definition: def, Opened: due.Add(-time.Hour)}}
	if _, err := m.Declare(ctx, a, 0, declaration); err != nil {
		t.Fatal(err)
	}
	entries, err := m.Declare(ctx, dying, 0, declaration)
	if err != nil {
		t.Fatal(err)
	}
	decided, err := m.Decide(ctx, dying, 1, []idempotency.Decision{{
		Seen: entries[0], Definition: def, Opened: due, Run: []time.Time{due}, Claim: 1,
	}})
	if err != nil || len(decided[0].Runs) != 1 {
		t.Fatalf("decide: %+v %v", decided, err)
	}
	run := decided[0].Runs[0]

	c.Advance(2 * time.Minute)
	if err := m.MarkDead(ctx, a, []int64{dying.ID}); err != nil {
		t.Fatal(err)
	}
	take := idempotency.Claim{ID: run.ID, Hash: "h", Exclusive: true, TakeUp: true, Seen: run.Fence}
	answers, err := m.Claim(ctx, a, 1, []idempotency.Claim{take})
	if err != nil || answers[0].Verdict != idempotency.Won || answers[0].Fence <= run.Fence {
		t.Fatalf("take-up: %+v %v", answers, err)
	}

	c.Advance(-2 * time.Minute)
	if _, err := m.RenewSession(ctx, dying); !errors.Is(err, idempotency.ErrSessionDead) {
		t.Errorf("renewing the session that was marked: %v, want ErrSessionDead", err)
	}
	late, err := m.Finish(ctx, "ns", []idempotency.Finish{{ID: run.ID, Fence: run.Fence, Outcome: idempotency.Done}})
	if err != nil || late[0] != idempotency.Fenced {
		t.Errorf("finish of the overtaken: %v %v, want fenced", late, err)
	}
}

// A simulator runs a seed again and must get the same answers.
func TestMemoryIsDeterministic(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		first, again := night(t, seed), night(t, seed)
		if first != again {
			t.Fatalf("seed %d: two nights differ:\n%s\n%s", seed, first, again)
		}
	}
}

// night is what a store answers to random calls on many rows.
func night(t *testing.T, seed uint64) string {
	ctx, c := t.Context(), newClock()
	rng := rand.New(rand.NewPCG(seed, 0))
	m := idempotency.NewMemory(c.Now)
	var said strings.Builder
	tell := func(x any, err error) {
		if err != nil && !errors.Is(err, idempotency.ErrSessionDead) {
			t.Fatal(err)
		}
		fmt.Fprintf(&said, "%+v %v\n", x, err)
	}
	def := idempotency.Definition{Job: "j", Hash: "h"}
	var dues []time.Time
	for i := range 20 {
		dues = append(dues, due.Add(time.Duration(i-30)*time.Minute))
	}
	var sessions []idempotency.Session
	for i := range 5 {
		s, r, err := m.OpenSession(ctx, idempotency.Opening{
			Namespace: "ns", Replica: "r", Boot: fmt.Sprint(i), Partitions: 8,
			Lease: time.Duration(i+1) * time.Minute, Horizon: time.Hour, Retention: 61 * time.Minute,
		})
		tell(r.Now, err)
		sessions = append(sessions, s)
		e, err := m.Declare(ctx, s, 0, []idempotency.Declaration{{Definition: def, Opened: due.Add(-time.Hour)}})
		tell(e, err)
		if i == 0 {
			d, err := m.Decide(ctx, s, 1, []idempotency.Decision{{Seen: e[0], Definition: def, Opened: due, Keyed: true, Run: dues}})
			tell(d, err)
		}
	}
	for n := range 60 {
		c.Advance(3 * time.Second)
		s := sessions[rng.IntN(len(sessions))]
		var claims []idempotency.Claim
		for range 20 {
			claims = append(claims, idempotency.Claim{
				ID:   idempotency.ID{Job: "j", Key: fmt.Sprint(rng.IntN(30)), Due: dues[rng.IntN(len(dues))]},
				Hash: "h", Exclusive: rng.IntN(2) == 0, OnBusy: &idempotency.Finish{Outcome: idempotency.Wait, Wake: due},
			})
		}
		answers, err := m.Claim(ctx, s, int64(n), claims)
		tell(answers, err)
		lag, err := m.Lagging(ctx, s, idempotency.LagQuery{Ranks: [][]byte{{0x0f}, {0xf0}}, Limit: 10})
		tell(lag, err)
		mine, err := m.Mine(ctx, s)
		tell(mine, err)
		if n%10 == 9 {
			removed, err := m.Prune(ctx, s, 15)
			tell(removed, err)
		}
	}
	for r, err := range m.List(ctx, idempotency.Filter{Namespace: "ns"}) {
		tell(r, err)
	}
	return said.String()
}

func BenchmarkMemory(b *testing.B) {
	storetest.Bench(b, func(*testing.B) storetest.Store { return idempotency.NewMemory(nil) })
}
