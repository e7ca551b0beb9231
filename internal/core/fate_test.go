package core

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

var errWork = errors.New("work: declined")

// starts are the handlers of a job that were started, in order.
func (w *tower) starts(job string) (list []Start) {
	for _, a := range w.acts {
		if s, ok := a.(Start); ok && s.Job.Name == job {
			list = append(list, s)
		}
	}
	return list
}

// returned lets a handler of a tower's only core return.
func (w *tower) returned(s Start, err error) { w.tell(0, Return(s.Handle, err)) }

// ended is the cause with which a handler's context was ended; nil: it was not.
func (w *tower) ended(s Start) error {
	for _, a := range w.acts {
		if c, ok := a.(Cancel); ok && c.Handle == s.Handle {
			return c.Cause
		}
	}
	return nil
}

// stuck is how many handlers were reported so.
func (w *tower) stuck() (n int) {
	for _, a := range w.acts {
		if _, ok := a.(Stuck); ok {
			n++
		}
	}
	return n
}

// fates are the rows of a job in words, oldest first.
func (w *tower) fates(job string) (list []string) {
	for _, r := range w.rows() {
		if r.ID.Job == job {
			list = append(list, fateOf(r))
		}
	}
	return list
}

func fateOf(r idempotency.Run) string {
	if r.State != idempotency.Ended {
		return fmt.Sprintf("%v (%s)", r.State, r.Reason)
	}
	return strings.TrimSuffix(fmt.Sprintf("%v (%s)", r.Outcome, r.Reason), " ()")
}

func (w *tower) want(job string, fates ...string) {
	w.t.Helper()
	if got := w.fates(job); fmt.Sprint(got) != fmt.Sprint(fates) {
		w.t.Errorf("job %s at %v: %q, want %q", job, w.now, got, fates)
	}
}

