package scheduler_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/scheduler"
)

// await blocks until the context ends, and returns why it did.
func await(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }

// F29, JB-03: progress keeps a handler going, as often as it likes; without it its context ends, and the record has its last word.
func TestProgress(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		var ended atomic.Pointer[time.Time]
		var cause atomic.Value
		began := time.Now()
		a := f.start("a", jobs.Job{Name: "j", Schedule: jobs.At(began.Add(time.Minute).Truncate(time.Second)), StallAfter: 3 * time.Second, Retry: jobs.Retry{Attempts: -1},
			Run: func(ctx context.Context, _ jobs.Occurrence) error {
				for range 20 {
					for range 1000 {
						jobs.Progress(ctx, "still counting")
					}
					time.Sleep(time.Second)
				}
				jobs.Progress(ctx, "customer 20 of 30")
				err := await(ctx)
				now := time.Now()
				ended.Store(&now)
				cause.Store(err)
				jobs.Progress(ctx, "too late")
				return err
			}})
		time.Sleep(2 * time.Minute)
		f.end(a)
		if err, _ := cause.Load().(error); !errors.Is(err, jobs.ErrStalled) {
			t.Fatalf("the context ended with %v, want ErrStalled", err)
		}
		if after := ended.Load().Sub(began); after < 83*time.Second || after > 84500*time.Millisecond {
			t.Errorf("it ended after %v, want 83 s", after)
		}
		r := f.runs("j")[idempotency.Failed]
		if len(r) != 1 || r[0].Reason != "stalled" || !strings.HasSuffix(r[0].Text, "\nlast progress: customer 20 of 30") {
			t.Errorf("the record: %+v", r)
		}
	})
}

// locked is a buffer for a log.
type locked struct {
	mu sync.Mutex
	bytes.Buffer
}

func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(b)
}

// Each line of a run's logger says which run it is of.
func TestRunLogger(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		var log locked
		s, err := scheduler.New(scheduler.Config{Namespace: "test", Store: f.store, Members: seat{f.gossip, "a"}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err == nil {
			err = s.Add(jobs.Job{Name: "j", Schedule: jobs.Every(time.Minute), Run: func(ctx context.Context, _ jobs.Occurrence) error {
				jobs.Logger(ctx).Info("charged", "cents", 1200)
				return nil
			}})
		}
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		f.wg.Go(func() { s.Run(ctx) })
		time.Sleep(time.Minute + time.Second)
		stop()
		f.wg.Wait()
		for line := range strings.Lines(log.String()) {
			if strings.Contains(line, "charged") {
				for _, want := range []string{"namespace=test", "replica=a", "job=j", "key=j", "due=2000-01-01T00:01:00.000Z fence=", "attempt=1", "cents=1200"} {
					if !strings.Contains(line, want) {
						t.Errorf("no %s in %s", want, line)
					}
				}
				return
			}
		}
		t.Errorf("no line of the handler in:\n%s", log.String())
	})
}

// JB-04: handlers that ignore their contexts take workers, no more than there are, and are reported. Nothing blocks: other
// replicas run what this one cannot.
func TestStuckHandlersAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		release := make(chan struct{})
		var at, most atomic.Int64
		deaf := func(context.Context, jobs.Occurrence) error {
			if n := at.Add(1); n > most.Load() {
				most.Store(n)
			}
			<-release
			at.Add(-1)
			return nil
		}
		list := []jobs.Job{
			{Name: "deaf", Schedule: jobs.Every(time.Minute), Timeout: 30 * time.Second, Overlap: jobs.OverlapAllow, Retry: jobs.Retry{Attempts: -1}, Run: deaf},
			{Name: "good", Schedule: jobs.Every(time.Minute), Run: quick},
		}
		a := f.start("a", list...)
		time.Sleep(time.Hour)
		if n := most.Load(); n > 8 || n < 7 {
			t.Errorf("%d handlers at work at once, want the workers that there are, 8 or one less", n)
		}
		if int64(f.stuck) < at.Load() {
			t.Errorf("%d are stuck, %d were reported", at.Load(), f.stuck)
		}
		if failed := f.runs("deaf")[idempotency.Failed]; len(failed) < 7 || failed[0].Reason != "timeout" {
			t.Errorf("%d of its runs are recorded as failed", len(failed))
		}
		close(release)
		time.Sleep(10 * time.Minute)
		f.end(a)
		if n := len(f.runs("good")[idempotency.Done]); n < 10 {
			t.Errorf("%d good runs are done", n)
		}
	})
}

// JB-05: a run of 90 s each minute. The dues in between are skipped with the reason, and nothing starts off the schedule.
func TestRunsLongerThanTheInterval(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		a := f.start("a", jobs.Job{Name: "j", Schedule: jobs.Every(time.Minute), Run: func(context.Context, jobs.Occurrence) error { time.Sleep(90 * time.Second); return nil }})
		time.Sleep(10*time.Minute + 59*time.Second)
		f.end(a)
		runs := f.runs("j")
		if done, skipped := runs[idempotency.Done], runs[idempotency.Skipped]; len(done) != 5 || len(skipped) != 5 || skipped[0].Reason != "overlap" {
			t.Fatalf("%d done, %d skipped; want 5 and 5: %+v", len(done), len(skipped), runs)
		}
		for _, r := range runs[idempotency.Done] {
			if r.Started.Sub(r.ID.Due) > time.Second {
				t.Errorf("%v started at %v", r.ID.Due, r.Started)
			}
		}
	})
}

