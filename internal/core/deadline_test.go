package core

import (
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

// A run that no worker was free for in time is skipped; one that a person asked for starts.
func TestStartWithin(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		after time.Duration // from its due until a worker is free
		want  string
	}{"in time": {4 * second, "running ()"}, "late": {7 * second, "skipped (deadline)"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := timing()
			cfg.Concurrency = 1
			w := newTower(t, cfg, "a")
			tight := jobs.Job{Name: "tight", Schedule: jobs.At(epoch.Add(12 * second)), Run: none, StartWithin: 5 * second}
			w.begin(once("first"), tight)
			w.until(12*second + 100*time.Millisecond)
			w.want("tight", "waiting ()")
			w.until(12*second + c.after)
			w.returned(w.starts("first")[0], nil)
			w.until(w.now + second)
			w.want("tight", c.want)
			if name == "late" {
				w.wantFirsts("tight", false) // it did not start
			}
		})
	}
}

// Who waits for its second attempt, or was given back after its start, is not late; nor is what a person asks for.
func TestStartWithinIsOfTheFirstStart(t *testing.T) {
	t.Parallel()
	w := newTower(t, timing(), "a")
	j := once("j")
	j.StartWithin = 5 * second
	w.begin(j)
	w.until(11 * second)
	w.returned(w.starts("j")[0], jobs.RetryAfter(30*second, errWork))
	w.until(42 * second)
	if s := w.starts("j"); len(s) != 2 {
		t.Fatalf("%d starts, want 2", len(s))
	}
	w.returned(w.starts("j")[1], jobs.Permanent(errWork))
	w.until(50 * second)
	w.by(idempotency.Retry, due("j", 10*second))
	w.until(55 * second)
	if s := w.starts("j"); len(s) != 3 {
		t.Errorf("%d starts after a person's retry, want 3", len(s))
	}
}

// A triggered run starts however long it waited for a worker.
func TestTriggeredStartsLate(t *testing.T) {
	t.Parallel()
	cfg := timing()
	cfg.Concurrency = 1
	w := newTower(t, cfg, "a")
	w.begin(once("first"), jobs.Job{Name: "tight", Schedule: jobs.Manual(), Run: none, StartWithin: second})
	w.until(11 * second)
	c := w.by(idempotency.Trigger, idempotency.ID{Job: "tight"})
	w.until(40 * second)
	w.returned(w.starts("first")[0], nil)
	w.until(45 * second)
	if s := w.starts("tight"); len(s) != 1 || s[0].Occurrence.Request != c.Request {
		t.Errorf("starts: %+v", s)
	}
}

// A due of a job with keys that comes too late leaves one record, not one for each key; what a person backfills runs.
func TestLateDueWithKeys(t *testing.T) {
	t.Parallel()
	cfg := timing()
	cfg.MissedAfter, cfg.Horizon = 20*time.Minute, time.Hour
	w := newTower(t, cfg, "a")
	w.act = list(5)
	down := false
	w.call = func(int, string) error {
		if down {
			return errDown
		}
		return nil
	}
	j := keyed(jobs.Every(time.Minute))
	j.StartWithin = 30 * second
	w.begin(j)
	w.until(70 * second) // the first runs
	down = true
	w.until(5*time.Minute + 10*second)
	down = false
	w.until(5*time.Minute + 25*second)
	ranges := w.ranges()
	if n := len(w.starts("keyed")); n != 10 || len(ranges) != 1 || ranges[0].Count != 3 || ranges[0].Reason != "deadline" || ranges[0].Outcome != idempotency.Skipped {
		t.Fatalf("%d keys of two dues started; ranges: %+v; want 10, and a range of 3 past the deadline", n, ranges)
	}
	w.by(idempotency.Backfill, idempotency.ID{Job: "keyed"}, epoch.Add(3*time.Minute))
	w.until(5*time.Minute + 40*second)
	if n := len(w.starts("keyed")); n != 15 {
		t.Errorf("%d keys started after a person's backfill, want 15", n)
	}
}

func (w *tower) ranges() (list []idempotency.Range) {
	for r, err := range w.store.(idempotency.History).Ranges(w.t.Context(), "n", "") {
		if err != nil {
			w.t.Fatal(err)
		}
		list = append(list, r)
	}
	return list
}

