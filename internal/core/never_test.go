package core

import (
	"math"
	"testing"
	"time"

	"github.com/belfry-go/belfry/jobs"
)

// The longest of durations stand for never: they neither end a handler at once nor have Step go round for ever.
func TestLongestDurations(t *testing.T) {
	t.Parallel()
	const never = time.Duration(math.MaxInt64)
	for name, edit := range map[string]func(*jobs.Job){
		"timeout":       func(j *jobs.Job) { j.Timeout = never },
		"stall":         func(j *jobs.Job) { j.Timeout, j.StallAfter = -1, never },
		"start within":  func(j *jobs.Job) { j.StartWithin = never },
		"local timeout": func(j *jobs.Job) { j.Guarantee, j.Timeout = jobs.Efficiency, never },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTower(t, timing(), "a")
			j := once("j")
			edit(&j)
			w.begin(j)
			w.until(20 * second)
			if s := w.starts("j"); len(s) != 1 || w.ended(s[0]) != nil {
				t.Errorf("%d starts; the first was ended with %v", len(s), w.ended(s[0]))
			}
		})
	}
}

// Who asks to be tried again after the longest of durations is not tried again.
func TestLongestRetryAfter(t *testing.T) {
	t.Parallel()
	for name, g := range map[string]jobs.Guarantee{"stored": jobs.Correctness, "local": jobs.Efficiency} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTower(t, timing(), "a")
			j := once("j")
			j.Guarantee = g
			w.begin(j)
			w.until(11 * second)
			w.returned(w.starts("j")[0], jobs.RetryAfter(math.MaxInt64, errWork))
			w.until(30 * second)
			if n := len(w.starts("j")); n != 1 {
				t.Errorf("%d starts, want 1", n)
			}
		})
	}
}

// The longest drain ends when the last handler has returned, and cuts none off.
func TestLongestDrain(t *testing.T) {
	t.Parallel()
	cfg := timing()
	cfg.Drain = math.MaxInt64
	w := newTower(t, cfg, "a")
	w.begin(once("j"))
	w.until(11 * second)
	w.tell(0, Stop{})
	w.until(20 * second)
	if err := w.ended(w.starts("j")[0]); err != nil || w.cores[0].stopped {
		t.Fatalf("ended with %v; stopped: %t", err, w.cores[0].stopped)
	}
	w.returned(w.starts("j")[0], nil)
	w.until(21 * second)
	if !w.cores[0].stopped {
		t.Error("the last handler has returned, and the replica has not stopped")
	}
}

// A job that may start next in more years than a duration can say does not make its replica miss when another one may.
func TestLowestRate(t *testing.T) {
	t.Parallel()
	w := newTower(t, timing(), "a")
	low, j := local1("low", jobs.Every(10*second)), local1("j", jobs.Every(second))
	low.Overlap, j.Overlap = jobs.OverlapAllow, jobs.OverlapAllow
	low.Limit.PerSecond, j.Limit.PerSecond = 1e-300, 0.5
	w.act = list(0) // handlers return at once
	w.begin(low, j)
	w.until(25*second + 100*time.Millisecond)
	if n := len(w.starts("low")); n != 1 {
		t.Errorf("%d starts, want 1", n)
	}
	if at := w.cores[0].tokenAt; at <= w.now || at > w.now+2*second {
		t.Errorf("at %v the replica waits for %v to start what may start in 2 s", w.now, at)
	}
}