// SD-01, SD-02, F65: told to stop, a replica starts nothing more and waits for its handlers up to Drain, or until it is hurried;
// those are cut off and their runs go on elsewhere at once.
func TestDrainAndHurry(t *testing.T) {
	for name, c := range map[string]struct {
		takes  time.Duration // from the stop
		hurry  time.Duration // after the stop; 0: never
		within time.Duration
		done   bool
	}{
		"in time":     {4 * time.Second, 0, 5 * time.Second, true},
		"grace over":  {time.Minute, 0, 6 * time.Second, false},
		"hurried":     {time.Minute, time.Second, 2 * time.Second, false},
		"hurry first": {time.Minute, -1, 500 * time.Millisecond, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fleet) {
				j := jobs.Job{Name: "j", Schedule: jobs.At(time.Now().Add(time.Minute).Truncate(time.Second)), Run: func(ctx context.Context, o jobs.Occurrence) error {
					select {
					case <-time.After(c.takes + time.Second):
						return nil
					case <-ctx.Done():
						return context.Cause(ctx)
					}
				}}
				a := f.start("a", j)
				time.Sleep(time.Minute + time.Second)
				b := f.start("b", j)
				time.Sleep(500 * time.Millisecond)
				stopped := time.Now()
				if c.hurry < 0 {
					a.Hurry()
				}
				a.stop()
				if c.hurry > 0 {
					time.Sleep(c.hurry)
					a.Hurry()
				}
				if err := <-a.done; err != nil {
					t.Errorf("Run returned %v", err)
				}
				a.Hurry() // of what has ended: nothing
				if d := time.Since(stopped); d > c.within {
					t.Errorf("it stopped after %v, want %v at most", d, c.within)
				}
				time.Sleep(2 * time.Minute)
				f.end(a, b)
				runs := f.runs("j")[idempotency.Done]
				if once, _ := f.count(); len(runs) != 1 || runs[0].Attempt != 1 || runs[0].Crashes != 0 || (once == 1) != c.done {
					t.Errorf("ran %v; the record: %+v", f.ran, runs)
				}
			})
		})
	}
}

// ST-03: a run whose replica died does not keep the next due from running.
func TestCrashDoesNotBlockTheNextDue(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		release := make(chan struct{})
		defer close(release)
		j := jobs.Job{Name: "j", Schedule: jobs.Every(time.Minute), Crash: jobs.CrashAbandon}
		j.Run = func(context.Context, jobs.Occurrence) error { <-release; return nil }
		a := f.start("a", j)
		time.Sleep(time.Minute + time.Second)
		a.door.set(true) // as good as dead
		f.gossip.set("a", "")
		j.Run = quick
		b := f.start("b", j)
		time.Sleep(time.Minute + 10*time.Second)
		b.stop()
		runs := f.runs("j")
		if failed, done := runs[idempotency.Failed], runs[idempotency.Done]; len(failed) != 1 || failed[0].Reason != "abandoned" || len(done) != 1 {
			t.Errorf("%+v; want the first abandoned, the second done", runs)
		}
		a.stop()
		<-a.done
	})
}

// ST-04, ST-05: a replica that loses the store alone ends its handlers before its lease is over, so that none overlaps with
// the one of who takes the run up; what it writes later is refused.
func TestCutOffEndsItsHandlersInTime(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		var ended, again atomic.Pointer[time.Time]
		var cause atomic.Value
		j := jobs.Job{Name: "j", Schedule: jobs.At(time.Now().Add(time.Minute).Truncate(time.Second))}
		j.Run = func(ctx context.Context, o jobs.Occurrence) error {
			now := time.Now()
			if ended.Load() != nil {
				again.Store(&now)
				return nil
			}
			cause.Store(await(ctx))
			now = time.Now()
			ended.Store(&now)
			return errDeclined
		}
		a := f.start("a", j)
		time.Sleep(time.Minute + 500*time.Millisecond)
		b := f.start("b", j)
		time.Sleep(500 * time.Millisecond)
		a.door.set(true)
		time.Sleep(20 * time.Second)
		a.door.set(false)
		time.Sleep(10 * time.Second)
		f.end(a, b)
		if err, _ := cause.Load().(error); !errors.Is(err, jobs.ErrSessionLost) {
			t.Fatalf("the context ended with %v", err)
		}
		if again.Load() == nil || !again.Load().After(*ended.Load()) {
			t.Errorf("ended at %v, taken up at %v", ended.Load(), again.Load())
		}
		if r := f.runs("j")[idempotency.Done]; len(r) != 1 || r[0].Crashes != 1 || r[0].Replica != "b" {
			t.Errorf("the record: %+v", r)
		}
	})
}
