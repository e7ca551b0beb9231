package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

const night = 10 * time.Second

func nightly(run jobs.Handler) jobs.Job {
	return jobs.Job{Name: "renewals", Schedule: jobs.Every(night), Keys: keys(100), Run: run}
}

func TestThreeReplicasRunEachKeyOnce(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		a, b, c := f.start("a", nightly(quick)), f.start("b", nightly(quick)), f.start("c", nightly(quick))
		time.Sleep(3*night + 5*time.Second)
		for _, r := range []*replica{a, b, c} {
			if err := r.Ready(); err != nil {
				t.Error(err)
			}
		}
		f.end(a, b, c)
		if once, more := f.count(); once != 300 || more != 0 {
			t.Errorf("%d ran once, %d more than once; want 300 and 0", once, more)
		}
		if done := len(f.runs("renewals")[idempotency.Done]); done != 300 {
			t.Errorf("%d done, want 300", done)
		}
		if f.hedged != 0 {
			t.Errorf("%d claims were hedged in calm", f.hedged)
		}
	})
}

// A replica that is stopped hands over what is due next, burns no attempt and loses nothing.
func TestStopHandsOver(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		slow := func(ctx context.Context, o jobs.Occurrence) error {
			select {
			case <-time.After(4 * time.Second):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		a, b := f.start("a", nightly(slow)), f.start("b", nightly(slow))
		time.Sleep(night + time.Second)
		a.stop()
		if err := <-a.done; err != nil {
			t.Errorf("drain within its time: %v", err)
		}
		time.Sleep(10 * night)
		f.end(b)
		rows := f.runs("renewals")
		for _, r := range append(rows[idempotency.Failed], rows[idempotency.Missed]...) {
			t.Errorf("%s %v: outcome %d, %s", r.ID.Key, r.ID.Due, r.Outcome, r.Reason)
		}
		for _, r := range rows[idempotency.Done] {
			if r.Attempt != 1 || r.Crashes != 0 {
				t.Errorf("%s: %d attempts, %d crashes", r.ID.Key, r.Attempt, r.Crashes)
			}
		}
	})
}

// F13: a replica that cannot reach the store loses its session, tells so, and starves nobody.
func TestBlindReplica(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		a, b, c := f.start("a", nightly(quick)), f.start("b", nightly(quick)), f.start("c", nightly(quick))
		time.Sleep(night - 3*time.Second)
		a.door.set(true)
		time.Sleep(3*time.Second + 4*time.Second)
		if done := len(f.runs("renewals")[idempotency.Done]); done != 100 {
			t.Errorf("%d of 100 done 4 s after the due, with one blind replica", done)
		}
		if err := a.Ready(); err == nil || !strings.Contains(err.Error(), "the store fails") {
			t.Errorf("a blind replica says %v", err)
		}
		a.door.set(false)
		time.Sleep(night)
		if err := a.Ready(); err != nil {
			t.Errorf("after the store is back: %v", err)
		}
		f.end(a, b, c)
		if _, more := f.count(); more != 0 {
			t.Errorf("%d ran more than once", more)
		}
	})
}

// F27: an owner without the code starves nobody.
func TestReplicaWithoutTheCode(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		other := jobs.Job{Name: "other", Schedule: jobs.Every(time.Minute), Run: quick}
		single := jobs.Job{Name: "single", Schedule: jobs.Every(night), Run: quick}
		a, b, c := f.start("a", other), f.start("b", nightly(quick), single), f.start("c", nightly(quick), single)
		time.Sleep(3*night + 4*time.Second)
		f.end(a, b, c)
		if done := len(f.runs("renewals")[idempotency.Done]); done != 300 {
			t.Errorf("%d done, want 300", done)
		}
		if done := len(f.runs("single")[idempotency.Done]); done != 3 {
			t.Errorf("%d done, want 3", done)
		}
	})
}

// A listing that was read before a pass was saved must not make the replica
// stream and claim the same partitions again.
func TestOldListingsStartNothing(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		d := &door{Store: f.store, slow: 300 * time.Millisecond}
		a := f.startAt(d, "a", nightly(quick))
		time.Sleep(3*night + 5*time.Second)
		f.end(a)
		if done := len(f.runs("renewals")[idempotency.Done]); done != 300 || f.taken != 0 {
			t.Errorf("%d done, want 300; %d claimed again, want 0", done, f.taken)
		}
	})
}

// A busy owner whose handlers are slow, but get on, keeps its keys.
func TestBusyOwnerIsNotHedged(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		slow := func(context.Context, jobs.Occurrence) error { time.Sleep(7 * time.Second); return nil }
		job := jobs.Job{Name: "renewals", Schedule: jobs.Every(time.Hour), Keys: keys(100), Run: slow}
		a, b, c := f.start("a", job), f.start("b", job), f.start("c", job)
		time.Sleep(time.Hour + 10*time.Minute)
		f.end(a, b, c)
		if done := len(f.runs("renewals")[idempotency.Done]); done != 100 {
			t.Errorf("%d done, want 100", done)
		}
		if f.hedged != 0 {
			t.Errorf("%d claims were hedged", f.hedged)
		}
	})
}

