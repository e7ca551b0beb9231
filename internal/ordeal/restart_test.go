package ordeal

import (
	"context"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency/storetest"
)

// F33: the server is killed and shut down while clients work. What they are answered stays that of a register, and
// calls work again once the server does.
func TestServerRestarts(t *testing.T) {
	each(t, onOwnServer, func(t *testing.T, s *site) {
		a, b := s.open(t), s.open(t)
		var longest time.Duration
		l := life{seed: seed(t), until: *ops, deadline: 2 * time.Second, times: *kills}
		l.trouble = func(n int) {
			if n%3 == 2 {
				if err := s.server.Stop(); err != nil {
					t.Error(err)
				}
			} else {
				s.server.Kill()
			}
			if err := s.server.Restart(); err != nil {
				t.Error(err)
				return
			}
			up := time.Now()
			for _, store := range []storetest.Store{a, b} {
				works(t, store)
			}
			longest = max(longest, time.Since(up))
		}
		l.live(t, a, b)
		t.Logf("%d ends of the server; at most %v from when it was up until both stores worked", l.times, longest.Round(time.Millisecond))
	})
}

// works returns once the store works, as those see it who call it again and again.
func works(t *testing.T, s storetest.Store) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		try, done := context.WithTimeout(ctx, time.Second)
		_, _, err := s.OpenSession(try, opening("probe"))
		done()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Errorf("the store did not come back: %v", err)
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}
