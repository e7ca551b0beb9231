package storetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/internal/completion"
	"github.com/belfry-go/belfry/jobs"
)

// Effects is a driver whose transactions complete runs; T is the transaction's type. An effect is one note, a row with a
// text, in a table of the application's.
type Effects[T any] struct {
	Store Store

	InTx     func(ctx context.Context, o jobs.Occurrence, f func(T) error) error
	Complete func(ctx context.Context, tx T, o jobs.Occurrence) error

	// Begin begins a transaction of the application's; the caller ends it by either function.
	Begin func(ctx context.Context) (tx T, commit, rollback func() error, err error)

	Note  func(ctx context.Context, tx T, text string) error
	Notes func(t *testing.T) []string // committed, ascending

	// OneWriter says that nobody else writes while an effect is under way.
	OneWriter bool
}

// effects is what a law of effects works with.
type effects[T any] struct {
	*bundle
	Effects[T]
	Store Store // of both
}

// RunEffects tests what a driver says of InTx and Complete. open opens a store and a table of notes, empty, for each
// subtest. The subtests run in parallel.
func RunEffects[T any](t *testing.T, open func(t *testing.T) Effects[T]) {
	for _, l := range []struct {
		name string
		test func(e *effects[T])
	}{
		{"CommitTogether", effectsCommitTogether[T]},
		{"OvertakenBefore", effectsOvertakenBefore[T]},
		{"OvertakenMeanwhile", effectsOvertakenMeanwhile[T]},
		{"EndRecordedBefore", effectsEndRecordedBefore[T]},
		{"ErrorRollsBack", effectsErrorRollsBack[T]},
		{"PanicRollsBack", effectsPanicRollsBack[T]},
		{"GoexitRollsBack", effectsGoexitRollsBack[T]},
		{"NonsenseIsRefused", effectsNonsense[T]},
		{"ContextBounds", effectsContextBounds[T]},
		{"OncePerRun", effectsOncePerRun[T]},
		{"JoinAnOpenTransaction", effectsJoin[T]},
		{"JoinOvertaken", effectsJoinOvertaken[T]},
		{"OneOfManyHolders", effectsOneOfMany[T]},
	} {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			e := open(t)
			l.test(&effects[T]{bundle: &bundle{T: t, Harness: Harness{Store: e.Store}, lease: time.Hour}, Effects: e, Store: e.Store})
		})
	}
}

// run is one that is running, and its occurrence as the handler gets it.
func (e *effects[T]) run(r *replica, ago time.Duration) (idempotency.Run, jobs.Occurrence) {
	e.Helper()
	x := r.runs(1, e.ago(ago))[0]
	if x.State != idempotency.Running {
		e.Fatalf("the run is %+v, not running", x)
	}
	return x, of(x.ID, x.Fence)
}

func of(id idempotency.ID, fence int64) jobs.Occurrence {
	return jobs.Occurrence{Namespace: namespace, Job: id.Job, Key: id.Key, Due: id.Due, Request: id.Request, Attempt: 1, Fence: fence}
}

// overtake lets another replica take the run up, and returns its fence.
func (e *effects[T]) overtake(holder *replica, x idempotency.Run) int64 {
	e.Helper()
	holder.close()
	other := e.ready("other", "h1")
	other.mark(holder)
	return other.wins(other.takeUp(x.ID, x.Fence)).Fence
}

func (e *effects[T]) wantNotes(notes ...string) {
	e.Helper()
	if got := e.Notes(e.T); !slices.Equal(got, notes) {
		e.Fatalf("the effects are %q, want %q", got, notes)
	}
}

func (e *effects[T]) wantRow(x idempotency.Run, state idempotency.State, fence int64) {
	e.Helper()
	row := e.row(x.ID)
	if row.State != state || row.Fence != fence {
		e.Fatalf("the run is %+v, want state %d with fence %d", row, state, fence)
	}
}

func (e *effects[T]) note(text string) func(T) error {
	return func(tx T) error { return e.Note(e.Context(), tx, text) }
}

