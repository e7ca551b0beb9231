package scheduler_test

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/scheduler"
)

// book is a log that a test can read.
type book struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *book) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *book) says(word string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Contains(b.buf.String(), word)
}

// alone runs one replica for a while, and returns what it logged at Warn and above.
func alone(t *testing.T, store idempotency.Store, d time.Duration, list ...jobs.Job) *book {
	t.Helper()
	b := &book{}
	s, err := scheduler.New(scheduler.Config{Namespace: "test", Store: store, Lease: lease, Concurrency: 8,
		Logger: slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Add(list...); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), d)
	defer stop()
	if err := s.Run(ctx); err != nil {
		t.Error(err)
	}
	return b
}

// source is a KeySource that ignores what it is asked for.
func source(f func(ctx context.Context, yield func(string, error) bool)) jobs.KeySource {
	return jobs.AllKeys(func(ctx context.Context) iter.Seq2[string, error] {
		return func(yield func(string, error) bool) { f(ctx, yield) }
	})
}

// tally counts the runs by key.
type tally struct {
	mu sync.Mutex
	n  map[string]int
}

func (l *tally) run(_ context.Context, o jobs.Occurrence) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n == nil {
		l.n = map[string]int{}
	}
	l.n[o.Key]++
	return nil
}

// A key that a source yields twice runs once: that is the law of KeySource, and it makes no difference between guarantees.
func TestEfficiencyKeyYieldedTwice(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		var l tally
		twice := source(func(_ context.Context, yield func(string, error) bool) {
			for _, k := range []string{"a", "b", "a"} {
				time.Sleep(50 * time.Millisecond)
				if !yield(k, nil) {
					return
				}
			}
		})
		alone(t, f.store, night+5*time.Second, jobs.Job{Name: "j", Schedule: jobs.Every(night), Guarantee: jobs.Efficiency, Keys: twice, Run: l.run})
		if l.n["a"] != 1 || l.n["b"] != 1 {
			t.Errorf("ran %v", l.n)
		}
	})
}

// An efficiency job's source that fails half-way is asked again, as the log says, and no key is lost or repeated by that.
func TestEfficiencySourceFailsHalfWay(t *testing.T) {
	for name, order := range map[string]string{"ascending": "abcd", "mixed": "dbac"} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fleet) {
				var l tally
				asked := 0
				half := source(func(_ context.Context, yield func(string, error) bool) {
					asked++
					for i, k := range strings.Split(order, "") {
						if i == 3 && asked == 1 {
							yield("", errDeclined)
							return
						}
						if !yield(k, nil) {
							return
						}
					}
				})
				alone(t, f.store, night+8*time.Second, jobs.Job{Name: "j", Schedule: jobs.Every(night), Guarantee: jobs.Efficiency, Keys: half, Run: l.run})
				for _, k := range strings.Split(order, "") {
					if l.n[k] != 1 {
						t.Errorf("%s ran %d times", k, l.n[k])
					}
				}
			})
		})
	}
}

// A source that does not answer holds its due back; the log says so before the horizon ends.
func TestSilentSourceIsTold(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		silent := source(func(ctx context.Context, yield func(string, error) bool) { <-ctx.Done() })
		log := alone(t, f.store, time.Hour+5*time.Minute, jobs.Job{Name: "j", Schedule: jobs.Every(time.Hour), Keys: silent, Run: quick})
		if !log.says("KeySource") {
			t.Errorf("five minutes of silence, and the log says: %q", log.buf.String())
		}
	})
}

// A store that fails is a thing an operator acts on: the log gives its error, not only that the session was lost.
func TestStoreErrorIsLogged(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		log := alone(t, failing{f.store}, 30*time.Second, jobs.Job{Name: "j", Schedule: jobs.Every(night), Run: quick})
		if !log.says("the disk is full") {
			t.Errorf("the log says: %q", log.buf.String())
		}
	})
}

// failing is a store that opens sessions and does nothing else.
type failing struct{ idempotency.Store }

var errFull = errors.New("the disk is full; free space")

func (failing) RenewSession(context.Context, idempotency.Session) (idempotency.Renewal, error) {
	return idempotency.Renewal{}, errFull
}

func (failing) Declare(context.Context, idempotency.Session, int64, []idempotency.Declaration) ([]idempotency.Entry, error) {
	return nil, errFull
}

// A store whose clock steps back makes its jobs wait until it has caught up. That is safe, and has to be told.
func TestStoreClockBackIsLogged(t *testing.T) {
	bubble(t, func(t *testing.T, _ *fleet) {
		from := time.Now()
		back := idempotency.NewMemory(func() time.Time {
			now := time.Now()
			if now.Sub(from) > time.Minute {
				now = now.Add(-time.Hour)
			}
			return now
		})
		log := alone(t, back, 10*time.Minute, jobs.Job{Name: "j", Schedule: jobs.Every(10 * time.Second), Run: quick})
		if !log.says("clock") {
			t.Errorf("nothing ran for nine minutes, and the log says: %q", log.buf.String())
		}
	})
}

// What can never run is refused: a Scheduler runs once.
func TestAddAfterRun(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		r := f.start("a", nightly(quick))
		f.end(r)
		if err := r.Add(jobs.Job{Name: "late", Schedule: jobs.Every(night), Run: quick}); err == nil {
			t.Error("Add took a job that will never run")
		}
	})
}

// Bad input is refused at the door, not met with a panic.
func TestNilMiddleware(t *testing.T) {
	t.Parallel()
	defer func() {
		if v := recover(); v != nil {
			t.Errorf("panic: %v", v)
		}
	}()
	s, err := scheduler.New(scheduler.Config{Middleware: []scheduler.Middleware{nil}})
	if err != nil {
		return
	}
	if err := s.Add(jobs.Job{Name: "j", Schedule: jobs.Every(time.Hour), Run: quick}); err == nil {
		t.Error("New and Add took a nil Middleware")
	}
}