// Dues past the deadline make one range where nothing else lies between, and are told apart from those that a pause skips.
func TestSkipLate(t *testing.T) {
	t.Parallel()
	at := func(s int) time.Time { return epoch.Add(time.Duration(s) * second) }
	j := &job{Job: jobs.Job{Name: "j", StartWithin: 10 * second}, starts: newStarts(0, second, 16)}
	d := idempotency.Decision{Definition: idempotency.Definition{Job: "j"},
		Run:    []time.Time{at(1), at(2), at(4), at(20)},
		Ranges: []idempotency.Range{{Job: "j", From: at(3), To: at(3), Count: 1, Outcome: idempotency.Skipped, Reason: reasonPaused}}}
	j.skipLate(&d, at(30))
	if len(d.Run) != 1 || len(d.Ranges) != 3 || d.Ranges[1].Count != 2 || !d.Ranges[1].To.Equal(at(2)) || !d.Ranges[2].From.Equal(at(4)) {
		t.Errorf("runs %v, ranges %+v", d.Run, d.Ranges)
	}
	d.Ranges = append(d.Ranges, idempotency.Range{Job: "j", From: epoch, To: epoch, Count: 7, Outcome: idempotency.Missed, Reason: reasonLate})
	if o := observeDecision(d); len(o.Dues) != 1 || o.Missed != 7 || o.Paused != 1 || o.TooLate != 3 {
		t.Errorf("told as %+v, want 1 paused, 3 too late and 7 missed", o)
	}
}

// An efficiency run that found no worker in time is left out, and said to be.
func TestStartWithinLocal(t *testing.T) {
	t.Parallel()
	cfg := timing()
	cfg.Concurrency = 1
	w := newTower(t, cfg, "a")
	first, tight := once("first"), once("tight")
	first.Guarantee, tight.Guarantee, tight.StartWithin = jobs.Efficiency, jobs.Efficiency, 3*second
	w.begin(first, tight)
	w.until(14 * second)
	w.returned(w.starts("first")[0], nil)
	w.until(15 * second)
	if s, r := w.starts("tight"), w.refused("tight"); len(s) != 0 || len(r) != 1 || r[0] != "deadline" {
		t.Errorf("%d starts, refused: %q", len(s), r)
	}
}

// refused are the causes with which runs of a job were.
func (w *tower) refused(job string) (list []string) {
	for _, a := range w.acts {
		if r, ok := a.(Refused); ok && r.Job == job {
			list = append(list, r.Cause)
		}
	}
	return list
}

// A due whose opening was not answered for longer than StartWithin is nobody's wish: its keys are held to their deadline.
func TestStartWithinOfSlowOpening(t *testing.T) {
	t.Parallel()
	w := newCrowd(t, eight(), 20, "a")
	j := keyed(ats(10))
	j.StartWithin = 3 * second
	w.begin(j)
	w.call = func(_ int, name string) error {
		if name == "Decide" && w.now > 9*second && w.now < 12500*time.Millisecond {
			return errDown
		}
		return nil
	}
	w.until(20 * second)
	w.end("keyed", 8) // of those that started in time, if any
	w.until(30 * second)
	if n := len(w.rows()); n != 20 {
		t.Fatalf("%d runs, want 20", n)
	}
	for _, s := range w.starts("keyed") {
		if s.Late > j.StartWithin {
			t.Errorf("%s starts for the first time %v late, with %v to start", s.Occurrence.Key, s.Late, j.StartWithin)
		}
	}
}

// What a person asks for within StartWithin of its due starts as well, however late a worker is free for it.
func TestBackfilledInTimeStartsLate(t *testing.T) {
	t.Parallel()
	cfg := eight()
	cfg.Concurrency = 1
	w := newCrowd(t, cfg, 3, "a")
	first, j := once("first"), keyed(ats(12))
	j.StartWithin = 5 * second
	w.begin(first, j)
	w.until(5 * second)
	w.by(idempotency.Skip, idempotency.ID{Job: "keyed", Due: epoch.Add(12 * second)})
	w.until(14 * second)
	w.by(idempotency.Backfill, idempotency.ID{Job: "keyed"}, epoch.Add(12*second))
	w.until(40 * second)
	w.end("first", 1)
	w.turnOver(20_000, 100, "keyed")
	if n := w.done("keyed"); n != 3 {
		t.Errorf("%d of 3 keys are done: %q", n, w.fates("keyed"))
	}
}

// asleep keeps core 0's next call of a name until the store has taken it and its host was suspended, or its clock set; then it hears the answer.
func (w *tower) asleep(name string, slept, set time.Duration) {
	w.keep = func(i int, call *Call) bool {
		if i != 0 || call.Name != name {
			return false
		}
		w.keep = nil
		r := call.Do(w.t.Context(), w.store)
		w.skew, w.wrong = w.skew+slept, w.wrong+slept+set
		w.tell(0, r)
		return true
	}
}