// F05: the effect and the completion are one commit, and the run is as if it had been finished.
func effectsCommitTogether[T any](e *effects[T]) {
	r := e.ready("a", "h1")
	x, o := e.run(r, 2*time.Minute)
	o.Attempt = 3
	if err := e.InTx(e.Context(), o, e.note("charged")); err != nil {
		e.Fatal(err)
	}
	e.wantNotes("charged")
	row := e.row(x.ID)
	want(e.T, "outcome", row.Outcome, idempotency.Done)
	want(e.T, "attempts", row.Attempt, 3)
	want(e.T, "mine", len(r.mine()), 0)
	if row.Finished.Before(row.Started) || row.Reason != "" || !row.Wake.IsZero() {
		e.Fatalf("the row is %+v", row)
	}
	e.finishes(idempotency.Already, done(x.ID, x.Fence))
	e.finishes(idempotency.Completed, waits(x.ID, x.Fence, e.ago(0)))
	e.run(r, time.Minute) // its key is free again
}

// F10: who was overtaken leaves nothing behind, and learns it.
func effectsOvertakenBefore[T any](e *effects[T]) {
	r := e.ready("a", "h1")
	x, o := e.run(r, time.Minute)
	fence := e.overtake(r, x)
	if err := e.InTx(e.Context(), o, e.note("late")); !errors.Is(err, jobs.ErrOvertaken) {
		e.Fatalf("InTx of an overtaken holder: %v, want ErrOvertaken", err)
	}
	e.wantNotes()
	e.wantRow(x, idempotency.Running, fence)
	if err := e.InTx(e.Context(), of(x.ID, fence), e.note("in time")); err != nil {
		e.Fatal(err)
	}
	e.wantNotes("in time")
}

// The take-up comes after the transaction has begun and read: at isolation levels with a snapshot the database itself
// refuses the completion.
func effectsOvertakenMeanwhile[T any](e *effects[T]) {
	if e.OneWriter {
		e.Skip("nobody takes up while an effect is under way")
	}
	r := e.ready("a", "h1")
	x, o := e.run(r, time.Minute)
	var fence int64
	err := e.InTx(e.Context(), o, func(tx T) error {
		err := e.Note(e.Context(), tx, "late")
		fence = e.overtake(r, x)
		return err
	})
	if !errors.Is(err, jobs.ErrOvertaken) {
		e.Fatalf("InTx of a holder that was overtaken meanwhile: %v, want ErrOvertaken", err)
	}
	e.wantNotes()
	e.wantRow(x, idempotency.Running, fence)
}

// An attempt whose end is recorded, such as its timeout, cannot complete.
func effectsEndRecordedBefore[T any](e *effects[T]) {
	r := e.ready("a", "h1")
	x, o := e.run(r, time.Minute)
	e.finishes(idempotency.Finished, waits(x.ID, x.Fence, e.ago(0)))
	if err := e.InTx(e.Context(), o, e.note("late")); !errors.Is(err, jobs.ErrOvertaken) {
		e.Fatalf("InTx of an attempt that has timed out: %v, want ErrOvertaken", err)
	}
	e.wantNotes()
	e.wantRow(x, idempotency.Waiting, x.Fence)
}

func effectsErrorRollsBack[T any](e *effects[T]) {
	r := e.ready("a", "h1")
	x, o := e.run(r, time.Minute)
	declined := errors.New("declined")
	ctx, mark := completion.With(e.Context(), o)
	for range 3 {
		err := e.InTx(ctx, o, func(tx T) error { return errors.Join(e.Note(ctx, tx, "no"), declined) })
		if !errors.Is(err, declined) || errors.Is(err, jobs.ErrOvertaken) {
			e.Fatalf("InTx: %v, want the function's error", err)
		}
	}
	if err := e.InTx(ctx, o, func(T) error { return declined }); err != declined {
		e.Fatalf("InTx: %v, want the function's error as it is", err)
	}
	e.wantNotes()
	e.wantRow(x, idempotency.Running, x.Fence)
	want(e.T, "committed", mark.Committed(), false)
	if err := e.InTx(ctx, o, e.note("then")); err != nil || !mark.Committed() {
		e.Fatalf("after errors of the function: %v, committed %v", err, mark.Committed())
	}
	e.wantNotes("then")
}

