package core

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

// clocks is one replica with efficiency jobs alone and a wall clock that the test sets.
type clocks struct {
	*tower
	starts map[string][]time.Time // dues, in the order of their starts
	steps  int                    // of the core
	early  error
}

func newClocks(t *testing.T, list ...jobs.Job) *clocks {
	t.Helper()
	return newClocksAt(t, 0, list...)
}

// newClocksAt is newClocks on a host whose wall clock is wrong from the start.
func newClocksAt(t *testing.T, wrong time.Duration, list ...jobs.Job) *clocks {
	t.Helper()
	config := timing()
	config.Store = false
	x := &clocks{tower: newTower(t, config, "a"), starts: map[string][]time.Time{}}
	x.wrong = wrong
	x.act = func(_ int, a Action) []Event {
		s, ok := a.(Start)
		if !ok {
			return nil
		}
		if now := x.wallNow(); s.Occurrence.Due.After(now) {
			x.early = fmt.Errorf("due %v starts at %v", s.Occurrence.Due, now)
		}
		x.starts[s.Occurrence.Job] = append(x.starts[s.Occurrence.Job], s.Occurrence.Due)
		return []Event{Ended{Handle: s.Handle}}
	}
	for i := range list {
		list[i].Guarantee, list[i].Run = jobs.Efficiency, none
	}
	x.begin(list...)
	return x
}

func (x *clocks) wallNow() time.Time { return epoch.Add(x.now + x.wrong) }

// pass lets true time pass, waking the core when it wants to be woken.
func (x *clocks) pass(d time.Duration) {
	for end := x.now + d; x.now < end; {
		x.now = min(end, max(x.cores[0].Wake(), x.now+time.Microsecond))
		x.steps++
		x.tell(0)
	}
}

// set sets the wall clock on by d, or back.
func (x *clocks) set(d time.Duration) { x.wrong += d }

// want demands the dues of a job that started since the last call, in minutes since the epoch.
func (x *clocks) want(job string, minutes ...int) {
	x.t.Helper()
	var got []int
	for _, due := range x.starts[job] {
		got = append(got, int(due.Sub(epoch)/time.Minute))
	}
	delete(x.starts, job)
	if !slices.Equal(got, minutes) {
		x.t.Errorf("after %v started %v, want %v", x.now, got, minutes)
	}
	if x.early != nil {
		x.t.Errorf("early: %v", x.early)
	}
}

var minutely = jobs.Job{Name: "m", Schedule: jobs.Every(time.Minute)}

// F53: a wall clock that is set back repeats minutes. Those that ran do not run again, and the next one does.
func TestWallClockSetBack(t *testing.T) {
	t.Parallel()
	x := newClocks(t, minutely)
	x.pass(5*time.Minute + 30*time.Second)
	x.want("m", 1, 2, 3, 4, 5)
	x.set(-3 * time.Minute) // it says 2:30
	x.pass(3 * time.Minute)
	x.want("m")
	x.pass(time.Minute)
	x.want("m", 6)
}

// F53, F70: minutes that the wall clock leaves out, because it was set on or the host was suspended, have had their
// time; the one that is late by less than MissedAfter runs.
func TestWallClockSetOn(t *testing.T) {
	t.Parallel()
	x := newClocks(t, minutely, jobs.Job{Name: "half", Schedule: jobs.Every(time.Minute).Phase(30 * time.Second)})
	x.pass(90*time.Second + time.Millisecond)
	x.want("m", 1)
	x.want("half", 0, 1)
	x.set(time.Hour) // it says 61:30
	x.pass(time.Second)
	x.want("m", 61)
	x.want("half", 61)
	x.pass(time.Minute)
	x.want("m", 62)
	x.set(-time.Hour) // 2:31: what was left out comes now
	x.pass(2 * time.Minute)
	x.want("m", 3, 4)
	x.want("half", 62, 3, 4)
}

// F54: for a moment the clock is eight years ahead. The job goes on at the next real minute, and what ran in
// that moment does not run again when its time comes.
func TestWallClockAheadForAMoment(t *testing.T) {
	t.Parallel()
	for _, by := range []time.Duration{20 * time.Minute, 8 * year} {
		t.Run(by.String(), func(t *testing.T) {
			t.Parallel()
			x := newClocks(t, minutely)
			x.pass(time.Minute + time.Second)
			x.want("m", 1)
			x.set(by)
			x.pass(2 * time.Minute)
			ahead := int(by / time.Minute)
			x.want("m", ahead+1, ahead+2, ahead+3)
			x.set(-by)
			x.pass(time.Minute)
			x.want("m", 4)
			if by > time.Hour {
				return
			}
			x.pass(15 * time.Minute)
			delete(x.starts, "m")
			x.pass(5 * time.Minute)
			x.want("m", 20, 24)
		})
	}
}

