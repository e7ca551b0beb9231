package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/scheduler"
)

// wires carry hints between the seats of one gossip.
type wires struct {
	mu   sync.Mutex
	ends map[string]chan struct{}
	sent []string // to whom, in order
}

func newWires() *wires { return &wires{ends: map[string]chan struct{}{}} }

func (w *wires) end(name string) chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ends[name] == nil {
		w.ends[name] = make(chan struct{}, 1)
	}
	return w.ends[name]
}

func (w *wires) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.sent)
}

// wired is a seat that can hint; a hint takes 10 ms.
type wired struct {
	seat
	*wires
}

func (s wired) Hint(ctx context.Context, member string) error {
	s.mu().Lock()
	s.sent = append(s.sent, member)
	s.mu().Unlock()
	select {
	case <-time.After(10 * time.Millisecond):
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case s.end(member) <- struct{}{}:
	default:
	}
	return nil
}

func (s wired) mu() *sync.Mutex { return &s.wires.mu }

func (s wired) Hints() <-chan struct{} { return s.end(s.name) }

// clerk notes when a replica's store confirms that runs wait again, and that its session is closed.
type clerk struct {
	idempotency.Store

	mu       sync.Mutex
	released map[string]time.Time // by key
	closed   time.Time
}

func (c *clerk) Finish(ctx context.Context, ns string, f []idempotency.Finish) ([]idempotency.FinishAnswer, error) {
	a, err := c.Store.Finish(ctx, ns, f)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range f {
		if x.Outcome == idempotency.Wait {
			c.released[x.ID.Key] = time.Now()
		}
	}
	return a, err
}

func (c *clerk) CloseSession(ctx context.Context, s idempotency.Session) error {
	err := c.Store.CloseSession(ctx, s)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = time.Now()
	return err
}

// handOver lets a replica leave while its handlers are at work, with the timing of a scheduler by default, and
// returns how long each of its runs lay before another replica had it at work; and how long after it began to leave
// the other keys of its pass were. The others look when it begins to leave, and then each second: drain says when in
// between it gives the runs back.
func handOver(t *testing.T, drain time.Duration, hints, deaf bool) (lay, rest []time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g, w, store := newGossip(), newWires(), idempotency.NewMemory(nil)
		c := &clerk{Store: store, released: map[string]time.Time{}}
		var mu sync.Mutex
		held, begun := map[string]bool{}, map[string]time.Time{} // by key, here and elsewhere
		var all sync.WaitGroup
		start := func(name string, st idempotency.Store, work jobs.Handler) context.CancelFunc {
			var m scheduler.Members = seat{g, name}
			if hints {
				m = wired{seat{g, name}, w}
			}
			s, err := scheduler.New(scheduler.Config{Namespace: "test", Store: st, Members: m, Concurrency: 8, Drain: drain, Logger: slog.New(slog.DiscardHandler)})
			if err == nil {
				err = s.Add(jobs.Job{Name: "j", Schedule: jobs.Every(time.Minute), Keys: keys(60), Run: work})
			}
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			all.Go(func() { _ = s.Run(ctx) }) // cut runs are an error, as they should be
			return stop
		}
		release := make(chan struct{})
		leave := start("a", c, func(ctx context.Context, o jobs.Occurrence) error {
			mu.Lock()
			first := len(held) == 0 // it holds the session open when the others have been given back
			held[o.Key] = true
			mu.Unlock()
			if deaf || first {
				<-release
				return nil
			}
			<-ctx.Done()
			return context.Cause(ctx)
		})
		time.Sleep(65 * time.Second) // all eight workers are at work
		quick := func(_ context.Context, o jobs.Occurrence) error {
			mu.Lock()
			defer mu.Unlock()
			begun[o.Key] = time.Now()
			return nil
		}
		stop := []context.CancelFunc{start("b", store, quick), start("c", store, quick)}
		time.Sleep(5 * time.Second)
		left := time.Now()
		leave()
		time.Sleep(20 * time.Second)
		close(release)
		for _, s := range stop {
			s()
		}
		all.Wait()
		for key, at := range begun {
			switch {
			case !held[key] && at.After(left.Add(-time.Second)):
				rest = append(rest, at.Sub(left))
			case held[key] && deaf:
				lay = append(lay, at.Sub(c.closed))
			case held[key] && !c.released[key].IsZero():
				lay = append(lay, at.Sub(c.released[key]))
			}
		}
		if len(begun) != 60 || len(held) != 8 || len(rest) == 0 {
			t.Errorf("%d keys ran elsewhere, %d were held here, %d lay in the pass here; want 60, 8 and some", len(begun), len(held), len(rest))
		}
		if hints && w.count() == 0 {
			t.Error("no hint was sent")
		}
	})
	return lay, rest
}

