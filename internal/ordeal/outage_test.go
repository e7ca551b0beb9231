package ordeal

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/internal/faultproxy"
)

// outage is one way in which a server is away, or as good as away.
type outage struct {
	name       string
	lasts      time.Duration
	long       bool // only where -ordeal.outages asks for it
	begin, end func(s *site, p *faultproxy.Proxy) error
}

var outageKinds = []outage{
	{
		name: "killed", lasts: 500 * time.Millisecond,
		begin: func(s *site, _ *faultproxy.Proxy) error { s.server.Kill(); return nil },
		end:   func(s *site, _ *faultproxy.Proxy) error { return s.server.Restart() },
	},
	{
		name: "silent", lasts: time.Second,
		begin: func(_ *site, p *faultproxy.Proxy) error {
			p.ToServer.Swallow(true)
			p.ToClient.Swallow(true)
			return nil
		},
		end: func(_ *site, p *faultproxy.Proxy) error {
			p.ToServer.Swallow(false)
			p.ToClient.Swallow(false)
			return nil
		},
	},
	{
		name: "stopped for long", lasts: 30 * time.Second, long: true,
		begin: func(s *site, _ *faultproxy.Proxy) error { return s.server.Stop() },
		end:   func(s *site, _ *faultproxy.Proxy) error { return s.server.Restart() },
	},
	{
		name: "slow", lasts: 10 * time.Second, long: true, // half of the replies take more than 500 ms, one in a hundred 5 s
		begin: func(_ *site, p *faultproxy.Proxy) error {
			p.ToClient.Delay(func() time.Duration {
				if rand.IntN(100) == 0 {
					return 5 * time.Second
				}
				return rand.N(time.Second)
			})
			return nil
		},
		end: func(_ *site, p *faultproxy.Proxy) error { p.ToClient.Delay(nil); return nil },
	},
}

const (
	fifth   = time.Second      // of a lease of five seconds: the deadline of each call
	tooLate = 30 * time.Second // behind it, whatever the machine
	goal    = 5 * time.Second  // from when the server is up until all calls are answered
)

// F33, F35, F36, T14: the server is away, and comes back. Meanwhile no call outlives its deadline, and afterwards each is
// answered again. What was claimed and finished all the while is there once.
func TestOutages(t *testing.T) {
	t.Parallel()
	for _, o := range outageKinds {
		if o.long && *outages == 1 {
			continue
		}
		t.Run(o.name, func(t *testing.T) {
			each(t, onOwnServer, func(t *testing.T, s *site) { o.endure(t, s) })
		})
	}
}

func (o outage) endure(t *testing.T, s *site) {
	p := s.through(t)
	h := s.open(t)
	r := open(t, h, "a")
	due := openDue(t, h)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	w := &worker{replica: r, due: due, fences: make(map[string]int64)}
	all := []*caller{{call: call{"claims and finishes", w.round}}}
	for _, c := range r.calls(due) {
		all = append(all, &caller{call: c, limited: true})
	}
	for _, c := range all {
		wg.Go(func() { c.run(ctx) })
	}
	answered(t, all)
	var back []time.Duration
	for range *outages {
		if err := o.begin(s, p); err != nil {
			t.Fatal(err)
		}
		select {
		case <-time.After(o.lasts):
		case <-t.Context().Done():
		}
		if err := o.end(s, p); err != nil {
			t.Fatal(err)
		}
		back = append(back, answered(t, all))
	}
	cancel()
	wg.Wait()
	if w.failed != nil {
		t.Error(w.failed)
	}
	rows := list(t, w.store)
	delete(rows, claims(due, "call", 1)[0].ID.Key) // of the callers
	lost, double := reckon(t, rows, w.fences)
	var over time.Duration
	for _, c := range all {
		if over = max(over, c.over); c.over > tooLate {
			t.Errorf("%s ended %v after its deadline", c.name, c.over)
		}
	}
	slices.Sort(back)
	prompt := len(back)
	if i := slices.IndexFunc(back, func(d time.Duration) bool { return d > goal }); i >= 0 {
		prompt = i
	}
	t.Logf("T14: %s: %s: %d outages; all calls answered after %v at most (median %v; within %v: %d of %d); no call more than %v behind its deadline; %d runs, %d lost, %d double",
		s.client, o.name, len(back), back[len(back)-1].Round(time.Millisecond), back[len(back)/2].Round(time.Millisecond), goal, prompt, len(back),
		over.Round(time.Millisecond), len(w.fences), lost, double)
}

// caller makes one kind of call again and again.
type caller struct {
	call
	limited bool         // each has a deadline; else it sees to that itself
	last    atomic.Int64 // when the last call began that was answered, in Unix nanoseconds
	over    time.Duration
}

func (c *caller) run(ctx context.Context) {
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for ctx.Err() == nil {
		begun := time.Now()
		if err := c.once(ctx); err == nil {
			c.last.Store(begun.UnixNano())
		}
		if c.limited {
			c.over = max(c.over, time.Since(begun)-fifth)
		}
		select {
		case <-again.C:
		case <-ctx.Done():
		}
	}
}

func (c *caller) once(ctx context.Context) error {
	if !c.limited {
		return c.make(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, fifth)
	defer cancel()
	return c.make(ctx)
}

// answered returns once each caller was answered a call that it began from now on, and says how long that took.
func answered(t *testing.T, all []*caller) time.Duration {
	t.Helper()
	from := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for _, c := range all {
		for c.last.Load() < from.UnixNano() {
			select {
			case <-again.C:
			case <-ctx.Done():
				t.Fatalf("%s was not answered again: %v", c.name, c.once(t.Context()))
			}
		}
	}
	return time.Since(from)
}

// worker claims runs and finishes them, and repeats each call as it was until it is answered.
type worker struct {
	*replica
	due    time.Time
	rounds int
	fences map[string]int64 // of what was finished
	failed error
}

func (w *worker) round(context.Context) error {
	w.rounds++
	w.nonce++
	c := claims(w.due, fmt.Sprintf("%d-", w.rounds), 3)
	answers, err := insist(w, func(ctx context.Context) ([]idempotency.Answer, error) {
		return w.store.Claim(ctx, w.session, w.nonce, c)
	})
	if err != nil {
		return err
	}
	for i, a := range answers {
		if a.Verdict != idempotency.Won {
			w.failed = errors.Join(w.failed, fmt.Errorf("claim of %v: %+v, want won", c[i].ID, a))
		}
		w.fences[c[i].ID.Key] = a.Fence
	}
	ends, err := insist(w, func(ctx context.Context) ([]idempotency.FinishAnswer, error) {
		return w.store.Finish(ctx, namespace, finishes(c, answers))
	})
	for i, a := range ends {
		if a != idempotency.Finished && a != idempotency.Already {
			w.failed = errors.Join(w.failed, fmt.Errorf("finish of %v: answer %d, want finished", c[i].ID, a))
		}
	}
	return err
}

// insist makes a call until it is answered, or the test is over.
func insist[T any](w *worker, call func(context.Context) (T, error)) (answer T, err error) {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		ctx, cancel := context.WithTimeout(w.t.Context(), fifth)
		answer, err = call(ctx)
		cancel()
		if err == nil || w.t.Context().Err() != nil {
			return answer, err
		}
		<-again.C
	}
}