// A host is suspended between the opening of a due and its answer. Its monotonic clock says that there is time left to start; the
// store's time decides, which is asked first. So is it where the wall clock was merely set.
func TestStartWithinOfSuspendedHost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		slept, set time.Duration
		want       string
	}{
		"in time":            {slept: 2 * second, want: "running ()"},
		"for too long":       {slept: 4 * second, want: "skipped (deadline)"},
		"clock was set":      {set: 4 * second, want: "running ()"},
		"clock set a little": {slept: 2900 * time.Millisecond, set: 900 * time.Millisecond, want: "running ()"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTower(t, timing(), "a")
			w.begin(jobs.Job{Name: "tight", Schedule: jobs.At(epoch.Add(11 * second)), Run: none, StartWithin: 3 * second})
			w.asleep("Decide", c.slept, c.set)
			w.until(11*second + 10*time.Millisecond)
			w.want("tight", c.want)
			if n := len(w.starts("tight")); (n == 1) != (c.want == "running ()") || w.calls["Claim"] > 0 {
				t.Errorf("started %d times, after %d claims", n, w.calls["Claim"])
			}
		})
	}
}

// Who asks for another attempt after a while gets it no sooner, though the host was suspended meanwhile.
func TestRetryAfterOfSuspendedHost(t *testing.T) {
	t.Parallel()
	w := newTower(t, timing(), "a")
	w.begin(once("j"))
	w.until(10*second + 100*time.Millisecond)
	w.skew, w.wrong = 4*second, 4*second
	at := w.now + w.skew
	w.returned(w.starts("j")[0], jobs.RetryAfter(5*second, errWork))
	for len(w.starts("j")) == 1 && w.now < 30*second {
		w.until(w.now + 50*time.Millisecond)
	}
	if waited := w.now + w.skew - at; waited < 5*second || waited > 10*second {
		t.Errorf("the next attempt starts %v later, want 5 s and what the host did not know of", waited)
	}
}

// awaits is a world in which a run, and those of its key behind it, wait for the store's time, which is not told.
func awaits(t *testing.T, c Config) *tower {
	w := newTower(t, c, "a", "b")
	j := jobs.Job{Name: "tight", Schedule: ats(11, 12, 13), Run: none, StartWithin: 4 * second}
	w.begin(j)
	down := false
	w.call = func(i int, name string) error {
		if i == 1 || down || name == "RenewSession" && w.now > 13*second {
			return errDown
		}
		return nil
	}
	w.until(10 * second)
	down = true
	w.until(13*second + 500*time.Millisecond)
	down = false
	w.asleep("Decide", 0, 2*second)
	w.until(13*second + 800*time.Millisecond)
	w.want("tight", "running ()", "waiting ()", "waiting ()")
	if n := len(w.starts("tight")); n != 0 || w.calls["Claim"] > 0 {
		t.Fatalf("%d starts, %d claims", n, w.calls["Claim"])
	}
	return w
}

// What waits for the store's time keeps its key: nothing of it overtakes it. It is asked for until it is told.
func TestAwaitingKeepsItsKey(t *testing.T) {
	t.Parallel()
	w := awaits(t, timing())
	w.call = nil
	w.until(14 * second)
	if s := w.starts("tight"); len(s) != 1 || !s[0].Occurrence.Due.Equal(epoch.Add(11*second)) {
		t.Errorf("starts: %+v", s)
	}
	w.want("tight", "running ()", "waiting ()", "waiting ()")
}

// What waits for the store's time ends without a start when it is told to, and goes on elsewhere where this replica leaves or gives its
// session up.
func TestAwaitingEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end    func(*tower)
		want   string
		starts int // of it, later
	}{
		"canceled": {func(w *tower) { w.by(idempotency.Cancel, due("tight", 11*second)) }, "failed (canceled)", 0},
		"drained":  {func(w *tower) { w.tell(0, Stop{}) }, "waiting (unstarted)", 0},
		"lost":     {func(w *tower) { w.cores[0].lose("test") }, "running (unstarted)", 1}, // it takes it up again
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := awaits(t, timing())
			c.end(w)
			for w.now < 15*second && w.fates("tight")[0] == "running ()" {
				w.until(w.now + 50*time.Millisecond)
			}
			if got := w.fates("tight")[0]; got != c.want {
				t.Errorf("ended %s, want %s", got, c.want)
			}
			n := 0
			for _, s := range w.starts("tight") {
				if s.Occurrence.Due.Equal(epoch.Add(11 * second)) {
					n++
				}
			}
			if n != c.starts {
				t.Errorf("it has started %d times, want %d", n, c.starts)
			}
			if r := w.rows()[0]; r.Attempt != 0 {
				t.Errorf("%d attempts are recorded", r.Attempt)
			}
			if n := w.cores[0].jobs["tight"].load.reserved; n != 0 {
				t.Errorf("%d claims are still promised workers", n)
			}
		})
	}
}
