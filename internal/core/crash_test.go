package core

import (
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

// frail is a job that starts once at most.
func frail() jobs.Job {
	j := once("j")
	j.Crash = jobs.CrashAbandon
	return j
}

// What was started by a replica that died is not started again by another; a person may have it so.
func TestAbandonedOrphan(t *testing.T) {
	t.Parallel()
	for name, crash := range map[string]jobs.Crash{"abandon": jobs.CrashAbandon, "rerun": jobs.CrashRerun} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTower(t, timing(), "a", "b")
			dead := -1
			w.mute = func(core int, _ string) bool { return core == dead }
			j := once("j")
			j.Crash = crash
			w.begin(j)
			w.until(11 * second)
			dead = 0
			if len(w.cores[1].workers.held) == 1 {
				dead = 1
			}
			w.until(40 * second)
			if crash == jobs.CrashRerun {
				if n := len(w.starts("j")); n != 2 {
					t.Errorf("%d starts, want 2", n)
				}
				return
			}
			w.want("j", "failed (abandoned)")
			if n := len(w.starts("j")); n != 1 {
				t.Fatalf("%d starts, want 1", n)
			}
			if r := w.rows()[0]; r.Text != textAbandoned || r.Attempt != 0 || r.Crashes != 1 {
				t.Errorf("the record: %q, %d attempts, %d crashes", r.Text, r.Attempt, r.Crashes)
			}
			w.by(idempotency.Retry, due("j", 10*second))
			w.until(45 * second)
			if n := len(w.starts("j")); n != 2 {
				t.Errorf("%d starts after a person's retry, want 2", n)
			}
		})
	}
}

// A handler that a lost session, or a drain that is over, ends is the end of a run that must not start twice.
func TestAbandonedHere(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*tower){
		"session lost": func(w *tower) { w.cores[0].lose("test") },
		"drained":      func(w *tower) { w.tell(0, Stop{}); w.until(20 * second) },
		"hurried":      func(w *tower) { w.tell(0, Stop{}); w.tell(0, Hurry{}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, c := range []struct {
				err  error
				want string
			}{{errWork, "failed (abandoned)"}, {nil, "done"}, {jobs.Skip("nothing to do"), "skipped (handler)"}} {
				w := newTower(t, timing(), "a")
				w.begin(frail())
				w.until(15*second - 100*time.Millisecond)
				end(w)
				w.tell(0)
				s := w.starts("j")[0]
				if w.ended(s) == nil {
					t.Fatal("its context goes on")
				}
				w.returned(s, c.err)
				w.until(w.now + 10*second)
				w.want("j", c.want)
				if len(w.starts("j")) != 1 {
					t.Error("it was started again")
				}
				if r := w.rows()[0]; c.err == errWork && (r.Attempt != 0 || r.Text != textAbandoned+"; its handler returned: "+errWork.Error()) {
					t.Errorf("%d attempts, %q", r.Attempt, r.Text)
				}
			}
		})
	}
}

// What a replica that drains has won and not started goes on elsewhere, also where it may start once only.
func TestUnstartedIsNotAbandoned(t *testing.T) {
	t.Parallel()
	w := newTower(t, timing(), "a", "b")
	w.begin(frail())
	w.until(9 * second)
	w.call = func(core int, name string) error {
		if name == "Decide" { // it leaves before it hears that it has won
			w.call = nil
			w.tell(core, Stop{})
		}
		return nil
	}
	w.until(10*second + 20*time.Millisecond)
	w.want("j", "waiting (unstarted)")
	w.until(15 * second)
	if s := w.starts("j"); len(s) != 1 || s[0].Occurrence.Attempt != 1 {
		t.Errorf("starts: %+v, want one, as the first attempt", s)
	}
}

// A run of a job that was changed to start once only, which waits for another attempt, has started already.
func TestAbandonedAfterEdit(t *testing.T) {
	t.Parallel()
	w := newTower(t, timing(), "a")
	j := once("j")
	j.Retry.First = 20 * second
	w.begin(j)
	w.until(11 * second)
	w.returned(w.starts("j")[0], jobs.RetryAfter(10*second, errWork))
	w.tell(0, JobsChanged{Jobs: []jobs.Job{frail().WithDefaults()}})
	w.until(30 * second)
	w.want("j", "failed (abandoned)")
	if len(w.starts("j")) != 1 {
		t.Error("it was started again")
	}
}

// A stray is abandoned only where the take-up that won it was that of a run which had started.
func TestAbandonedStray(t *testing.T) {
	t.Parallel()
	for name, started := range map[string]bool{"fresh": false, "orphan": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTower(t, timing(), "a")
			w.begin(frail())
			w.until(11 * second)
			r, c := w.rows()[0], w.cores[0]
			clear(c.workers.held)
			clear(c.workers.byFence)
			if started {
				c.workers.asked[r.ID] = asked{begun, c.now.Mono}
			}
			w.until(20 * second) // its own runs are listed
			if n := len(w.starts("j")); started != (n == 1) {
				t.Errorf("started %d times in all", n)
			}
			if want := map[bool]string{true: "failed (abandoned)", false: "running ()"}[started]; w.fates("j")[0] != want {
				t.Errorf("it is %s, want %s", w.fates("j")[0], want)
			}
		})
	}
}

// F65, SD-02: a second signal ends the wait for handlers at once, also where it comes first.
func TestHurry(t *testing.T) {
	t.Parallel()
	for name, events := range map[string][]Event{"after": {Stop{}, Hurry{}}, "before": {Hurry{}, Stop{}}, "again": {Stop{}, Hurry{}, Hurry{}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTower(t, timing(), "a")
			w.begin(once("j"))
			w.until(11 * second)
			for _, e := range events {
				w.tell(0, e)
			}
			s := w.starts("j")[0]
			if w.ended(s) != jobs.ErrDraining {
				t.Fatalf("its context is ended with %v", w.ended(s))
			}
			w.returned(s, jobs.ErrDraining)
			w.tell(0)
			if !w.cores[0].stopped {
				t.Error("the replica goes on")
			}
			w.want("j", "waiting (released)")
		})
	}
}

// A batch may ask for a run as new, and to take it up. Repeated, it says of both that they are won: the run has started
// before all the same.
func TestWonAsNewAndTakenUp(t *testing.T) {
	t.Parallel()
	w := newTower(t, timing(), "a")
	j := keyed(jobs.Every(time.Minute))
	j.Crash = jobs.CrashAbandon
	w.begin(j)
	w.until(10 * second)
	c := w.cores[0]
	id := idempotency.ID{Job: "keyed", Key: "k00", Due: epoch}
	c.workers.asked[id] = asked{begun, w.now}
	c.workers.reserved++
	c.claimed(&pass{job: c.jobs["keyed"], due: epoch, out: 1, hedge: make([]byte, 2)}, id, idempotency.Answer{Verdict: idempotency.Won, Fence: 7, Crashes: 1})
	w.tell(0)
	if n := len(w.starts("keyed")); n != 0 {
		t.Error("it is started again")
	}
}
