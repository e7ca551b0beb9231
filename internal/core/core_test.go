package core

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

// Remove says that what runs of a removed job runs on. The listing of our own
// runs must not release a run whose handler is at work here.
func TestRemovedJobRunsOn(t *testing.T) {
	t.Parallel()
	w := newTower(t, timing(), "a")
	w.begin(jobs.Job{Name: "j", Schedule: jobs.Every(time.Hour).Phase(5 * time.Second), Run: none})
	w.until(6 * time.Second)
	if len(w.cores[0].workers.held) != 1 {
		t.Fatalf("%d runs held, want 1", len(w.cores[0].workers.held))
	}
	w.tell(0, JobsChanged{})
	w.until(20 * time.Second)
	if r := w.rows()[0]; r.State != idempotency.Running {
		t.Errorf("the run is in state %d (%s) while its handler is at work; want running (%d)", r.State, r.Reason, idempotency.Running)
	}
}

// A definition that follows one of a Custom calendar must be put in force, and
// the other jobs of its replica must not wait for it.
func TestUnknownScheduleJamsDecisions(t *testing.T) {
	t.Parallel()
	w := newTower(t, timing(), "a")
	ctx := context.Background()
	s, _, err := w.store.OpenSession(ctx, idempotency.Opening{Namespace: "n", Replica: "old", Boot: "old", Partitions: 16,
		Lease: time.Second, Horizon: time.Hour, Retention: 2 * time.Hour})
	if err == nil {
		_, err = w.store.Declare(ctx, s, 1, []idempotency.Declaration{{
			Definition: idempotency.Definition{Job: "j", Schedule: "@custom moon", Hash: "old"}, Opened: epoch, Next: epoch.Add(time.Minute)}})
	}
	if err != nil {
		t.Fatal(err)
	}
	w.now = 2 * time.Second // the old one is gone
	w.act = func(_ int, a Action) []Event {
		if s, ok := a.(Start); ok {
			return []Event{Ended{Handle: s.Handle}}
		}
		return nil
	}
	w.begin(jobs.Job{Name: "j", Schedule: jobs.Every(10 * time.Second), Run: none},
		jobs.Job{Name: "other", Schedule: jobs.Every(10 * time.Second), Run: none})
	w.until(65 * time.Second)
	done := map[string]int{}
	for _, r := range w.rows() {
		done[r.ID.Job]++
	}
	if done["j"] < 5 || done["other"] < 5 {
		t.Errorf("runs by job: %v, want 5 or more each; Decide was called %d times and failed with: %v; announced: %q",
			done, w.calls["Decide"], w.failed["Decide"], w.cores[0].health.unfit)
	}
}

// A store that refuses each call at once must not be asked more and more often.
func TestOpenSessionRate(t *testing.T) {
	t.Parallel()
	w := newTower(t, timing(), "a")
	w.call = func(int, string) error { return errDown }
	w.cores[0].cfg.Sweep = 713 * time.Millisecond
	w.begin(jobs.Job{Name: "j", Schedule: jobs.Every(time.Hour), Run: none})
	w.until(time.Minute)
	first := w.calls["OpenSession"]
	w.until(10 * time.Minute)
	w.calls["OpenSession"] = 0
	w.until(11 * time.Minute)
	if last := w.calls["OpenSession"]; last > 150 {
		t.Errorf("%d openings in the first minute of an outage, %d in the eleventh; %d timers are set", first, last, len(w.cores[0].timers))
	}
}

// other is a store with another identity, once the test says so.
type other struct {
	idempotency.Store
	id *string
}

func (o other) OpenSession(ctx context.Context, x idempotency.Opening) (idempotency.Session, idempotency.Renewal, error) {
	s, r, err := o.Store.OpenSession(ctx, x)
	if *o.id != "" {
		r.Store = *o.id
	}
	return s, r, err
}

func (o other) RenewSession(ctx context.Context, s idempotency.Session) (idempotency.Renewal, error) {
	r, err := o.Store.RenewSession(ctx, s)
	if *o.id != "" {
		r.Store = *o.id
	}
	return r, err
}

// A store with another identity is opened again and again, each time with a new
// session row that nobody closes.
func TestForeignStoreSessions(t *testing.T) {
	t.Parallel()
	w := newTower(t, timing(), "a")
	id := ""
	w.store = other{w.store, &id}
	w.begin(jobs.Job{Name: "j", Schedule: jobs.Every(time.Hour), Run: none})
	w.until(time.Second)
	id = "another"
	w.cores[0].lose("test")
	w.until(time.Minute)
	w.calls["OpenSession"] = 0
	w.until(2 * time.Minute)
	first := w.calls["OpenSession"]
	w.until(9 * time.Minute)
	w.calls["OpenSession"] = 0
	w.until(10 * time.Minute)
	if last := w.calls["OpenSession"]; first > 7 || last > 7 {
		t.Errorf("%d sessions opened in the second minute, %d in the tenth; want one each lease (6), or none", first, last)
	}
}

