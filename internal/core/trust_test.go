package core

import (
	"testing"
	"time"

	"github.com/belfry-go/belfry/jobs"
)

// A session that cannot be renewed is lost by whichever clock comes first to the end of the trust: the monotonic one stands still while a
// machine is suspended, and the wall clock may be set back.
func TestTrustEndsByEitherClock(t *testing.T) {
	t.Parallel()
	const trust = 7 * time.Second
	for name, c := range map[string]struct {
		passes time.Duration // by the monotonic clock
		step   time.Duration // of the wall clock
		lost   bool
	}{
		"both":               {trust, 0, true},
		"neither":            {trust - time.Millisecond, 0, false},
		"the wall set back":  {trust, -time.Hour, true},
		"suspended":          {time.Millisecond, time.Hour, true},
		"suspended, briefly": {time.Millisecond, trust - 2*time.Millisecond, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTower(t, timing(), "a")
			w.begin(jobs.Job{Name: "j", Schedule: jobs.Every(time.Hour), Run: none})
			w.mute = func(int, string) bool { return true }
			s := w.cores[0].session
			if s == nil || s.sent.Mono != 0 {
				t.Fatal("no session was opened at once")
			}
			w.now, w.wrong = c.passes, c.step
			w.tell(0)
			if lost := w.cores[0].session != s; lost != c.lost {
				t.Errorf("the session is lost: %v, want %v", lost, c.lost)
			}
		})
	}
}

// A host that was suspended wakes its replica when the wall clock comes to the end of the trust, not when the monotonic one does.
func TestTrustWakesByEitherClock(t *testing.T) {
	t.Parallel()
	w := newTower(t, timing(), "a")
	w.begin(jobs.Job{Name: "j", Schedule: jobs.Every(time.Hour), Run: none})
	w.mute = func(int, string) bool { return true }
	w.now, w.wrong = time.Millisecond, 7*time.Second-11*time.Millisecond
	w.tell(0)
	if in := w.cores[0].Wake() - w.now; in != 10*time.Millisecond {
		t.Errorf("it wants to be woken in %v, and trusts its session for another 10ms", in)
	}
}