func effectsPanicRollsBack[T any](e *effects[T]) {
	r := e.ready("a", "h1")
	x, o := e.run(r, time.Minute)
	ctx, mark := completion.With(e.Context(), o)
	func() {
		defer func() { want(e.T, "panic", recover(), any("lost")) }()
		err := e.InTx(ctx, o, func(tx T) error {
			if err := e.Note(ctx, tx, "no"); err != nil {
				return err
			}
			panic("lost")
		})
		e.Fatalf("InTx returned %v", err)
	}()
	e.wantNotes()
	e.wantRow(x, idempotency.Running, x.Fence)
	want(e.T, "committed", mark.Committed(), false)
	if err := e.InTx(ctx, o, e.note("then")); err != nil {
		e.Fatal(err)
	}
}

func effectsGoexitRollsBack[T any](e *effects[T]) {
	r := e.ready("a", "h1")
	x, o := e.run(r, time.Minute)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_ = e.InTx(e.Context(), o, func(tx T) error {
			_ = e.Note(e.Context(), tx, "no")
			runtime.Goexit()
			return nil
		})
	}()
	<-gone
	e.wantNotes()
	e.wantRow(x, idempotency.Running, x.Fence)
	if err := e.InTx(e.Context(), o, e.note("then")); err != nil {
		e.Fatal(err)
	}
}

// What cannot be a run of this store is refused before the function is called, or changes nothing.
func effectsNonsense[T any](e *effects[T]) {
	r := e.ready("a", "h1")
	x, o := e.run(r, time.Minute)
	for name, change := range map[string]func(*jobs.Occurrence){
		"an efficiency job":  func(o *jobs.Occurrence) { o.Fence = 0 },
		"a negative fence":   func(o *jobs.Occurrence) { o.Fence = -1 },
		"no namespace":       func(o *jobs.Occurrence) { o.Namespace = "" },
		"a long key":         func(o *jobs.Occurrence) { o.Key = strings.Repeat("k", 256) },
		"a due between":      func(o *jobs.Occurrence) { o.Due = o.Due.Add(time.Millisecond) },
		"a run of no row":    func(o *jobs.Occurrence) { o.Key = "another" },
		"another namespace":  func(o *jobs.Occurrence) { o.Namespace = "other" },
		"a fence to come":    func(o *jobs.Occurrence) { o.Fence += 1000 },
		"a run of a request": func(o *jobs.Occurrence) { o.Request = "r1" },
	} {
		other := o
		change(&other)
		if err := e.InTx(e.Context(), other, e.note(name)); err == nil {
			e.Fatalf("%s: InTx succeeded", name)
		}
		tx, _, rollback, err := e.Begin(e.Context())
		if err != nil {
			e.Fatal(err)
		}
		if err := e.Complete(e.Context(), tx, other); err == nil {
			e.Fatalf("%s: Complete succeeded", name)
		}
		if err := rollback(); err != nil {
			e.Fatal(err)
		}
	}
	if err := e.InTx(e.Context(), o, nil); err == nil {
		e.Fatal("InTx without a function succeeded")
	}
	e.wantNotes()
	e.wantRow(x, idempotency.Running, x.Fence)
}

// A context that ends ends the transaction, before or while the function runs.
func effectsContextBounds[T any](e *effects[T]) {
	r := e.ready("a", "h1")
	x, o := e.run(r, time.Minute)
	ctx, cancel := context.WithCancelCause(e.Context())
	err := e.InTx(ctx, o, func(tx T) error {
		err := e.Note(e.Context(), tx, "no")
		cancel(jobs.ErrSessionLost)
		return err
	})
	if err == nil || errors.Is(err, jobs.ErrOvertaken) {
		e.Fatalf("InTx whose context ended meanwhile: %v", err)
	}
	if err := e.InTx(ctx, o, e.note("no")); !errors.Is(err, context.Canceled) && !errors.Is(err, jobs.ErrSessionLost) {
		e.Fatalf("InTx with an ended context: %v", err)
	}
	e.wantNotes()
	e.wantRow(x, idempotency.Running, x.Fence)
	if err := e.InTx(e.Context(), o, e.note("then")); err != nil {
		e.Fatal(err)
	}
}