// by submits a command of a person.
func (w *tower) by(kind idempotency.CommandKind, id idempotency.ID, dues ...time.Time) idempotency.Command {
	w.t.Helper()
	c, err := w.store.(idempotency.Control).Submit(context.Background(), "n", idempotency.Command{
		Request: fmt.Sprintf("r-%d", w.now), Kind: kind, ID: id, Dues: dues, Actor: "a person"})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// due is the ID of a run of a job without keys.
func due(job string, at time.Duration) idempotency.ID {
	return idempotency.ID{Job: job, Key: job, Due: epoch.Add(at)}
}

const second = time.Second

// once is a job that is due ten seconds after the beginning, and never again.
func once(name string) jobs.Job {
	return jobs.Job{Name: name, Schedule: jobs.At(epoch.Add(10 * second)), Run: none}
}

// What a handler returns decides what becomes of its run: a skip is its end, and an error may say when to try again.
func TestVerdictsOfHandlers(t *testing.T) {
	t.Parallel()
	w := newTower(t, timing(), "a")
	w.begin(once("skip"), once("later"), once("last"))
	w.until(11 * second)
	w.returned(w.starts("skip")[0], fmt.Errorf("card: %w", jobs.Skip("the customer\x00 has left")))
	w.returned(w.starts("later")[0], jobs.RetryAfter(time.Minute, errWork))
	w.returned(w.starts("last")[0], jobs.Permanent(jobs.RetryAfter(time.Minute, errWork)))
	w.until(70 * second)
	w.want("skip", "skipped (handler)")
	if r := w.rows()[2]; r.Text != "the customer? has left" || r.Attempt != 1 {
		t.Errorf("the skipped run says %q after %d attempts", r.Text, r.Attempt)
	}
	w.want("last", "failed (permanent)")
	if n := len(w.starts("later")); n != 1 {
		t.Errorf("%d attempts within the time that the first one asked for, want 1", n)
	}
	w.until(73 * second)
	if s := w.starts("later"); len(s) != 2 || s[1].Occurrence.Attempt != 2 {
		t.Errorf("attempts after it: %+v", s)
	}
}

// An efficiency job's handler is asked as well: when it says so its next attempt comes, and what it skips has ended.
func TestVerdictsOfLocalHandlers(t *testing.T) {
	t.Parallel()
	w := newTower(t, timing(), "a")
	skip, later := once("skip"), once("later")
	skip.Guarantee, later.Guarantee = jobs.Efficiency, jobs.Efficiency
	w.begin(skip, later)
	w.until(11 * second)
	w.returned(w.starts("skip")[0], jobs.Skip("nothing to do"))
	w.returned(w.starts("later")[0], jobs.RetryAfter(30*second, errWork))
	w.until(40 * second)
	if len(w.starts("skip")) != 1 || len(w.starts("later")) != 1 {
		t.Error("something was started again too soon")
	}
	w.until(42 * second)
	if len(w.starts("later")) != 2 {
		t.Error("the attempt that was asked for did not come")
	}
	for _, a := range w.acts {
		if f, ok := a.(Finished); ok && f.Job == "skip" && (f.Outcome != idempotency.Skipped || f.Reason != "handler") {
			t.Errorf("the skipped run ended %v (%s)", f.Outcome, f.Reason)
		}
	}
}

// F29, JB-03: a handler that reports no progress is ended. The attempt counts, and its last word is in the record.
func TestStall(t *testing.T) {
	t.Parallel()
	w := newTower(t, timing(), "a")
	j := once("j")
	j.StallAfter, j.Retry = 5*second, jobs.Retry{Attempts: 2, First: time.Minute}
	w.begin(j)
	w.until(10*second + 100*time.Millisecond)
	s := w.starts("j")[0]
	for range 3 {
		w.until(w.now + 4*second)
		w.tell(0, Progressed{Handle: s.Handle, Note: "page 7 of 9\xff"})
	}
	w.until(w.now + 4900*time.Millisecond)
	if err := w.ended(s); err != nil {
		t.Fatalf("ended while it got on: %v", err)
	}
	w.until(w.now + 200*time.Millisecond)
	if err := w.ended(s); !errors.Is(err, jobs.ErrStalled) {
		t.Fatalf("ended with %v, want ErrStalled", err)
	}
	w.returned(s, jobs.ErrStalled)
	w.until(w.now + second)
	w.want("j", "waiting (stalled)")
	if r := w.rows()[0]; r.Attempt != 1 || r.Text != jobs.ErrStalled.Error()+"\nlast progress: page 7 of 9?" {
		t.Errorf("%d attempts, the record says %q", r.Attempt, r.Text)
	}
}

// A stalled handler that ignores it loses its run, not its worker; what it says and returns later counts for nothing.
func TestStalledAndDeaf(t *testing.T) {
	t.Parallel()
	c := timing()
	c.Concurrency = 1
	w := newTower(t, c, "a")
	j := once("j")
	j.StallAfter, j.Retry = 5*second, jobs.Retry{Attempts: 1}
	w.begin(j)
	w.until(16*second + 200*time.Millisecond) // 5 s, and a second to heed it
	w.want("j", "failed (stalled)")
	s := w.starts("j")[0]
	if w.stuck() != 1 || w.cores[0].workers.free(w.cores[0]) != 0 {
		t.Errorf("%d handlers reported stuck, %d workers free; want 1 and 0", w.stuck(), w.cores[0].workers.free(w.cores[0]))
	}
	w.tell(0, Progressed{Handle: s.Handle, Note: "here I am"})
	finishes := w.calls["Finish"]
	w.returned(s, nil)
	w.until(30 * second)
	w.want("j", "failed (stalled)")
	if w.calls["Finish"] != finishes || w.cores[0].workers.free(w.cores[0]) != 1 {
		t.Errorf("its return made %d records and left %d workers free, want 0 and 1", w.calls["Finish"]-finishes, w.cores[0].workers.free(w.cores[0]))
	}
}

// Progress is a sign of life of the job, for passes that wait for workers.
func TestProgressMovesLived(t *testing.T) {
	t.Parallel()
	w := newTower(t, timing(), "a")
	w.begin(once("j"))
	w.until(20 * second)
	w.tell(0, Progressed{Handle: w.starts("j")[0].Handle})
	if j := w.cores[0].jobs["j"]; j.lived != 20*second {
		t.Errorf("the job lived last at %v, want 20s", j.lived)
	}
	w.tell(0, Progressed{Handle: 999}) // of nobody
}

// JB-09: what is recorded is bounded, valid and has no NUL, with the last note of progress as well.
func TestRecordedText(t *testing.T) {
	t.Parallel()
	h := held{note: boundText(strings.Repeat("é", maxNote), maxNote)}
	got := h.record(strings.Repeat("\x00\xff", 5<<20))
	if len(got) > maxText || strings.Contains(got, "\x00") || !utf8.ValidString(got) || !strings.HasSuffix(got, "é … (cut)") || !strings.Contains(got, "(cut)\nlast progress: é") {
		t.Errorf("%d bytes, ending in %q", len(got), got[len(got)-40:])
	}
	if got := (&held{}).record("as it is"); got != "as it is" {
		t.Errorf("%q", got)
	}
}

// A person's cancel ends the context within two sweeps; what does not return nil is recorded as canceled.
func TestCanceled(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		deaf bool
		want string
	}{
		"declines":     {errWork, false, "failed (canceled)"},
		"skips":        {jobs.Skip("so be it"), false, "failed (canceled)"},
		"is done":      {nil, false, "done"},
		"hears of it":  {jobs.ErrCanceled, false, "failed (canceled)"},
		"is deaf":      {nil, true, "failed (canceled)"},
		"deaf, failed": {errWork, true, "failed (canceled)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTower(t, timing(), "a")
			w.begin(once("j"))
			w.until(12 * second)
			s := w.starts("j")[0]
			w.by(idempotency.Cancel, due("j", 10*second))
			w.until(13*second + 200*time.Millisecond)
			if err := w.ended(s); !errors.Is(err, jobs.ErrCanceled) {
				t.Fatalf("after two sweeps its context is ended with %v, want ErrCanceled", err)
			}
			if c.deaf {
				w.until(16 * second)
				w.want("j", c.want)
				if w.stuck() != 1 || len(w.cores[0].workers.held) != 1 {
					t.Errorf("%d reported stuck, %d workers held; want 1 and 1", w.stuck(), len(w.cores[0].workers.held))
				}
			}
			w.returned(s, c.err)
			w.until(20 * second)
			w.want("j", c.want)
			if n := len(w.cores[0].workers.held); n != 0 || len(w.starts("j")) != 1 {
				t.Errorf("%d workers held, started %d times; want 0 and 1", n, len(w.starts("j")))
			}
		})
	}
}