// A renewal that another store answers must be noticed as an opening would.
func TestRenewalOfForeignStore(t *testing.T) {
	t.Parallel()
	w := newTower(t, timing(), "a")
	id := ""
	w.store = other{w.store, &id}
	w.begin(jobs.Job{Name: "j", Schedule: jobs.Every(10 * time.Second), Run: none})
	w.until(time.Second)
	id = "another"
	w.until(15 * time.Second)
	if w.cores[0].foreign == "" {
		t.Errorf("renewals tell of another store, and the replica goes on: state %q, Decide called %d times", w.cores[0].said.State, w.calls["Decide"])
	}
}

// A due after 2262 does not fit into nanoseconds since 1970.
func TestFarDueSpins(t *testing.T) {
	t.Parallel()
	for _, g := range []jobs.Guarantee{jobs.Correctness, jobs.Efficiency} {
		for _, year := range []int{2261, 2300, 9999} {
			w := newTower(t, timing(), "a")
			w.begin(jobs.Job{Name: "never", Guarantee: g, Schedule: jobs.At(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)), Run: none})
			w.until(3100 * time.Millisecond)
			if at := w.cores[0].Wake(); at <= w.now {
				t.Errorf("guarantee %d, year %d: the core wants to be woken at once, for ever", g, year)
			}
		}
	}
}

// Dues of an efficiency job that find no worker must not pile up.
func TestLocalRunsPileUp(t *testing.T) {
	t.Parallel()
	c := timing()
	c.Concurrency = 1
	w := newTower(t, c, "a")
	w.begin(jobs.Job{Name: "long", Guarantee: jobs.Efficiency, Schedule: jobs.At(epoch.Add(time.Second)), Run: none},
		jobs.Job{Name: "often", Guarantee: jobs.Efficiency, Schedule: jobs.Every(2 * time.Second), Run: none})
	w.until(5 * time.Minute)
	if n := len(w.cores[0].local); n > 4 {
		t.Errorf("%d runs of one key wait for a worker", n)
	}
}

// What a replica remembers of dues must not outlive them.
func TestProgressOfClosedDues(t *testing.T) {
	t.Parallel()
	w := newTower(t, timing(), "a", "b", "c")
	w.act = list(20)
	w.begin(keyed(jobs.Every(10 * time.Second)))
	w.until(10 * time.Minute)
	l := 0
	for _, c := range w.cores {
		l = max(l, len(c.finished))
	}
	if l > 3 {
		t.Errorf("a replica remembers %d dues; all but the last are closed", l)
	}
}

// A source that does not answer once must be asked again, and not hold its due for ever.
func TestSourceHangsOnce(t *testing.T) {
	t.Parallel()
	w := newTower(t, timing(), "a")
	good, hung := list(20), false
	w.act = func(i int, a Action) []Event {
		if _, ok := a.(Pull); ok && !hung {
			hung = true
			return nil
		}
		return good(i, a)
	}
	w.begin(keyed(jobs.At(epoch.Add(5 * time.Second))))
	w.until(10 * time.Minute)
	if n := len(w.rows()); n != 20 {
		t.Errorf("%d of 20 keys ran in the ten minutes after one call of the source hung", n)
	}
	w.until(80 * time.Minute)
	if n := len(w.cores[0].passes); n != 0 {
		t.Errorf("the due was closed at its horizon, and %d passes over it are still held, with their streams", n)
	}
}

// A job that has no keys any more: what is open of it cannot be streamed.
func TestKeysTakenAway(t *testing.T) {
	t.Parallel()
	w := newTower(t, timing(), "a")
	w.act = func(_ int, a Action) []Event {
		if o, ok := a.(OpenStream); ok && o.Job.Keys == nil {
			t.Errorf("at %v a stream is opened of a job without keys", w.now)
		}
		return nil
	}
	w.begin(keyed(jobs.At(epoch.Add(5 * time.Second))))
	w.until(6 * time.Second)
	j := keyed(jobs.At(epoch.Add(5*time.Second), epoch.Add(time.Hour)))
	j.Keys = nil
	w.tell(0, JobsChanged{})
	w.tell(0, JobsChanged{Jobs: []jobs.Job{j.WithDefaults()}})
	w.cores[0].lose("a restart")
	w.until(12 * time.Second)
}

type rude struct{ text string }

func (r *rude) Error() string { return r.text }

