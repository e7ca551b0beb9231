package etcdelector

import (
	"sync"
	"time"
)

// instant is a moment by two clocks, of which either may fail: the monotonic one stands still while a machine is suspended, and the
// host's is set to and fro.
type instant struct {
	mono time.Duration // since epoch
	wall time.Time     // without a monotonic reading
}

var epoch = time.Now()

// now is the instant by the process's clocks.
func now() instant {
	t := time.Now()
	return instant{mono: t.Sub(epoch), wall: t.Round(0)}
}

// since is how much time has passed by the clock that says more. A host's clock that is set forward ends a term too early, never too
// late.
func (i instant) since(earlier instant) time.Duration {
	return max(i.mono-earlier.mono, i.wall.Sub(earlier.wall))
}

// trust is how long a leader may believe in itself. Once over it stays over, whatever is confirmed later.
type trust struct {
	now func() instant

	mu    sync.Mutex
	sent  instant       // when the last confirmed renewal was sent
	lasts time.Duration // from then on; 0: nothing was confirmed yet
	over  bool
}

// left is how much of the trust is left, 0 once it is over or where it never began.
func (t *trust) left() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.leftLocked()
}

func (t *trust) leftLocked() time.Duration {
	if t.over || t.lasts == 0 {
		return 0
	}
	left := t.lasts - t.now().since(t.sent)
	t.over = left <= 0
	return max(left, 0)
}

// confirm begins the trust, or extends it where it is not over.
func (t *trust) confirm(sent instant, lasts time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lasts > 0 && t.leftLocked() == 0 {
		return
	}
	t.sent, t.lasts = sent, lasts
}