// A replica that leaves gives its runs back, or leaves them with its closed session. Where it can hint, others have them
// at work at once; where it cannot, at their next sweep. The keys that it has not claimed need no hint: the others
// look when their rings change.
func TestHandOverIsHinted(t *testing.T) {
	t.Parallel()
	for name, deaf := range map[string]bool{"released": false, "cut off": true} {
		t.Run(name, func(t *testing.T) {
			var with, without, rest []time.Duration
			play := func(to *[]time.Duration, drain time.Duration, hints bool) {
				lay, more := handOver(t, drain, hints, deaf)
				*to, rest = append(*to, lay...), append(rest, more...)
			}
			for drain := 3 * time.Second; drain < 4*time.Second; drain += 190 * time.Millisecond {
				play(&with, drain, true)
				play(&without, drain, false)
			}
			slices.Sort(with)
			slices.Sort(without)
			n := len(with)
			if n != len(without) || n < 7*6 {
				t.Fatalf("%d and %d runs were taken up, want %d", n, len(without), 7*6)
			}
			t.Logf("%s: hinted: median %v, worst %v; not hinted: median %v, worst %v (%d runs each, sweep 1 s, hint 10 ms); the %d keys of the pass: worst %v",
				name, with[n/2], with[n-1], without[n/2], without[n-1], n, len(rest), slices.Max(rest))
			if worst := with[n-1]; worst > 120*time.Millisecond {
				t.Errorf("with hints a run lies for up to %v, want 10 ms for the hint and 100 ms between hints at most", worst)
			}
			if without[n/2] < 300*time.Millisecond {
				t.Errorf("without hints a run lies for %v in the median: the twin shows nothing", without[n/2])
			}
			if worst := slices.Max(rest); worst > 120*time.Millisecond {
				t.Errorf("a key of the pass that was dropped lies for %v; the others should look when their rings change", worst)
			}
		})
	}
}

// stubborn is a Hinter whose hints fail, or hang until their context ends, or for ever.
type stubborn struct {
	wired
	hint func(ctx context.Context) error
}

func (s stubborn) Hint(ctx context.Context, _ string) error {
	s.mu().Lock()
	s.sent = append(s.sent, "")
	s.mu().Unlock()
	return s.hint(ctx)
}

// Hints that fail or hang hold nobody up: Run returns within a second, and says so where one is left behind.
func TestHintsThatHang(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hint func(free chan struct{}) func(context.Context) error
		most time.Duration
		log  string
	}{
		"fail": {func(chan struct{}) func(context.Context) error {
			return func(context.Context) error { return errors.New("no route to host") }
		}, 0, "no route to host"},
		"hang": {func(chan struct{}) func(context.Context) error {
			return func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		}, 500 * time.Millisecond, "not sent"},
		"hang for ever": {func(free chan struct{}) func(context.Context) error {
			return func(context.Context) error { <-free; return nil }
		}, time.Second, "left behind"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				free, b, g := make(chan struct{}), &book{}, newGossip()
				for i := range 40 {
					g.set(fmt.Sprint("x", i), "serving")
				}
				m := stubborn{wired{seat{g, "a"}, newWires()}, c.hint(free)}
				s, err := scheduler.New(scheduler.Config{Namespace: "test", Store: idempotency.NewMemory(nil), Members: m, Drain: 2 * time.Second,
					Logger: slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug}))})
				if err == nil {
					err = s.Add(jobs.Job{Name: "j", Schedule: jobs.Every(time.Minute), Keys: keys(100), Run: func(ctx context.Context, _ jobs.Occurrence) error {
						<-ctx.Done()
						return context.Cause(ctx)
					}})
				}
				if err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithTimeout(t.Context(), 70*time.Second)
				defer stop()
				from := time.Now()
				if err := s.Run(ctx); err != nil {
					t.Error(err)
				}
				if took := time.Since(from) - 72*time.Second; took > c.most {
					t.Errorf("Run took %v to return, want %v at most", took, c.most)
				}
				if m.count() == 0 || !b.says(c.log) {
					t.Errorf("%d hints were tried, and the log has no %q", m.count(), c.log)
				}
				close(free)
			})
		})
	}
}

// A member that floods others with hints costs them ten listings a second.
func TestFloodOfHints(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		var mu sync.Mutex
		listed := 0
		w := newWires()
		s, err := scheduler.New(scheduler.Config{Namespace: "test", Store: f.store, Members: wired{seat{f.gossip, "a"}, w}, Logger: slog.New(slog.DiscardHandler),
			Hooks: []scheduler.Hooks{{Called: func(_ context.Context, c scheduler.Call) {
				mu.Lock()
				defer mu.Unlock()
				if c.Name == "Lagging" {
					listed++
				}
			}}}})
		if err == nil {
			err = s.Add(jobs.Job{Name: "j", Schedule: jobs.Every(time.Hour), Run: quick})
		}
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), 15*time.Second)
		defer stop()
		var all sync.WaitGroup
		all.Go(func() { _ = s.Run(ctx) })
		time.Sleep(4 * time.Second)
		mu.Lock()
		before := listed
		mu.Unlock()
		heard := 0
		for range 10_000 {
			time.Sleep(time.Millisecond)
			select {
			case w.end("a") <- struct{}{}:
				heard++
			default:
			}
		}
		mu.Lock()
		n := listed - before
		mu.Unlock()
		t.Logf("of 10,000 hints in 10 s %d were heard, and made %d listings", heard, n)
		if n < 90 || n > 111 || heard > 111 {
			t.Errorf("%d hints were heard and %d listings made in 10 s, want about 100", heard, n)
		}
		all.Wait()
	})
}
