package core

import (
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

// A person's run of an efficiency job gets its turn though new dues of its key come all the while, and take longer than
// the time between them.
func TestTriggeredAmongLocalRuns(t *testing.T) {
	t.Parallel()
	for name, policy := range policies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newCrowd(t, timing(), 0, "a")
			j := local1("j", jobs.Every(second))
			j.Overlap = policy
			start := w.act
			w.act = func(i int, a Action) []Event {
				if c, ok := a.(Cancel); ok {
					delete(w.running["j"], c.Handle<<8|int64(i))
					return []Event{Return(c.Handle, c.Cause)}
				}
				return start(i, a)
			}
			w.begin(j)
			w.until(10 * second)
			w.by(idempotency.Trigger, idempotency.ID{Job: "j"})
			for range 10 {
				w.until(w.now + 1500*time.Millisecond)
				w.end("j", len(w.running["j"]))
			}
			if n := w.done("j"); n != 1 {
				t.Errorf("%d of the runs that were asked for are done after 15 s, want 1", n)
			}
		})
	}
}

// Nor does a due that comes while a person's run waits for a worker go before it.
func TestTriggeredBeforeNewDues(t *testing.T) {
	t.Parallel()
	cfg := timing()
	cfg.Concurrency = 2
	w := newCrowd(t, cfg, 0, "a")
	x, y := local1("x", ats(13)), local1("y", ats(13))
	x.Priority, y.Priority = 1, 1
	w.begin(local1("j", ats(10, 15)), x, y)
	w.until(11 * second)
	w.by(idempotency.Trigger, idempotency.ID{Job: "j"})
	w.until(14 * second) // x has the other worker, y waits
	w.end("j", 1)
	w.until(17 * second)
	if w.started["j"] != 1 || w.started["y"] != 1 || len(w.refused("j")) != 1 {
		t.Fatalf("started: %v, refused: %q; want the due at 15 s refused while the run that was asked for waits", w.started, w.refused("j"))
	}
	w.end("y", 1)
	w.until(18 * second)
	if s := w.starts("j"); len(s) != 2 || s[1].Occurrence.Request == "" {
		t.Errorf("starts: %+v; want the second to be the run that was asked for", s)
	}
}

// The next attempts of efficiency runs wait behind what is at work of their key, several where it must be: they are not dropped.
func TestLocalRetriesWaitBehind(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]jobs.Overlap{"skip": jobs.OverlapSkip, "queue": jobs.OverlapQueue} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTower(t, timing(), "a")
			j := local1("j", ats(10, 12, 14, 20))
			j.Overlap = policy
			w.begin(j)
			for i := range 2 {
				w.until(time.Duration(11+2*i) * second)
				w.returned(w.starts("j")[i], jobs.RetryAfter(4*second, errWork))
			}
			w.until(25 * second) // the third is at work; the attempts of the first and second came at 15 and 17 s
			if n := len(w.starts("j")); n != 3 {
				t.Fatalf("%d starts while the third is at work, want 3", n)
			}
			for i := 2; i < 5; i++ {
				w.returned(w.starts("j")[i], nil)
				w.until(w.now + second)
			}
			s := w.starts("j")
			if len(s) != 5 || !s[3].Occurrence.Due.Equal(epoch.Add(10*second)) || s[3].Occurrence.Attempt != 2 || s[4].Occurrence.Attempt != 2 {
				t.Errorf("starts: %+v", s)
			}
			if r := w.refused("j"); len(r) != 1 || r[0] != "busy" {
				t.Errorf("refused: %q, want the due at 20 s alone", r)
			}
			if n := len(w.cores[0].workers.queues); n != 0 {
				t.Errorf("%d lanes are kept of keys that nothing waits for", n)
			}
		})
	}
}

// The next attempt of an efficiency run waits until a run that a person asked for has ended.
func TestLocalRetryBehindTriggered(t *testing.T) {
	t.Parallel()
	w := newTower(t, timing(), "a")
	w.begin(local1("j", ats(10)))
	w.until(11 * second)
	w.returned(w.starts("j")[0], jobs.RetryAfter(4*second, errWork))
	w.by(idempotency.Trigger, idempotency.ID{Job: "j"})
	w.until(30 * second)
	if s := w.starts("j"); len(s) != 2 || s[1].Occurrence.Request == "" {
		t.Fatalf("starts: %+v; want the local run and the one that was asked for", s)
	}
	w.returned(w.starts("j")[1], nil)
	w.until(33 * second)
	if s := w.starts("j"); len(s) != 3 || s[2].Occurrence.Attempt != 2 || len(w.refused("j")) != 0 {
		t.Errorf("starts: %+v; refused: %q", s, w.refused("j"))
	}
}
