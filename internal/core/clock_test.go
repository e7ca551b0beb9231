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
			if got := k.at(mono); got.After(truth) || truth.Sub(got) > best+time.Microsecond {
				t.Fatalf("seed %d: estimate is %v off, quickest answer %v", seed, truth.Sub(got), best)
			}
			mono += time.Second
		}
	}
}

func TestClockFollowsSteps(t *testing.T) {
	t.Parallel()
	var k clock
	k.sample(time.Unix(1000, 0), 0, time.Millisecond)
	k.sample(time.Unix(5000, 0), time.Second, time.Second+time.Millisecond)
	if got := k.at(time.Second + time.Millisecond); got.Unix() != 5000 {
		t.Errorf("after a step forward: %v", got)
	}
	k.sample(time.Unix(2000, 0), 2*time.Second, 2*time.Second+time.Millisecond)
	if got := k.at(2*time.Second + time.Millisecond); got.Unix() != 2000 {
		t.Errorf("after a step back: %v", got)
	}
}
