package core

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/ring"
)

// A Spread that is taken away, with or without an edit of the schedule, starts at once what had not started: none of that
// is late, whatever the policy.
func TestSpreadTakenAway(t *testing.T) {
	t.Parallel()
	last := "j" // a name in the last partition
	for i := 0; ring.Slot(last)%16 != 15; i++ {
		last = fmt.Sprint("j", i)
	}
	for _, m := range []jobs.Missed{{}, {Policy: jobs.MissedSkip}} {
		for _, then := range []jobs.Schedule{jobs.Every(10 * time.Minute), jobs.Every(10 * time.Minute).Phase(time.Minute)} {
			c := timing()
			c.Horizon, c.Retention = 24*time.Hour, 48*time.Hour
			w := newTower(t, c, "a")
			var started []time.Duration
			w.act = func(i int, a Action) []Event {
				switch a := a.(type) {
				case Start:
					started = append(started, a.Occurrence.Due.Sub(epoch))
				case Decided:
					if a.Missed > 0 {
						t.Errorf("%v, then %v: %d were missed", m, then, a.Missed)
					}
				}
				return endEach(i, a)
			}
			j := jobs.Job{Name: last, Schedule: jobs.Every(10 * time.Minute), Spread: 40 * time.Minute, Missed: m, Run: none}
			w.begin(j)
			w.until(55 * time.Minute) // that of 10 started at 47.5
			j.Spread, j.Schedule = 0, then
			w.begin(j)
			w.until(59 * time.Minute)
			slices.Sort(started)
			if want := []time.Duration{10 * time.Minute, 20 * time.Minute, 30 * time.Minute, 40 * time.Minute, 50 * time.Minute}; !slices.Equal(started, want) {
				t.Errorf("%v, then %v: started %v, want %v", m, then, started, want)
			}
		}
	}
}

// An efficiency job with keys, more of whose dues are under way than one: after a suspension, or a step on, each key
// that starts afterwards does, of each of them.
func TestLocalSpreadAfterStepOn(t *testing.T) {
	t.Parallel()
	const spread = 40 * time.Minute
	c := timing()
	c.Partitions = 256
	w := spreadTower(t, c, "a")
	w.begin(local(jobs.Every(10*time.Minute), spread))
	w.until(61 * time.Minute)
	w.now = 95 * time.Minute
	w.until(180 * time.Minute)
	for due := 60 * time.Minute; due <= 120*time.Minute; due += 10 * time.Minute {
		for i := range 60 {
			key := fmt.Sprintf("k%02d", i)
			start := due + exact(spread, ring.Slot(key)%256, 256)
			if n := len(w.at[fmt.Sprint(key, "@", due)]); start > 95*time.Minute && n != 1 {
				t.Errorf("due %v: %s, which starts at %v, ran %d times", due, key, start, n)
			}
		}
	}
}