// CK-07: the process starts while the clock says 1970, or is slow, and then it is corrected: no backlog, and the next
// minute runs.
func TestStartedBeforeTimeSync(t *testing.T) {
	t.Parallel()
	for _, wrong := range []time.Duration{epoch.Sub(time.Unix(0, 0)), 20 * time.Minute} {
		t.Run(wrong.String(), func(t *testing.T) {
			t.Parallel()
			x := newClocksAt(t, -wrong, minutely, jobs.Job{Name: "late", Schedule: jobs.Every(20 * time.Minute).Phase(-2 * time.Minute)})
			x.pass(30 * time.Second)
			x.want("m")
			x.set(wrong)
			x.pass(2 * time.Minute)
			x.want("m", 0, 1, 2) // minute 0 came 30 s before the correction
			x.want("late")
			x.pass(16 * time.Minute)
			x.want("late", 18)
		})
	}
}

// A clock that is set to and fro: whatever it does, nothing runs twice or early, and once it stays right what has not
// come yet runs. What comes late, by a step forward, has come, though of several such dues one runs.
func TestWallClockToAndFro(t *testing.T) {
	t.Parallel()
	for range 60 {
		seed := rand.Uint64()
		rng := rand.New(rand.NewPCG(seed, 1))
		x := newClocks(t, jobs.Job{Name: "j", Schedule: jobs.Every(10 * time.Second)})
		var late [][2]time.Time
		for range 1 + rng.IntN(maxSpans) {
			x.pass(time.Duration(rng.Int64N(int64(3 * time.Minute))))
			before := x.wallNow()
			x.set(time.Duration(rng.Int64N(int64(20*time.Minute))) - 10*time.Minute)
			late = append(late, [2]time.Time{before, x.wallNow()})
		}
		from := x.wallNow()
		x.pass(30 * time.Minute)
		ran := map[time.Time]int{}
		for _, due := range x.starts["j"] {
			if ran[due]++; ran[due] > 1 {
				t.Fatalf("seed %d: due %v ran twice", seed, due)
			}
		}
		if x.early != nil {
			t.Fatalf("seed %d: %v", seed, x.early)
		}
		for due := from.Truncate(10 * time.Second).Add(10 * time.Second); !due.After(x.wallNow()); due = due.Add(10 * time.Second) {
			came := slices.ContainsFunc(late, func(l [2]time.Time) bool {
				return due.After(l[0]) && !due.After(l[1].Add(timing().Sweep)) && l[1].After(l[0]) && l[1].Sub(due) <= timing().MissedAfter
			})
			if ran[due] == 0 && !came {
				t.Fatalf("seed %d: due %v never ran", seed, due)
			}
		}
	}
}

// What is remembered of a clock that never stays is bounded; the youngest of it is kept.
func TestWallSpansAreBounded(t *testing.T) {
	t.Parallel()
	x := newClocks(t, minutely)
	for i := range 200 {
		x.pass(2 * time.Second)
		x.set(time.Duration(1-2*(i%2)) * time.Hour)
	}
	w := &x.cores[0].wall
	if len(w.past) != maxSpans {
		t.Errorf("%d spans are kept, want %d", len(w.past), maxSpans)
	}
	for i, p := range w.past {
		if oldest := (200 - maxSpans - 1) * 2 * time.Second; p.began < oldest {
			t.Errorf("span %d of those that are kept is of %v, the oldest of the last %d is of %v", i, p.began, maxSpans, oldest)
		}
		if w.covered(p.to, 0).IsZero() {
			t.Errorf("span %d is kept, and what is in it has not come", i)
		}
	}
}

// A job that was added after the clock had been ahead has run nothing of that time.
func TestJobAddedAfterClockWasAhead(t *testing.T) {
	t.Parallel()
	x := newClocks(t, minutely)
	x.pass(time.Second)
	x.set(10 * time.Minute)
	x.pass(5 * time.Minute)
	x.set(-10 * time.Minute)
	x.pass(time.Second)
	young := jobs.Job{Name: "young", Schedule: jobs.Every(time.Minute), Guarantee: jobs.Efficiency, Run: none}.WithDefaults()
	old := x.cores[0].jobs["m"].Job
	x.tell(0, JobsChanged{Jobs: []jobs.Job{old, young}})
	x.pass(11 * time.Minute)
	x.want("m", 10, 11, 12, 13, 14, 15, 6, 7, 8, 9, 16)
	x.want("young", 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)
}

// CK-08: where a schedule has no further due there is no timer, no start and no spinning: a core without a
// store wakes once in a Sweep.
func TestNeverIsNoTimer(t *testing.T) {
	t.Parallel()
	never := func(time.Time) time.Time { return time.Time{} }
	x := newClocks(t, jobs.Job{Name: "never", Schedule: jobs.Custom("never", never)},
		jobs.Job{Name: "past", Schedule: jobs.At(epoch.Add(-time.Hour))})
	x.idle(t)
}

// CK-10: a due that is centuries away is waited for in short steps, without a start.
func TestVeryLongWaits(t *testing.T) {
	t.Parallel()
	x := newClocks(t, jobs.Job{Name: "yearly", Schedule: jobs.Cron("@yearly")},
		jobs.Job{Name: "longest", Schedule: jobs.Every(2562047 * time.Hour)},
		jobs.Job{Name: "last", Schedule: jobs.At(time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC))})
	x.idle(t)
}

