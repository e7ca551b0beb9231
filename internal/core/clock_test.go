package core

import (
	"math/rand/v2"
	"testing"
	"time"
)

// Whatever the delays, the estimate is never ahead of the store's clock, and
// behind it by no more than the quickest answer since the last contradiction took.
func TestClockIsNeverAhead(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 2))
	for range 200 {
		var k clock
		offset := time.Duration(rng.Int64N(int64(1000 * time.Hour)))
		best := time.Hour
		mono := time.Duration(0)
		for range 50 {
			there, back := time.Duration(rng.IntN(400))*time.Millisecond, time.Duration(rng.IntN(400))*time.Millisecond
			sent := mono
			read := sent + there
			mono = read + back
			k.sample(time.Unix(0, int64(offset+read)), sent, mono)
			best = min(best, there+back)
			truth := time.Unix(0, int64(offset+mono))
			if got := time.UnixMicro(k.micro(mono)); got.After(truth) || truth.Sub(got) > best+time.Microsecond {
				t.Fatalf("seed %d: estimate is %v off, quickest answer %v", seed, truth.Sub(got), best)
			}
			mono += time.Second
		}
	}
}

// F55, F70: the store's clock is set on or back, by years too; the host is suspended, and its monotonic clock
// stands still. The next answer puts the estimate right; until then it is behind, and never ahead but where the store's clock
// went back.
func TestClockFollowsSteps(t *testing.T) {
	t.Parallel()
	const took = 2 * time.Millisecond
	var k clock
	mono, store := time.Second, time.Unix(1_800_000_000, 0)
	for _, c := range []struct {
		name  string
		store time.Duration // how far the store's clock went
		mono  time.Duration // and ours
	}{
		{"at first", 0, 0},
		{"on by an hour", time.Hour, 0},
		{"back by an hour", -time.Hour, 0},
		{"on by eight years", 8 * 365 * 24 * time.Hour, time.Minute},
		{"back by eight years", -8 * 365 * 24 * time.Hour, time.Minute},
		{"suspended for a night", 8 * time.Hour, 0},
		{"as usual", 2 * time.Second, 2 * time.Second},
	} {
		store, mono = store.Add(c.store), mono+c.mono
		if late := store.Sub(time.UnixMicro(k.micro(mono))); k.known && c.store >= 0 && late < 0 {
			t.Errorf("%s: before the answer the estimate is %v ahead", c.name, -late)
		}
		sent := mono
		mono += took
		store = store.Add(took)
		step := k.sample(store, sent, mono)
		if got := time.UnixMicro(k.micro(mono)); !got.Equal(store) {
			t.Errorf("%s: the estimate is %v, want %v", c.name, got, store)
		}
		if back := step < -maxStep; back != (c.store < 0) {
			t.Errorf("%s: told as a step of %v", c.name, step)
		}
	}
}
