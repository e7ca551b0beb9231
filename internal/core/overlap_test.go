package core

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/ring"
)

// play lets five dues of a minute each come, of the one key k00 where there are keys. Handlers take so long, unless their
// contexts are ended before.
func (w *tower) play(takes time.Duration) {
	started := map[int64]time.Duration{}
	keys := list(1)
	w.act = func(i int, a Action) []Event {
		switch a := a.(type) {
		case Start:
			started[a.Handle] = w.now
		case Cancel:
			delete(started, a.Handle)
			return []Event{Return(a.Handle, a.Cause)}
		case OpenStream, Pull:
			return keys(i, a)
		}
		return nil
	}
	for end := w.now + 5*time.Minute + 50*second; w.now < end; {
		w.until(w.now + second)
		for h, at := range started {
			if w.now-at >= takes {
				delete(started, h)
				w.tell(0, Return(h, nil))
			}
		}
	}
}

// atWork is the most handlers of a job that were at work at once.
func (w *tower) atWork() int {
	at, most := map[int64]bool{}, 0
	for _, a := range w.acts {
		switch a := a.(type) {
		case Start:
			at[a.Handle] = true
		case Finished:
			for h := range at {
				delete(at, h) // any: only their number counts
				break
			}
		}
		most = max(most, len(at))
	}
	return most
}

var stripReason = regexp.MustCompile(`(running|waiting) \([a-z]*\)`)

var policies = map[string]jobs.Overlap{"skip": jobs.OverlapSkip, "queue": jobs.OverlapQueue, "allow": jobs.OverlapAllow, "cancel": jobs.OverlapCancel}

// JB-05: what becomes of a due whose key has a run at work, for jobs without keys and with, and for efficiency jobs, which no
// store decides. Due each minute, runs take 150 s.
func TestOverlap(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		// 1:00 runs to 3:30, 2:00 and 3:00 are skipped, 4:00 runs
		"skip": "[done skipped (overlap) skipped (overlap) running skipped (overlap)]",
		// 1:00 runs to 3:30, 2:00 to 6:00; 3:00 finds 2:00 waiting; 4:00 waits, 5:00 finds that
		"queue": "[done running skipped (overlap) waiting skipped (overlap)]",
		"allow": "[done done done running running]",
		// each is ended by the next
		"cancel": "[skipped (overtaken) skipped (overtaken) skipped (overtaken) skipped (overtaken) running]",
	}
	for name, policy := range policies {
		for _, kind := range []string{"plain", "keyed"} {
			t.Run(kind+" "+name, func(t *testing.T) {
				t.Parallel()
				w := newTower(t, timing(), "a")
				j := jobs.Job{Name: "j", Schedule: jobs.Every(time.Minute), Run: none, Overlap: policy}
				if kind == "keyed" {
					j.Keys = jobs.KeyList("k00")
				}
				w.begin(j)
				w.play(150 * second)
				// Why a run waits or has waited is not this test's business.
				if got := stripReason.ReplaceAllString(fmt.Sprint(w.fates("j")), "$1"); got != want[name] {
					t.Errorf("%s, want %s", got, want[name])
				}
				if most := w.atWork(); policy != jobs.OverlapAllow && most > 1 || policy == jobs.OverlapAllow && most != 3 {
					t.Errorf("%d at work at once", most)
				}
			})
		}
	}
}

// An efficiency job has the same four policies, by what runs on its replica.
func TestLocalOverlap(t *testing.T) {
	t.Parallel()
	minutes := map[string][]int{"skip": {1, 4}, "queue": {1, 2}, "allow": {1, 2, 3, 4, 5}, "cancel": {1, 2, 3, 4, 5}}
	refused := map[string][]string{"skip": {"busy", "busy", "busy"}, "queue": {"busy", "busy"}}
	for name, policy := range policies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTower(t, timing(), "a")
			w.begin(jobs.Job{Name: "j", Schedule: jobs.Every(time.Minute), Run: none, Guarantee: jobs.Efficiency, Overlap: policy})
			w.play(150 * second)
			var got []int
			for _, s := range w.starts("j") {
				got = append(got, int(s.Occurrence.Due.Sub(epoch)/time.Minute))
			}
			if !slices.Equal(got, minutes[name]) || !slices.Equal(w.refused("j"), refused[name]) {
				t.Errorf("started in minutes %v, want %v; refused %q, want %q", got, minutes[name], w.refused("j"), refused[name])
			}
			if most := w.atWork(); policy != jobs.OverlapAllow && most > 1 {
				t.Errorf("%d at work at once", most)
			}
			for _, s := range w.starts("j")[:1] {
				if err := w.ended(s); (policy == jobs.OverlapCancel) != errors.Is(err, jobs.ErrOvertaken) {
					t.Errorf("the first was ended with %v", err)
				}
			}
		})
	}
}

