package core

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

// older is a store that was put back: its numbers are so much lower than they were, once, and then high again.
type older struct {
	idempotency.Store
	by *int64
}

func (o older) as(r idempotency.Renewal) idempotency.Renewal {
	if r.Highest -= *o.by; *o.by > 0 {
		*o.by = -1000
	}
	return r
}

func (o older) OpenSession(ctx context.Context, x idempotency.Opening) (idempotency.Session, idempotency.Renewal, error) {
	s, r, err := o.Store.OpenSession(ctx, x)
	return s, o.as(r), err
}

func (o older) RenewSession(ctx context.Context, s idempotency.Session) (idempotency.Renewal, error) {
	r, err := o.Store.RenewSession(ctx, s)
	return o.as(r), err
}

// said is the last announcement among what was done since acts were cleared.
func (w *tower) said() (a Announce) {
	for _, x := range w.acts {
		if x, ok := x.(Announce); ok {
			a = x
		}
	}
	return a
}

func returning(_ int, a Action) []Event {
	if s, ok := a.(Start); ok {
		return []Event{Ended{Handle: s.Handle}}
	}
	return nil
}

// F37: a store that answers with a lower number than it had drawn before was rolled back. Nothing is claimed in it any
// more, also when its numbers have risen again.
func TestStoreRolledBack(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]bool{"a renewal tells": false, "an opening tells": true} {
		w := newTower(t, timing(), "a")
		by := int64(0)
		w.store, w.act = older{w.store, &by}, returning
		w.begin(jobs.Job{Name: "j", Schedule: jobs.Every(time.Second), Run: none})
		w.until(30 * time.Second)
		seen := w.cores[0].witness.highest
		if seen < 25 {
			t.Fatalf("%s: the highest fence seen is %d after 30 runs", name, seen)
		}
		by = 10
		if lost {
			w.cores[0].lose("test")
		}
		w.until(33 * time.Second)
		say := w.said()
		if say.State != Unfit || !strings.Contains(say.Reason, "rolled back from fence") || len(say.Reason) > maxReason || say.Fence < seen {
			t.Errorf("%s: announced %+v", name, say)
		}
		clear(w.calls)
		w.until(5 * time.Minute)
		if n := w.calls["Decide"] + w.calls["Claim"] + w.calls["OpenSession"]; n > 0 {
			t.Errorf("%s: %d calls in the store that was rolled back: %v", name, n, w.calls)
		}
		w.acts = nil
		w.tell(0, Stop{Why: "the test ends"})
		w.until(6 * time.Minute)
		if say := w.said(); say.State != Draining || !w.cores[0].stopped {
			t.Errorf("%s: announced %+v when it is stopped; stopped %v", name, say, w.cores[0].stopped)
		}
	}
}

// A replica that is new has seen nothing itself, and learns it from the others: before its first session, or while it
// has one.
func TestNewReplicaHearsOfRollback(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]time.Duration{"before its session": 0, "in its session": 5 * time.Second} {
		w := newTower(t, timing(), "a")
		w.store, w.act = other{w.store, new("s")}, returning
		tell := func() { w.tell(0, Heard{Fences: map[string]int64{"s": 500, "another store": 1 << 40}}) }
		if at == 0 {
			tell()
		}
		w.begin(jobs.Job{Name: "j", Schedule: jobs.Every(time.Second), Run: none})
		if at > 0 {
			w.until(at)
			tell()
		}
		w.until(at + 3*time.Second)
		if say := w.said(); say.State != Unfit || say.Fence != 500 || !strings.Contains(say.Reason, "from fence 500") {
			t.Errorf("%s: announced %+v", name, say)
		}
		if at == 0 && w.calls["Decide"] > 0 {
			t.Errorf("%s: it opened %d dues", name, w.calls["Decide"])
		}
	}
}

// That others saw the store rolled back is believed at once, whatever its numbers are by then.
func TestRollbackIsBelieved(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]time.Duration{"before its session": 0, "in its session": 5 * time.Second} {
		w := newTower(t, timing(), "a")
		w.store, w.act = other{w.store, new("s")}, returning
		w.tell(0, Heard{RolledBack: map[string]bool{"another store": true}})
		tell := func() { w.tell(0, Heard{Fences: map[string]int64{"s": 1}, RolledBack: map[string]bool{"s": true}}) }
		if at == 0 {
			tell()
		}
		w.begin(jobs.Job{Name: "j", Schedule: jobs.Every(time.Second), Run: none})
		if at > 0 {
			w.until(at)
			if w.said().State != Serving {
				t.Fatalf("%s: announced %+v", name, w.said())
			}
			tell()
		}
		clear(w.calls)
		w.until(at + time.Minute)
		if say := w.said(); say.State != Unfit || !say.RolledBack || !strings.Contains(say.Reason, "rolled back") || len(say.Reason) > maxReason {
			t.Errorf("%s: announced %+v", name, say)
		}
		if n := w.calls["Decide"] + w.calls["Claim"] + w.calls["OpenSession"]; n > 0 {
			t.Errorf("%s: %v", name, w.calls)
		}
	}
}

// What another store has drawn, or what came to be known after a call was sent, is no sign: answers may come late, and
// out of order.
func TestLateRenewalIsNoRollback(t *testing.T) {
	t.Parallel()
	w := newTower(t, timing(), "a")
	w.act = returning
	w.begin(jobs.Job{Name: "j", Schedule: jobs.Every(time.Second), Run: none})
	w.tell(0, Heard{Fences: map[string]int64{"another store": 1 << 40}})
	var late []Event
	w.mute = func(_ int, name string) bool { return name == "RenewSession" }
	for w.now < time.Minute {
		w.acts = nil
		w.until(w.now + 50*time.Millisecond)
		events := late
		late = nil
		for _, a := range w.acts {
			if call, ok := a.(*Call); ok && call.Name == "RenewSession" {
				late = append(late, call.Do(context.Background(), w.store)) // answered at once, heard of later
			}
		}
		if len(events) > 0 {
			w.until(w.now + 1500*time.Millisecond)
		}
		w.tell(0, events...)
	}
	if c := w.cores[0]; c.rolledBack != "" || c.session == nil {
		t.Errorf("after late answers: rolled back %q, session %v", c.rolledBack, c.session)
	}
}

// A higher fence alone is not announced: gossip is for what the others have to know now.
func TestFenceIsNoNews(t *testing.T) {
	t.Parallel()
	w := newTower(t, timing(), "a")
	w.act = returning
	w.begin(jobs.Job{Name: "j", Schedule: jobs.Every(time.Second), Run: none})
	w.until(time.Minute)
	n := 0
	for _, a := range w.acts {
		if _, ok := a.(Announce); ok {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d announcements in a minute of runs, want 1", n)
	}
}