// Many jobs due at once are more than the workers can begin with: they wait for
// their owner, whose workers turn over, and are not hedged.
func TestBusyOwnerOfManyJobs(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		slow := func(context.Context, jobs.Occurrence) error { time.Sleep(300 * time.Millisecond); return nil }
		var list []jobs.Job
		for i := range 20 {
			list = append(list, jobs.Job{Name: fmt.Sprintf("job-%02d", i), Schedule: jobs.Every(time.Hour), Keys: keys(60), Run: slow})
		}
		a, b, c := f.start("a", list...), f.start("b", list...), f.start("c", list...)
		time.Sleep(time.Hour + 5*time.Minute)
		f.end(a, b, c)
		if once, more := f.count(); once != 1200 || more != 0 || f.hedged != 0 {
			t.Errorf("%d ran once, %d more than once, %d hedged; want 1200, 0 and 0", once, more, f.hedged)
		}
	})
}

// F28, JB-01, JB-07: a panic, and a handler that ends its goroutine, are failed attempts with their story in the record.
func TestPanicsAndGoexit(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		once := jobs.Retry{Attempts: -1}
		every := jobs.Every(night)
		a := f.start("a",
			jobs.Job{Name: "value", Schedule: every, Retry: once, Run: func(context.Context, jobs.Occurrence) error { panic("x\x00y\xff") }},
			jobs.Job{Name: "nil", Schedule: every, Retry: once, Run: func(context.Context, jobs.Occurrence) error { panic(nil) }},
			jobs.Job{Name: "error", Schedule: every, Retry: once, Run: func(context.Context, jobs.Occurrence) error { panic(errDeclined) }},
			jobs.Job{Name: "exit", Schedule: every, Retry: once, Run: func(context.Context, jobs.Occurrence) error { runtime.Goexit(); return nil }},
			jobs.Job{Name: "good", Schedule: every, Run: quick},
		)
		time.Sleep(2*night + time.Second)
		f.end(a)
		for job, text := range map[string]string{"value": "x?y?", "nil": "panic", "error": "declined", "exit": "Goexit"} {
			failed := f.runs(job)[idempotency.Failed]
			if len(failed) != 2 {
				t.Errorf("%s: %d failed, want 2", job, len(failed))
				continue
			}
			if stack := strings.Contains(failed[0].Text, "handler.go:"); stack != (job != "exit") {
				t.Errorf("%s: its stack in the record: %t", job, stack)
			}
			if r := failed[0]; r.Reason != "panic" || !strings.Contains(r.Text, text) || r.Attempt != 1 {
				t.Errorf("%s: %q after %d attempts: %.80s", job, r.Reason, r.Attempt, r.Text)
			}
		}
		if done := len(f.runs("good")[idempotency.Done]); done != 2 {
			t.Errorf("good: %d done, want 2", done)
		}
	})
}

// F31: what always fails ends failed after its attempts, with waits between; what is permanent at once.
func TestRetries(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		var tries, permanent atomic.Int64
		a := f.start("a",
			jobs.Job{Name: "flaky", Schedule: jobs.Every(time.Minute), Run: func(_ context.Context, o jobs.Occurrence) error {
				tries.Add(1)
				if o.Attempt < 3 {
					return errDeclined
				}
				return nil
			}},
			jobs.Job{Name: "hopeless", Schedule: jobs.Every(time.Minute), Retry: jobs.Retry{Attempts: 4, First: 100 * time.Millisecond},
				Run: func(context.Context, jobs.Occurrence) error { return errors.New(strings.Repeat("é", 100_000)) }},
			jobs.Job{Name: "permanent", Schedule: jobs.Every(time.Minute), Run: func(context.Context, jobs.Occurrence) error {
				permanent.Add(1)
				return fmt.Errorf("card: %w", jobs.Permanent(errDeclined))
			}},
		)
		time.Sleep(time.Minute + 30*time.Second)
		f.end(a)
		if r := f.runs("flaky")[idempotency.Done]; tries.Load() != 3 || len(r) != 1 || r[0].Attempt != 3 {
			t.Errorf("flaky: %d tries, %+v", tries.Load(), r)
		}
		r := f.runs("hopeless")[idempotency.Failed]
		if len(r) != 1 || r[0].Attempt != 4 || r[0].Reason != "exhausted" || len(r[0].Text) > 64<<10 || !strings.HasSuffix(r[0].Text, "(cut)") {
			t.Errorf("hopeless: %d failed", len(r))
		}
		if r := f.runs("permanent")[idempotency.Failed]; permanent.Load() != 1 || len(r) != 1 || r[0].Reason != "permanent" || r[0].Text != "card: declined" {
			t.Errorf("permanent: %+v", r)
		}
	})
}