// Where a newer run overtakes, older ones of the key that wait, for a worker or for their next attempt, are left out.
func TestLocalOvertakesWhatWaits(t *testing.T) {
	t.Parallel()
	c := timing()
	c.Concurrency = 1
	w := newTower(t, c, "a")
	j := jobs.Job{Name: "j", Schedule: jobs.Every(10 * second), Run: none, Guarantee: jobs.Efficiency, Overlap: jobs.OverlapCancel}
	w.begin(j)
	w.until(11 * second)
	w.returned(w.starts("j")[0], jobs.RetryAfter(15*second, errWork)) // to 26 s
	w.until(20*second + 100*time.Millisecond)
	w.returned(w.starts("j")[1], nil)
	w.until(27 * second)
	if r := w.refused("j"); len(w.starts("j")) != 2 || !slices.Equal(r, []string{"overtaken"}) {
		t.Errorf("%d starts, refused %q", len(w.starts("j")), r)
	}
	deaf := w.cores[0]
	w.until(31 * second) // the third is at work, and deaf
	w.until(51 * second) // the fourth and fifth wait behind it
	if r := w.refused("j"); len(w.starts("j")) != 3 || !slices.Equal(r, []string{"overtaken", "overtaken"}) {
		t.Errorf("%d starts, refused %q", len(w.starts("j")), r)
	}
	w.returned(w.starts("j")[2], nil)
	w.until(52 * second)
	if s := w.starts("j"); len(s) != 4 || !s[3].Occurrence.Due.Equal(epoch.Add(50*second)) || len(deaf.workers.queues) != 1 {
		t.Errorf("after its return: %d starts, %d queues", len(s), len(deaf.workers.queues))
	}
	w.returned(w.starts("j")[3], nil)
	w.until(53 * second)
	if n := len(deaf.workers.queues); n != 0 {
		t.Errorf("%d lanes are kept of keys that nothing waits for", n)
	}
}

// An outage must not make what it delayed overtake or skip each other, whatever the policy: the later ones wait.
func TestCatchUpOverlaps(t *testing.T) {
	t.Parallel()
	for name, policy := range policies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTower(t, timing(), "a")
			down := true
			w.call = func(int, string) error {
				if down && w.now > 5*second {
					return errDown
				}
				return nil
			}
			w.act = func(_ int, a Action) []Event {
				if s, ok := a.(Start); ok {
					return []Event{Ended{Handle: s.Handle}}
				}
				return nil
			}
			w.begin(jobs.Job{Name: "j", Schedule: jobs.Every(10 * second), Run: none, Overlap: policy})
			w.until(45 * second)
			down = false
			w.until(49 * second)
			w.want("j", "done", "done", "done", "done")
		})
	}
}

// A holder on another replica is told to end through the store, within two sweeps.
func TestOvertakesElsewhere(t *testing.T) {
	t.Parallel()
	w := newTower(t, timing(), "a", "b")
	j := jobs.Job{Name: "j", Schedule: jobs.Every(time.Minute), Run: none, Overlap: jobs.OverlapCancel}
	w.begin(j)
	w.until(61 * second)
	holder := 0
	if len(w.cores[1].workers.held) == 1 {
		holder = 1
	}
	r, err := ring.New([]string{w.cores[1-holder].cfg.Replica}, &ring.Options{Partitions: 16})
	if err != nil {
		t.Fatal(err)
	}
	for i := range w.cores {
		w.tell(i, RingChanged{Ring: r})
	}
	w.act = func(i int, a Action) []Event {
		if c, ok := a.(Cancel); ok {
			return []Event{Return(c.Handle, c.Cause)}
		}
		return nil
	}
	w.until(123 * second)
	w.want("j", "skipped (overtaken)", "running ()")
}

// Where nothing holds a key the store is asked for no more than it is for.
func TestInsertion(t *testing.T) {
	t.Parallel()
	w := newTower(t, timing(), "a")
	w.begin(keyed(jobs.Every(time.Minute)))
	c := w.cores[0]
	for name, policy := range policies {
		for _, catchUp := range []bool{false, true} {
			j := *c.jobs["keyed"]
			j.Overlap = policy
			x := c.insertion(&pass{job: &j, due: epoch.Add(time.Minute), catchUp: catchUp}, "k")
			if err := x.Validate(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if catchUp && policy != jobs.OverlapAllow && (x.OnBusy.Outcome != idempotency.Wait || x.OnQueued != nil || x.Overtake) {
				t.Errorf("%s: what catches up does not wait: %+v", name, x)
			}
			if late := !catchUp && policy != jobs.OverlapAllow; late != (x.OnNewer != nil) {
				t.Errorf("%s: catching up %t, and OnNewer is %+v", name, catchUp, x.OnNewer)
			}
		}
	}
}