// idle demands a day without a start in which the core wakes once in a Sweep.
func (x *clocks) idle(t *testing.T) {
	t.Helper()
	const day = 24 * time.Hour
	x.steps = 0
	x.pass(day)
	if n := int(day / timing().Sweep); x.steps > n+1 {
		t.Errorf("%d steps in a day, want %d", x.steps, n)
	}
	if len(x.starts) > 0 {
		t.Errorf("started %v", x.starts)
	}
}

// CK-08, CK-10: the same of correctness jobs, whose dues are in the store.
func TestNeverAndVeryLongInTheStore(t *testing.T) {
	t.Parallel()
	w := newTower(t, timing(), "a", "b")
	w.begin(jobs.Job{Name: "never", Schedule: jobs.Custom("never", func(time.Time) time.Time { return time.Time{} }), Run: none},
		jobs.Job{Name: "yearly", Schedule: jobs.Cron("@yearly"), Run: none},
		jobs.Job{Name: "longest", Schedule: jobs.Every(2562047 * time.Hour), Run: none})
	w.until(time.Hour)
	if n := w.calls["Decide"] + w.calls["Claim"]; n > 0 || len(w.rows()) > 0 {
		t.Errorf("%d openings and claims, %d rows; want none", n, len(w.rows()))
	}
	for name, n := range w.calls {
		if n > 2*3600+10 {
			t.Errorf("%d calls of %s by two replicas in an hour", n, name)
		}
	}
}

// CK-09: a calendar that answers with what it was asked ends its schedule; it is not started in a loop.
func TestCalendarThatStandsStill(t *testing.T) {
	t.Parallel()
	stuck := epoch.Add(90 * time.Second)
	still := jobs.Custom("still", func(after time.Time) time.Time {
		if after.Before(stuck) {
			return after.Truncate(30 * time.Second).Add(30 * time.Second)
		}
		return after
	})
	for _, g := range []jobs.Guarantee{jobs.Efficiency, jobs.Correctness} {
		w := newTower(t, timing(), "a")
		starts, steps := 0, 0
		w.act = func(_ int, a Action) []Event {
			if s, ok := a.(Start); ok {
				starts++
				return []Event{Ended{Handle: s.Handle}}
			}
			return nil
		}
		w.begin(jobs.Job{Name: "j", Guarantee: g, Schedule: still, Run: none})
		for w.now < 5*time.Minute {
			w.now = max(w.cores[0].Wake(), w.now+time.Microsecond)
			w.tell(0)
			steps++
		}
		if starts != 3 || steps > 900 {
			t.Errorf("guarantee %v: %d starts and %d steps in five minutes, want 3 starts and a step or two a second", g, starts, steps)
		}
	}
}

// answer is an answer of the store, by how far its clock is ahead of the host's, and how long it took there and back.
type answer struct {
	at          time.Duration
	skew        time.Duration
	there, back time.Duration
	want        string
}

// The host's clock is more than a second from the store's: that is told once, again after ten minutes, and when it is over.
// An answer that took long proves nothing, either way.
func TestSkewIsTold(t *testing.T) {
	t.Parallel()
	const quick = 5 * time.Millisecond
	c := New(timing())
	for _, a := range []answer{
		{0, 0, quick, 1900 * time.Millisecond, ""}, // slow, and the first
		{5 * time.Second, 0, quick, quick, ""},
		{10 * time.Second, 0, 1900 * time.Millisecond, quick, ""}, // slow, but right
		{20 * time.Second, 0, quick, 1900 * time.Millisecond, ""},
		{30 * time.Second, 900 * time.Millisecond, quick, quick, ""},
		{40 * time.Second, 3 * time.Second, quick, quick, "store ahead"},
		{50 * time.Second, 3 * time.Second, quick, quick, ""},
		{60 * time.Second, 800 * time.Millisecond, quick, quick, ""}, // not yet
		{70 * time.Second, -3 * time.Second, quick, quick, ""},       // still
		{11 * time.Minute, -3 * time.Second, quick, quick, "host ahead"},
		{12 * time.Minute, 0, 900 * time.Millisecond, quick, ""}, // who knows
		{13 * time.Minute, 0, quick, quick, "fine"},
		{14 * time.Minute, 0, quick, quick, ""},
		{15 * time.Minute, -8 * year, quick, quick, "host ahead"},
	} {
		sent := Instant{Mono: a.at, Wall: epoch.Add(a.at)}
		received := a.at + a.there + a.back
		c.now = Instant{Mono: received, Wall: epoch.Add(received)}
		c.out = nil
		r := idempotency.Renewal{Now: epoch.Add(a.at + a.there + a.skew)}
		c.sample(r, sent)
		c.compare(r, sent)
		got := ""
		for _, x := range c.out {
			if s, ok := x.(Skewed); ok && s.Fine {
				got = "fine"
			} else if ok && s.Offset > 0 {
				got = "store ahead"
			} else if ok {
				got = "host ahead"
			}
		}
		if got != a.want {
			t.Errorf("at %v, %v apart: told %q, want %q", a.at, a.skew, got, a.want)
		}
	}
}