// F29: a handler that never returns loses its run at the timeout, not its worker; others run on.
func TestHandlerThatNeverReturns(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		release := make(chan struct{})
		hang := func(_ context.Context, o jobs.Occurrence) error {
			if o.Attempt == 1 {
				<-release
			}
			return nil
		}
		a := f.start("a",
			jobs.Job{Name: "hang", Schedule: jobs.Every(time.Minute), Timeout: 3 * time.Second, Run: hang},
			jobs.Job{Name: "good", Schedule: jobs.Every(time.Minute), Run: quick})
		time.Sleep(time.Minute + 20*time.Second)
		if r := f.runs("hang")[idempotency.Done]; len(r) != 1 || r[0].Attempt != 2 {
			t.Errorf("hang: %+v", r)
		}
		if f.stuck != 1 {
			t.Errorf("%d were reported stuck, want 1", f.stuck)
		}
		if len(f.runs("good")[idempotency.Done]) != 1 {
			t.Error("another job was held up")
		}
		close(release)
		time.Sleep(time.Second)
		f.end(a)
		if r := f.runs("hang")[idempotency.Done]; len(r) != 1 || r[0].Attempt != 2 {
			t.Errorf("a late return changed the record: %+v", r)
		}
	})
}

// A handler that ignores its context is named when the replica stops without it.
func TestDrainCutsOff(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		release := make(chan struct{})
		a := f.start("a", jobs.Job{Name: "hang", Schedule: jobs.Every(time.Minute),
			Run: func(context.Context, jobs.Occurrence) error { <-release; return nil }})
		time.Sleep(time.Minute + time.Second)
		a.stop()
		err := <-a.done
		if err == nil || !strings.Contains(err.Error(), "hang/hang@") {
			t.Errorf("Run returned %v", err)
		}
		close(release)
		f.end(a)
		b := f.start("b", jobs.Job{Name: "hang", Schedule: jobs.Every(time.Minute), Run: quick})
		time.Sleep(20 * time.Second)
		f.end(b)
		if r := f.runs("hang")[idempotency.Done]; len(r) != 1 || r[0].Crashes != 1 {
			t.Errorf("the run that was cut off: %+v", r)
		}
	})
}

// A KeySource that fails half-way, panics, or yields what is no key, loses nothing.
func TestKeySourceFails(t *testing.T) {
	type source = func(ctx context.Context, r jobs.KeyRange) iter.Seq2[string, error]
	all := keys(100)
	for name, fail := range map[string]func(yield func(string, error) bool){
		"error": func(yield func(string, error) bool) { yield("", errDeclined) },
		"panic": func(func(string, error) bool) { panic("broken source") },
		"key":   func(yield func(string, error) bool) { yield(strings.Repeat("k", 256), nil) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fleet) {
				var bad atomic.Int64
				bad.Store(6)
				src := func(ctx context.Context, r jobs.KeyRange) iter.Seq2[string, error] {
					return func(yield func(string, error) bool) {
						n := 0
						for k, err := range all.Keys(ctx, r) {
							if n++; n == 10 && bad.Add(-1) >= 0 {
								fail(yield)
								if name != "key" {
									return
								}
							}
							if !yield(k, err) {
								return
							}
						}
					}
				}
				job := nightly(quick)
				job.Keys = jobs.KeyFunc(source(src))
				a, b := f.start("a", job), f.start("b", job)
				time.Sleep(night + 9*time.Second)
				f.end(a, b)
				if once, more := f.count(); once != 100 || more != 0 {
					t.Errorf("%d ran once, %d more than once; want 100 and 0", once, more)
				}
				if bad.Load() >= 6 {
					t.Error("the source was never asked")
				}
			})
		})
	}
}

// ST-08, JB-10: a store that is away for a while stops new runs, and loses none.
func TestStoreOutage(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		var started atomic.Int64
		minutely := jobs.Job{Name: "minutely", Schedule: jobs.Every(time.Minute), Run: func(context.Context, jobs.Occurrence) error {
			started.Add(1)
			time.Sleep(2 * time.Second)
			return nil
		}}
		a := f.start("a", minutely)
		time.Sleep(time.Minute + time.Second) // in mid-run
		a.door.set(true)
		time.Sleep(5 * time.Minute)
		if n := started.Load(); n != 1 {
			t.Errorf("%d runs started, want the one before the outage", n)
		}
		a.door.set(false)
		time.Sleep(time.Minute)
		f.end(a)
		rows := f.runs("minutely")
		for o, list := range rows {
			for _, r := range list {
				t.Logf("%v: %+v", o, r)
			}
		}
		if len(rows[idempotency.Failed]) != 0 || len(rows[idempotency.Done]) < 3 {
			t.Errorf("%d done, %d failed", len(rows[idempotency.Done]), len(rows[idempotency.Failed]))
		}
		if first := rows[idempotency.Done][0]; first.Attempt != 1 || first.Crashes != 0 {
			t.Errorf("the run that ended in the outage was repeated: %+v", first)
		}
		var missed int64
		for r := range f.store.Ranges(t.Context(), "test", "minutely") {
			missed += r.Count
		}
		if int(missed)+len(rows[idempotency.Done]) != 7 {
			t.Errorf("%d missed and %d done; want 7 in all", missed, len(rows[idempotency.Done]))
		}
	})
}
