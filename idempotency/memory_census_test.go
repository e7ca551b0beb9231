package idempotency

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// What the memory store keeps of sessions and entries is what it would find by looking at all of them, also where its clock
// steps back and revives a session that nobody marked, or a renewal makes one end sooner.
func TestMemoryCensus(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 0))
		now := time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)
		m := NewMemory(func() time.Time { return now })
		var sessions []Session
		for step := range 300 {
			censusStep(t, r, m, &sessions, now)
			now = now.Add(time.Duration(r.IntN(4000)-1000) * time.Millisecond)
			if wrong := m.spaces["ns"].censusWrong(now); wrong != "" {
				t.Fatalf("seed %d, step %d: %s", seed, step, wrong)
			}
		}
	}
}

// censusStep makes one call, of those that change who lives or what is scheduled.
func censusStep(t *testing.T, r *rand.Rand, m *Memory, sessions *[]Session, now time.Time) {
	ctx := t.Context()
	if len(*sessions) == 0 || r.IntN(8) == 0 {
		s, _, err := m.OpenSession(ctx, Opening{
			Namespace: "ns", Replica: "r", Boot: "b", Partitions: 8, Lease: 5 * time.Second, Horizon: time.Hour, Retention: 2 * time.Hour,
		})
		if err != nil {
			t.Fatal(err)
		}
		*sessions = append(*sessions, s)
		return
	}
	s := (*sessions)[len(*sessions)-1-r.IntN(min(3, len(*sessions)))]
	def := Definition{Job: fmt.Sprint("job", r.IntN(4)), Hash: fmt.Sprint("hash", r.IntN(3)), Revision: int64(r.IntN(2))}
	next := now.Truncate(time.Second).Add(time.Duration(r.IntN(10)) * time.Second)
	switch r.IntN(6) {
	case 0:
		_ = m.CloseSession(ctx, s)
	case 1, 2:
		_, _ = m.RenewSession(ctx, s) // which may be dead
	case 3:
		_, _ = m.Declare(ctx, s, int64(r.IntN(2)), []Declaration{{Definition: def, Opened: now.Add(-time.Second), Next: next}})
	default:
		e := m.spaces["ns"].entries[def.Job]
		if e == nil {
			return
		}
		if r.IntN(3) == 0 {
			next = time.Time{}
		}
		_, _ = m.Decide(ctx, s, int64(r.IntN(1000)), []Decision{{Seen: e.Entry, Definition: def, Opened: e.Opened, Next: next}})
	}
}

// censusWrong says what differs from what a look at everything finds.
func (sp *space) censusWrong(now time.Time) string {
	sp.count(now)
	var live []*session
	for _, s := range sp.sessions {
		if s.live(now) {
			live = append(live, s)
		}
	}
	if !slices.Equal(live, sp.census.live) {
		return fmt.Sprintf("%d sessions live, the census has %d", len(live), len(sp.census.live))
	}
	var unforced, offered []*entry
	for _, e := range sp.entries {
		if want := sp.inForce(e.Job); e.InForce != want {
			return fmt.Sprintf("%s: %q is in force, want %q", e.Job, e.InForce, want)
		}
		if e.Hash != e.InForce {
			unforced = append(unforced, e)
		}
		if !e.Next.IsZero() {
			offered = append(offered, e)
		}
	}
	byJob := func(a, b *entry) int { return strings.Compare(a.Job, b.Job) }
	slices.SortFunc(unforced, byJob)
	slices.SortFunc(offered, func(a, b *entry) int {
		if c := a.Next.Compare(b.Next); c != 0 {
			return c
		}
		return byJob(a, b)
	})
	switch {
	case !slices.Equal(unforced, sp.census.unforced):
		return fmt.Sprintf("%d entries are not in force, the census has %d", len(unforced), len(sp.census.unforced))
	case !slices.Equal(offered, sp.offered):
		return fmt.Sprintf("%d entries are ever due, offered has %d, or another order", len(offered), len(sp.offered))
	}
	return ""
}
