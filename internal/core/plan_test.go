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

var epoch = time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)

// at is the instant n seconds after epoch; a negative n is none.
func at(n int) time.Time {
	if n < 0 {
		return time.Time{}
	}
	return epoch.Add(time.Duration(n) * time.Second)
}

func planOf(e idempotency.Entry, now time.Time, missedAfter, horizon time.Duration) idempotency.Decision {
	s := jobs.Every(10 * time.Second)
	return planner{now: now, missedAfter: missedAfter, horizon: horizon,
		def: idempotency.Definition{Job: "j", Schedule: s.String(), Hash: "h"}, schedule: s}.plan(e)
}

func TestPlan(t *testing.T) {
	t.Parallel()
	def := idempotency.Definition{Job: "j", Hash: "h"}
	for _, c := range []struct {
		name        string
		entry       idempotency.Entry
		now         int
		missedAfter time.Duration
		want        string
	}{
		{"one due", idempotency.Entry{Definition: def, Opened: at(5)}, 12, time.Minute, "run 10; next 20"},
		{"none yet", idempotency.Entry{Definition: def, Opened: at(5)}, 9, time.Minute, "next 10"},
		{"young ones all run", idempotency.Entry{Definition: def, Opened: at(5)}, 35, time.Minute, "run 10 20 30; next 40"},
		{"of the late ones the latest runs", idempotency.Entry{Definition: def, Opened: at(5)}, 52, 12 * time.Second, "run 30 40 50; missed late 10-20 x2; next 60"},
		{"older than the horizon none runs", idempotency.Entry{Definition: def, Opened: at(5)}, 3699, time.Second, "missed late 10-3690 x369; next 3700"},
		{"F5: dues inside a pause are skipped, after the resume too",
			idempotency.Entry{Definition: def, Opened: at(5), PausedFrom: at(15), PausedUntil: at(36)}, 52, time.Minute, "run 10 40 50; skipped paused 20-30 x2; next 60"},
		{"F5: and during it", idempotency.Entry{Definition: def, Opened: at(5), PausedFrom: at(15)}, 52, time.Minute, "run 10; skipped paused 20-50 x4; next 60"},
		{"an old definition's dues are decided by its schedule",
			idempotency.Entry{Definition: idempotency.Definition{Job: "j", Hash: "old", Schedule: "@every 4s"}, Opened: at(5)}, 13, time.Minute, "run 8 12; next 20"},
		{"whose schedule nobody knows is missed", idempotency.Entry{Definition: idempotency.Definition{Job: "j", Hash: "old", Schedule: "@custom moon"}, Opened: at(5)}, 13, time.Minute, "missed unknown schedule 5-13 x1; next 20"},
		{"a store that stepped back", idempotency.Entry{Definition: def, Opened: at(25)}, 12, time.Minute, "next 30"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			horizon := time.Hour
			if c.missedAfter == time.Second {
				horizon = 5 * time.Second
			}
			if got := spell(planOf(c.entry, at(c.now), c.missedAfter, horizon)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func spell(d idempotency.Decision) string {
	s := ""
	sec := func(t time.Time) int { return int(t.Sub(epoch) / time.Second) }
	if len(d.Run) > 0 {
		s += "run"
		for _, t := range d.Run {
			s += fmt.Sprintf(" %d", sec(t))
		}
		s += "; "
	}
	for _, r := range d.Ranges {
		o := map[idempotency.Outcome]string{idempotency.Missed: "missed", idempotency.Skipped: "skipped"}[r.Outcome]
		s += fmt.Sprintf("%s %s %d-%d x%d; ", o, r.Reason, sec(r.From), sec(r.To), r.Count)
	}
	return s + fmt.Sprintf("next %d", sec(d.Next))
}

// Whatever was seen, plans one after the other decide each due exactly once and
// in order, run no late due but the latest, and end with nothing due.
func TestPlansDecideEachDueOnce(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 300 {
		e := idempotency.Entry{Definition: idempotency.Definition{Job: "j", Hash: "h"}, Opened: at(rng.IntN(1000))}
		if rng.IntN(2) == 0 {
			from := rng.IntN(5000)
			e.PausedFrom, e.PausedUntil = at(from), at(from+rng.IntN(3000))
		}
		start, now := e.Opened, e.Opened.Add(time.Duration(rng.IntN(20_000))*time.Second)
		missedAfter := time.Duration(rng.IntN(20_000)) * time.Second
		count := map[int64]int64{}
		var late int
		for rounds := 0; ; rounds++ {
			d := planOf(e, now, missedAfter, 100*time.Hour)
			if len(d.Run) > idempotency.MaxBatch || d.Opened.Before(e.Opened) || rounds > 10 {
				t.Fatalf("seed %d: %d dues in one plan, opened %v after %v, round %d", seed, len(d.Run), d.Opened, e.Opened, rounds)
			}
			if !slices.IsSortedFunc(d.Run, time.Time.Compare) {
				t.Fatalf("seed %d: dues out of order: %v", seed, d.Run)
			}
			for _, r := range d.Run {
				count[r.Unix()]++
				if r.Before(now.Add(-missedAfter)) {
					late++
				}
			}
			var inRanges int64
			for _, r := range d.Ranges {
				inRanges += r.Count
			}
			count[0] += inRanges
			e.Opened, e.Next = d.Opened, d.Next
			if !d.Opened.Before(now) {
				break
			}
		}
		want := jobs.Every(10*time.Second).Count(start, now)
		var got int64
		for _, n := range count {
			got += n
		}
		if got != want || late > 1 || !e.Next.After(now) {
			t.Fatalf("seed %d: %d dues decided of %d, %d late ones run, next %v after %v", seed, got, want, late, e.Next, now)
		}
	}
}

// A plan after a long outage is bounded, and the following ones go on where it ended.
func TestPlanIsBounded(t *testing.T) {
	t.Parallel()
	e := idempotency.Entry{Definition: idempotency.Definition{Job: "j", Hash: "h"}, Opened: epoch}
	now := epoch.Add(3 * maxDues * 10 * time.Second)
	var missed int64
	plans := 0
	for e.Opened.Before(now) {
		d := planOf(e, now, time.Minute, time.Hour)
		for _, r := range d.Ranges {
			missed += r.Count
		}
		if len(d.Run) > 0 && d.Opened.Before(now) {
			t.Fatalf("%d dues run before the last plan", len(d.Run))
		}
		e.Opened = d.Opened
		if plans++; plans > 10 {
			t.Fatal("the plans do not come to an end")
		}
		if d.Opened.Equal(now) && missed+int64(len(d.Run)) != 3*maxDues {
			t.Errorf("%d missed and %d run of %d", missed, len(d.Run), 3*maxDues)
		}
	}
	if plans < 3 {
		t.Errorf("%d plans: one covers more than %d dues", plans, maxDues)
	}
}