// The text of a handler's error is asked for on the loop: an Error that panics
// must not take the process with it.
func TestErrorThatPanics(t *testing.T) {
	t.Parallel()
	w := newTower(t, timing(), "a")
	w.act = func(_ int, a Action) []Event {
		if s, ok := a.(Start); ok {
			var err *rude
			return []Event{Ended{Handle: s.Handle, Err: err}}
		}
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("the core panics: %v", p)
		}
	}()
	w.begin(jobs.Job{Name: "j", Schedule: jobs.Every(10 * time.Second), Run: none})
	w.until(30 * time.Second)
}

// Efficiency jobs run while the store is away, also when correctness runs have
// just ended and their records are not answered.
func TestEfficiencyWithoutStore(t *testing.T) {
	t.Parallel()
	c := timing()
	c.Concurrency = 1
	w := newTower(t, c, "a")
	local, down := 0, false
	w.call = func(int, string) error {
		if down {
			return errDown
		}
		return nil
	}
	w.act = func(_ int, a Action) []Event {
		if s, ok := a.(Start); ok {
			if s.Job.Guarantee == jobs.Efficiency {
				local++
			} else {
				down = true
			}
			return []Event{Ended{Handle: s.Handle}}
		}
		return nil
	}
	w.begin(jobs.Job{Name: "c", Schedule: jobs.At(epoch.Add(5 * time.Second)), Run: none},
		jobs.Job{Name: "e", Guarantee: jobs.Efficiency, Schedule: jobs.Every(10 * time.Second), Run: none})
	w.until(5 * time.Minute)
	if local < 25 {
		t.Errorf("%d efficiency runs in five minutes without a store, want 30", local)
	}
}

// The handlers of a session that cannot be renewed are canceled 0.7 lease after
// the last confirmed renewal was sent, whatever the other settings.
func TestTrustEndsInTime(t *testing.T) {
	t.Parallel()
	c := timing()
	c.Grace, c.Sweep = 30*time.Second, 30*time.Second
	w := newTower(t, c, "a")
	down := false
	w.mute = func(int, string) bool { return down }
	w.begin(jobs.Job{Name: "j", Schedule: jobs.Every(time.Hour), Run: none})
	down = true
	for lost := false; !lost; {
		w.now = max(w.cores[0].Wake(), w.now+1)
		w.acts = nil
		w.tell(0)
		for _, a := range w.acts {
			_, ok := a.(Lost)
			lost = lost || ok
		}
		if w.now > time.Minute {
			t.Fatal("the session is never lost")
		}
	}
	if w.now > 7*time.Second {
		t.Errorf("the session was lost after %v, want 7s (0.7 lease)", w.now)
	}
}

// An older due that comes to a key later than a younger one, because its stream
// was slow, must not be skipped by the younger one's run.
func TestOlderDueSkippedByYounger(t *testing.T) {
	t.Parallel()
	w := newTower(t, timing(), "a")
	answer := list(20)
	var late []Event
	first := int64(0)
	w.act = func(i int, a Action) []Event {
		if _, ok := a.(Start); ok {
			return nil // handlers take long
		}
		e := answer(i, a)
		if o, ok := a.(OpenStream); ok && first == 0 {
			first = o.Stream
		}
		if p, ok := a.(Pull); ok && p.Stream == first {
			late = append(late, e...)
			return nil
		}
		return e
	}
	w.begin(keyed(jobs.At(epoch.Add(5*time.Second), epoch.Add(10*time.Second))))
	w.until(11 * time.Second)
	w.tell(0, late...)
	w.cores[0].cfg.Concurrency = 40
	w.until(13 * time.Second)
	for _, r := range w.rows() {
		if r.Outcome == idempotency.Skipped && r.ID.Due.Equal(epoch.Add(5*time.Second)) {
			t.Errorf("%s of the older due is skipped (%s): the younger due's run holds the key", r.ID.Key, r.Reason)
			return
		}
	}
}

// A replica whose sweeps alone fail renews its session and looks healthy: so it says what does not work.
func TestFailingSweepsAreTold(t *testing.T) {
	t.Parallel()
	w := newTower(t, timing(), "a")
	w.begin(keyed(jobs.Every(time.Minute)))
	told := func() (n int) {
		for _, a := range w.acts {
			if p, ok := a.(Problem); ok && strings.Contains(p.Err.Error(), "sweeps in a row failed") {
				n++
			}
		}
		return n
	}
	w.until(10 * time.Second)
	if n := told(); n > 0 {
		t.Fatalf("told %d times of sweeps that succeed", n)
	}
	w.call = func(_ int, name string) error {
		if name == "Lagging" {
			return errDown
		}
		return nil
	}
	w.until(50 * time.Second)
	if n := told(); n != 1 {
		t.Errorf("told %d times of sweeps that fail, want once a minute", n)
	}
}
