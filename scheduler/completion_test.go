package scheduler_test

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/sqlite"
	"github.com/belfry-go/belfry/internal/completion"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/scheduler"
)

// completes ends the run in the store as a driver's transaction does that commits at this instant.
func (f *fleet) completes(o jobs.Occurrence) error {
	done, err := completion.Of(o)
	if err != nil {
		return err
	}
	a, err := f.store.Finish(context.Background(), o.Namespace, []idempotency.Finish{done})
	if err == nil && a[0] != idempotency.Finished {
		err = jobs.ErrOvertaken
	}
	return err
}

// inTx is completes by a driver's InTx, which tells the scheduler.
func (f *fleet) inTx(ctx context.Context, o jobs.Occurrence) error {
	end, err := completion.Begin(ctx, o)
	if err != nil {
		return err
	}
	err = f.completes(o)
	end(err == nil)
	return err
}

// A run that its handler has completed is done, whatever the handler does then, for hooks and history alike; it is not
// started again.
func TestHandlerCompletes(t *testing.T) {
	for name, c := range map[string]struct {
		run      func(f *fleet) jobs.Handler
		finishes int // of the scheduler
		fails    bool
	}{
		"InTx, and no error": {func(f *fleet) jobs.Handler { return f.inTx }, 0, false},
		"InTx, and an error": {func(f *fleet) jobs.Handler {
			return func(ctx context.Context, o jobs.Occurrence) error { return errors.Join(f.inTx(ctx, o), errDeclined) }
		}, 0, true},
		"InTx, and a panic": {func(f *fleet) jobs.Handler {
			return func(ctx context.Context, o jobs.Occurrence) error { panic(f.inTx(ctx, o)) }
		}, 0, true},
		"Complete, and no error": {func(f *fleet) jobs.Handler {
			return func(_ context.Context, o jobs.Occurrence) error { return f.completes(o) }
		}, 1, false},
		"Complete, and an error": {func(f *fleet) jobs.Handler {
			return func(_ context.Context, o jobs.Occurrence) error { return errors.Join(f.completes(o), errDeclined) }
		}, 1, true},
		"InTx, and no return before the timeout": {func(f *fleet) jobs.Handler {
			return func(ctx context.Context, o jobs.Occurrence) error {
				err := f.inTx(ctx, o)
				<-time.After(20 * time.Second) // it ignores its ctx
				return err
			}
		}, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fleet) {
				var mu sync.Mutex
				var ends []scheduler.Finished
				starts, finishes := 0, 0
				s, err := scheduler.New(scheduler.Config{
					Namespace: "test", Store: f.store, Members: seat{f.gossip, "a"}, Lease: lease, Sweep: 200 * time.Millisecond,
					Logger: slog.New(slog.DiscardHandler),
					Hooks: []scheduler.Hooks{{
						Started:  func(context.Context, jobs.Occurrence) { mu.Lock(); starts++; mu.Unlock() },
						Finished: func(_ context.Context, x scheduler.Finished) { mu.Lock(); ends = append(ends, x); mu.Unlock() },
						Called: func(_ context.Context, c scheduler.Call) {
							mu.Lock()
							if c.Name == "Finish" {
								finishes++
							}
							mu.Unlock()
						},
					}},
				})
				if err == nil {
					err = s.Add(jobs.Job{Name: "j", Schedule: jobs.At(time.Now().Add(10 * time.Second)), Run: c.run(f), Timeout: 5 * time.Second})
				}
				if err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithTimeout(t.Context(), time.Minute)
				defer stop()
				if err := s.Run(ctx); err != nil {
					t.Error(err)
				}
				done := f.runs("j")[idempotency.Done]
				if len(done) != 1 || done[0].Attempt != 1 {
					t.Errorf("the store has %+v", f.runs("j"))
				}
				if starts != 1 || finishes != c.finishes || len(ends) != 1 || ends[0].Outcome != idempotency.Done || (ends[0].Err != nil) != c.fails {
					t.Errorf("%d starts, %d finishes, ends %+v; want 1, %d, and one that is done, with an error: %v", starts, finishes, ends, c.finishes, c.fails)
				}
			})
		})
	}
}

// A transaction that was rolled back completes nothing: the attempt failed, and another one follows.
func TestHandlerDoesNotComplete(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		attempts := 0
		r := f.start("a", jobs.Job{Name: "j", Schedule: jobs.At(time.Now().Add(10 * time.Second)), Run: func(ctx context.Context, o jobs.Occurrence) error {
			end, err := completion.Begin(ctx, o)
			if err != nil {
				return err
			}
			if attempts++; attempts == 1 {
				end(false)
				return errDeclined
			}
			end(false) // and again
			return f.inTx(ctx, o)
		}})
		time.Sleep(time.Minute)
		f.end(r)
		if done := f.runs("j")[idempotency.Done]; len(done) != 1 || done[0].Attempt != 2 || attempts != 2 {
			t.Errorf("after %d attempts the store has %+v", attempts, f.runs("j"))
		}
	})
}

// On a real store, in real time: each run has one effect and is done, though its handler fails after the commit.
func TestEffectOnSQLite(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "app.db")
	store, err := sqlite.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`create table charges (id text not null, fence integer not null)`); err != nil {
		t.Fatal(err)
	}
	ended := make(chan scheduler.Finished, 100)
	s, err := scheduler.New(scheduler.Config{
		Namespace: "test", Store: store, Logger: slog.New(slog.DiscardHandler),
		Hooks: []scheduler.Hooks{{Finished: func(_ context.Context, x scheduler.Finished) { ended <- x }}},
	})
	if err == nil {
		err = s.Add(jobs.Job{Name: "j", Schedule: jobs.Every(time.Second), Run: func(ctx context.Context, o jobs.Occurrence) error {
			err := sqlite.InTx(ctx, store, o, func(tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, `insert into charges values (?, ?)`, o.ID(), o.Fence)
				return err
			})
			return errors.Join(err, errDeclined)
		}})
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	for range 2 {
		if x := <-ended; x.Outcome != idempotency.Done || !errors.Is(x.Err, errDeclined) {
			t.Errorf("ended %+v", x)
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	runs := 0
	for r, err := range store.List(t.Context(), idempotency.Filter{Namespace: "test"}) {
		if err != nil || r.Outcome != idempotency.Done || r.Attempt != 1 {
			t.Errorf("the store has %+v, %v", r, err)
		}
		runs++
	}
	var effects, distinct int
	if err := db.QueryRow(`select count(*), count(distinct id) from charges`).Scan(&effects, &distinct); err != nil || effects != runs || distinct != runs || runs < 2 {
		t.Errorf("%d runs, %d effects, %d distinct, %v", runs, effects, distinct, err)
	}
}
