package postgres

import (
	"testing"

	"github.com/belfry-go/belfry/idempotency"
)

// A fence is drawn while its key is held. A claim is stopped just before it gets its key; then others draw numbers; then it
// goes on: had it drawn its fence before, that would be below theirs, and theirs could have been a claim of its own key
// that came and went. I3, F15.
func TestFenceIsDrawnWhileTheKeyIsHeld(t *testing.T) {
	t.Parallel()
	// Each prepares, has the key held by another, and then starts what is to wait for it. It returns how to hear its fence.
	for name, start := range map[string]func(f *fixture, hold func()) func() int64{
		"insert": func(f *fixture, hold func()) func() int64 {
			hold()
			return f.fenceOf(f.claimBeside(f.insert("k", 0)))
		},
		"insert that is judged": func(f *fixture, hold func()) func() int64 {
			hold()
			return f.fenceOf(f.claimBeside(f.insert("k", 0), idempotency.Claim{ID: f.insert("none", 0).ID, Hash: "h1", TakeUp: true}))
		},
		"take-up": func(f *fixture, hold func()) func() int64 {
			x := f.insert("k", 0)
			x.Seen = f.wins(x)
			f.finish(x.ID, x.Seen, idempotency.Wait)
			x.TakeUp = true
			hold()
			return f.fenceOf(f.claimBeside(x))
		},
		"decision": func(f *fixture, hold func()) func() int64 {
			d := f.decision(plain, f.due)
			d.Claim = 1
			hold()
			c := beside(func() ([]idempotency.Decided, error) {
				return f.s.Decide(f.Context(), f.ses, 1000, []idempotency.Decision{d})
			})
			return func() int64 {
				a := <-c
				if a.err != nil || len(a.value[0].Runs) != 1 || a.value[0].Runs[0].State != idempotency.Running {
					f.Fatalf("decision: %+v %v", a.value, a.err)
				}
				return a.value[0].Runs[0].Fence
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			o := f.other()
			fence := start(f, func() {
				o.holds(keyed, "k")
				o.holds(plain, plain)
			})
			f.waiting(1)
			later := f.wins(f.insert("other", 0))
			o.rollback()
			if got := fence(); got <= later {
				t.Fatalf("fence %d is not above %d, which was drawn before its key was held", got, later)
			}
		})
	}
}

// fenceOf waits for a claim that wins its first run.
func (f *fixture) fenceOf(c <-chan answer[[]idempotency.Answer]) func() int64 {
	return func() int64 {
		a := <-c
		if a.err != nil || a.value[0].Verdict != idempotency.Won {
			f.Fatalf("claim: %+v %v, want won", a.value, a.err)
		}
		return a.value[0].Fence
	}
}
