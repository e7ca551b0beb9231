package core

import (
	"fmt"
	"testing"
	"time"

	"github.com/belfry-go/belfry/jobs"
)

// A leader who lacks a job's code, as the one before it did, is given as long to get it.
func TestNextLeaderLacksCode(t *testing.T) {
	t.Parallel()
	w := newCrew(t, elected(), "a", "b", "c")
	j := global(5 * time.Second)
	w.begin(j)
	for i := range 2 {
		w.tell(i, JobsChanged{Roles: true})
	}
	w.elect(0, 1)
	w.until(23 * time.Second)
	w.wantRuns(ran(5*time.Second, 2, 0), ran(10*time.Second, 2, 0), ran(15*time.Second, 2, 0), ran(20*time.Second, 2, 0))
	w.done = nil
	w.call = func(_ int, name string) error { // what is known of a's code says nothing of b's
		if name == "Overview" && w.now < 28*time.Second {
			return errDown
		}
		return nil
	}
	w.tell(0, Deposed{Term: 1, Why: "the test says so"})
	w.elect(1, 2)
	w.until(37 * time.Second)
	w.wantRuns() // b may have it soon
	w.until(39500 * time.Millisecond)
	w.wantRuns(ran(25*time.Second, 2, 0), ran(30*time.Second, 2, 0), ran(35*time.Second, 2, 0))
}

// While nobody leads a job is edited: who puts that in force opens what was due before, which waits for the leader, and not for its workers.
func TestEditedWithoutLeader(t *testing.T) {
	t.Parallel()
	w := newCrew(t, elected(), "a", "b")
	w.begin(global(10 * time.Second))
	w.until(12 * time.Second)
	edited := JobsChanged{Jobs: []jobs.Job{global(time.Hour).WithDefaults()}}
	for w.tell(0, edited); w.now < 20*time.Second && len(w.rows()) == 0; {
		w.until(w.now + time.Millisecond)
	}
	if b := w.cores[0].backlog; len(w.rows()) != 1 || len(b.fresh)+len(b.left) > 0 {
		t.Errorf("opened were %+v; of these %d wait for workers that may not have them", w.rows(), len(b.fresh)+len(b.left))
	}
	w.tell(1, edited)
	w.elect(1, 1)
	w.until(22 * time.Second)
	w.wantRuns(ran(10*time.Second, 1, 1))
}

// A rolling deploy makes a job the leader's, or makes it so no more, and the leader is the last to have the new code: each due runs
// once, whoever leads. Of an efficiency job, which no store knows the dues of, one may be left out until the others see that the leader has
// not their code, and run twice until they see that it has; where the leader still takes it for its own, it runs on the owner too.
func TestPlacementChangesInDeploy(t *testing.T) {
	t.Parallel()
	const first, last = 15 * time.Second, 135 * time.Second
	for name, c := range map[string]struct {
		local, toLeader bool
		out, twice      func(due time.Duration) bool // says that a due may be left out, or run twice
	}{
		"limited, to the leader":      {false, true, never, never},
		"limited, from the leader":    {false, false, never, never},
		"efficiency, to the leader":   {true, true, soonAfter(first), soonAfter(last)},
		"efficiency, from the leader": {true, false, never, func(due time.Duration) bool { return due > first && due < last }},
	} {
		for lead := range 3 {
			t.Run(fmt.Sprint(name, ", core ", lead), func(t *testing.T) {
				t.Parallel()
				w := changesPlacement(t, c.local, c.toLeader, lead, first, last)
				ran := map[time.Duration]int{}
				for _, d := range w.done {
					ran[d.Due.Sub(epoch)]++
				}
				for due := 10 * time.Second; due < w.now; due += 10 * time.Second {
					if n := ran[due]; n != 1 && !(n == 0 && c.out(due)) && !(n == 2 && c.twice(due)) {
						t.Errorf("the due %v was run %d times", due, n)
					}
				}
			})
		}
	}
}

func never(time.Duration) bool { return false }

// soonAfter is a Lease after an instant, and a little.
func soonAfter(at time.Duration) func(time.Duration) bool {
	return func(due time.Duration) bool { return due > at && due < at+12*time.Second }
}

// changesPlacement has the cores that do not lead get the new code at first, and the leader at last.
func changesPlacement(t *testing.T, local, toLeader bool, lead int, first, last time.Duration) *crew {
	t.Helper()
	w := newCrew(t, elected(), "a", "b", "c")
	before, after, other := global(10*time.Second), global(10*time.Second), global(time.Hour)
	other.Name = "other"
	before.Placement = jobs.OneOwner
	if local {
		before.Guarantee, after.Guarantee = jobs.Efficiency, jobs.Efficiency
	} else {
		before.Limit.Cluster = 1
	}
	if !toLeader {
		before, after = after, before
	}
	w.begin(before, other)
	w.elect(lead, 1)
	w.until(first)
	change := JobsChanged{Jobs: []jobs.Job{after.WithDefaults(), other.WithDefaults()}}
	for i := range w.cores {
		if i != lead {
			w.tell(i, change)
		}
	}
	w.until(last)
	w.tell(lead, change)
	w.until(last + time.Minute)
	return w
}