// Nor does a replica that drains let a person wait, though it sweeps no more.
func TestCanceledWhileDraining(t *testing.T) {
	t.Parallel()
	w := newTower(t, timing(), "a")
	w.begin(once("j"))
	w.until(12 * second)
	w.tell(0, Stop{Why: "a test"})
	w.by(idempotency.Cancel, due("j", 10*second))
	w.until(13*second + 200*time.Millisecond)
	if err := w.ended(w.starts("j")[0]); !errors.Is(err, jobs.ErrCanceled) {
		t.Errorf("after two sweeps its context is ended with %v, want ErrCanceled", err)
	}
}

// A cancel that comes while the run ends for another reason still is its end.
func TestCanceledWhileEnding(t *testing.T) {
	t.Parallel()
	w := newTower(t, timing(), "a")
	j := once("j")
	j.Timeout = 5 * second
	w.begin(j)
	w.until(13 * second)
	w.by(idempotency.Cancel, due("j", 10*second))
	w.until(13900 * time.Millisecond)
	w.cores[0].end(w.cores[0].sortedHeld()[0], jobs.ErrTimeout)
	w.until(14300 * time.Millisecond)
	w.returned(w.starts("j")[0], jobs.ErrTimeout)
	w.until(20 * second)
	w.want("j", "failed (canceled)")
	for _, a := range w.acts {
		if f, ok := a.(Finished); ok && f.Reason != "canceled" {
			t.Errorf("it is reported as %v (%s)", f.Outcome, f.Reason)
		}
	}
}

// A listing of our runs that fails is made again: a cancel must not wait for the next command.
func TestCancelSurvivesLostListings(t *testing.T) {
	t.Parallel()
	w := newTower(t, timing(), "a")
	w.begin(once("j"))
	w.until(10*second + 100*time.Millisecond)
	lost := 3
	w.call = func(_ int, name string) error {
		if name == "Mine" && lost > 0 {
			lost--
			return errDown
		}
		return nil
	}
	w.by(idempotency.Cancel, due("j", 10*second))
	w.until(13 * second)
	if err := w.ended(w.starts("j")[0]); lost != 0 || !errors.Is(err, jobs.ErrCanceled) {
		t.Errorf("%d listings are still to be lost, the context is ended with %v", lost, err)
	}
}

// A stray that is told to end does so without a start, and without a worker.
func TestMarkedStray(t *testing.T) {
	t.Parallel()
	w := newTower(t, timing(), "a")
	w.begin(once("j"))
	w.until(12 * second)
	w.by(idempotency.Cancel, due("j", 10*second))
	r := w.rows()[0]
	c := w.cores[0]
	delete(c.workers.byFence, r.Fence) // as if its answer had been lost
	clear(c.workers.held)
	c.cfg.Concurrency = 0
	c.adopt(r, c.now.Mono)
	w.until(13 * second)
	w.want("j", "failed (canceled)")
	if n := len(w.starts("j")); n != 1 {
		t.Errorf("%d starts, want the one before", n)
	}
}