// A run has one transaction. A second one inside of the first, or after it, is an error and does nothing.
func effectsOncePerRun[T any](e *effects[T]) {
	r := e.ready("a", "h1")
	_, o := e.run(r, time.Minute)
	ctx, mark := completion.With(e.Context(), o)
	var inner error
	err := e.InTx(ctx, o, func(tx T) error {
		inner = e.InTx(ctx, o, e.note("inner"))
		return e.Note(ctx, tx, "outer")
	})
	if err != nil || inner == nil || !mark.Committed() {
		e.Fatalf("outer: %v, inner: %v", err, inner)
	}
	if err := e.InTx(ctx, o, e.note("again")); err == nil || errors.Is(err, jobs.ErrOvertaken) {
		e.Fatalf("a second InTx: %v", err)
	}
	if err := e.InTx(e.Context(), o, e.note("again")); !errors.Is(err, jobs.ErrOvertaken) {
		e.Fatalf("a second InTx by another context: %v, want ErrOvertaken", err)
	}
	other := o
	other.Fence++
	if err := e.InTx(ctx, other, e.note("other")); err == nil || errors.Is(err, jobs.ErrOvertaken) {
		e.Fatalf("InTx of another run than the context's: %v", err)
	}
	e.wantNotes("outer")
}

// A transaction that was open before completes the run if it commits, and not if it is rolled back.
func effectsJoin[T any](e *effects[T]) {
	r := e.ready("a", "h1")
	x, o := e.run(r, 2*time.Minute)
	ctx, mark := completion.With(e.Context(), o)
	for _, commits := range []bool{false, true} {
		tx, commit, rollback, err := e.Begin(ctx)
		if err != nil {
			e.Fatal(err)
		}
		if err := errors.Join(e.Note(ctx, tx, fmt.Sprint(commits)), e.Complete(ctx, tx, o)); err != nil {
			e.Fatal(err)
		}
		end, state, notes := rollback, idempotency.Running, []string(nil)
		if commits {
			end, state, notes = commit, idempotency.Ended, []string{"true"}
		}
		if err := end(); err != nil {
			e.Fatal(err)
		}
		e.wantNotes(notes...)
		e.wantRow(x, state, x.Fence)
	}
	want(e.T, "committed by InTx", mark.Committed(), false)
	e.finishes(idempotency.Completed, waits(x.ID, x.Fence, e.ago(0)))
}

func effectsJoinOvertaken[T any](e *effects[T]) {
	r := e.ready("a", "h1")
	x, o := e.run(r, time.Minute)
	fence := e.overtake(r, x)
	tx, _, rollback, err := e.Begin(e.Context())
	if err != nil {
		e.Fatal(err)
	}
	err = errors.Join(e.Note(e.Context(), tx, "late"))
	if err == nil {
		err = e.Complete(e.Context(), tx, o)
	}
	if !errors.Is(err, jobs.ErrOvertaken) {
		e.Fatalf("Complete of an overtaken holder: %v, want ErrOvertaken", err)
	}
	if err := rollback(); err != nil {
		e.Fatal(err)
	}
	e.wantNotes()
	e.wantRow(x, idempotency.Running, fence)
}

// Many that hold the run for theirs, in processes that do not know of each other, and one that records its timeout: one
// effect at most, and only if it is done.
func effectsOneOfMany[T any](e *effects[T]) {
	const holders, rounds = 4, 6
	r := e.ready("a", "h1")
	var notes []string
	for round := range rounds {
		x, o := e.run(r, time.Duration(100-round)*time.Second)
		var all sync.WaitGroup
		errs := make([]error, holders)
		for i := range holders {
			all.Go(func() {
				errs[i] = e.InTx(e.Context(), o, e.note(fmt.Sprintf("round %d", round)))
			})
		}
		all.Go(func() {
			_, _ = e.Store.Finish(e.Context(), namespace, []idempotency.Finish{waits(x.ID, x.Fence, e.ago(0))})
		})
		all.Wait()
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
			} else if !errors.Is(err, jobs.ErrOvertaken) {
				e.Errorf("round %d: %v, want ErrOvertaken", round, err)
			}
		}
		isDone := e.row(x.ID).Outcome == idempotency.Done
		if won > 1 || isDone != (won == 1) {
			e.Errorf("round %d: %d won, and the run is %+v", round, won, e.row(x.ID))
		}
		if isDone {
			notes = append(notes, fmt.Sprintf("round %d", round))
		}
	}
	e.wantNotes(notes...)
}
