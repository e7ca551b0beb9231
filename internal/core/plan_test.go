package core

import (
	"fmt"
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

// plannerOf plans by a schedule that is in force, or to be.
func plannerOf(s jobs.Schedule, now time.Time, missedAfter, horizon time.Duration, m jobs.Missed) planner {
	return planner{now: now, missedAfter: missedAfter, horizon: horizon, missed: jobs.Job{Missed: m}.WithDefaults().Missed, schedule: s, steps: maxSteps,
		def: idempotency.Definition{Job: "j", Schedule: s.String(), Hash: "h"}}
}

func TestPlan(t *testing.T) {
	t.Parallel()
	type policy = jobs.Missed
	def := idempotency.Definition{Job: "j", Hash: "h"}
	old := func(schedule string) idempotency.Definition {
		return idempotency.Definition{Job: "j", Hash: "old", Schedule: schedule}
	}
	all := func(n int) policy { return policy{Policy: jobs.MissedAll, Max: n} }
	skip := policy{Policy: jobs.MissedSkip}
	for _, c := range []struct {
		name        string
		entry       idempotency.Entry
		now         int
		missedAfter time.Duration
		missed      policy
		want        string
	}{
		{"one due", idempotency.Entry{Definition: def, Opened: at(5)}, 12, time.Minute, policy{}, "run 10; next 20"},
		{"none yet", idempotency.Entry{Definition: def, Opened: at(5)}, 9, time.Minute, policy{}, "next 10"},
		{"young ones all run", idempotency.Entry{Definition: def, Opened: at(5)}, 35, time.Minute, policy{}, "run 10 20 30; next 40"},
		{"whatever the policy", idempotency.Entry{Definition: def, Opened: at(5)}, 35, time.Minute, skip, "run 10 20 30; next 40"},
		{"of the late ones the latest runs", idempotency.Entry{Definition: def, Opened: at(5)}, 52, 12 * time.Second, policy{}, "run 30 40 50; missed late 10-20 x2; next 60"},
		{"or none", idempotency.Entry{Definition: def, Opened: at(5)}, 52, 12 * time.Second, skip, "run 40 50; missed late 10-30 x3; next 60"},
		{"or all", idempotency.Entry{Definition: def, Opened: at(5)}, 52, 12 * time.Second, all(9), "run 10 20 30 40 50; next 60"},
		{"but no more than so many", idempotency.Entry{Definition: def, Opened: at(5)}, 52, 12 * time.Second, all(2), "run 20 30 40 50; missed max 10-10 x1; next 60"},
		{"one that is just old enough is not late", idempotency.Entry{Definition: def, Opened: at(5)}, 52, 12 * time.Second, skip, "run 40 50; missed late 10-30 x3; next 60"},
		{"older than the horizon none runs", idempotency.Entry{Definition: def, Opened: at(5)}, 3699, time.Second, policy{}, "missed age 10-3690 x369; next 3700"},
		{"older than the policy's age none does",
			idempotency.Entry{Definition: def, Opened: at(5)}, 99, 10 * time.Second, policy{MaxAge: 9 * time.Second}, "run 90; missed age 10-80 x8; next 100"},
		{"and what is younger is decided by it",
			idempotency.Entry{Definition: def, Opened: at(5)}, 99, 10 * time.Second, policy{MaxAge: 39 * time.Second}, "run 80 90; missed age 10-50 x5; missed late 60-70 x2; next 100"},
		{"age and number", idempotency.Entry{Definition: def, Opened: at(5)}, 99, 10 * time.Second,
			policy{Policy: jobs.MissedAll, Max: 2, MaxAge: 39 * time.Second}, "run 70 80 90; missed age 10-50 x5; missed max 60-60 x1; next 100"},
		{"F5: dues inside a pause are skipped, after the resume too",
			idempotency.Entry{Definition: def, Opened: at(5), PausedFrom: at(15), PausedUntil: at(36)}, 52, time.Minute, policy{}, "run 10 40 50; skipped paused 20-30 x2; next 60"},
		{"F5: and during it", idempotency.Entry{Definition: def, Opened: at(5), PausedFrom: at(15)}, 52, time.Minute, policy{}, "run 10; skipped paused 20-50 x4; next 60"},
		{"a pause splits what is late",
			idempotency.Entry{Definition: def, Opened: at(5), PausedFrom: at(30), PausedUntil: at(50)}, 92, time.Second, policy{},
			"run 90; missed late 10-20 x2; skipped paused 30-40 x2; missed late 50-80 x4; next 100"},
		{"the latest may lie before the pause",
			idempotency.Entry{Definition: def, Opened: at(5), PausedFrom: at(30)}, 92, time.Second, policy{}, "run 20; missed late 10-10 x1; skipped paused 30-90 x7; next 100"},
		{"and the newest on both sides of it",
			idempotency.Entry{Definition: def, Opened: at(5), PausedFrom: at(30), PausedUntil: at(80)}, 92, time.Second, all(3),
			"run 20 80 90; missed max 10-10 x1; skipped paused 30-70 x5; next 100"},
		{"an old definition's dues are decided by its schedule",
			idempotency.Entry{Definition: old("@every 4s"), Opened: at(5)}, 13, time.Minute, policy{}, "run 8 12; next 20"},
		{"and by our policy", idempotency.Entry{Definition: old("@every 4s"), Opened: at(5)}, 13, 2 * time.Second, skip, "run 12; missed late 8-8 x1; next 20"},
		{"DP-01: none of the new schedule's from before it came into force",
			idempotency.Entry{Definition: old("@every 1h"), Opened: at(5)}, 55, time.Second, all(9), "next 60"},
		{"whose schedule nobody knows is missed", idempotency.Entry{Definition: old("@custom moon"), Opened: at(5)}, 13, time.Minute, policy{}, "missed unknown 6-13 x1; next 20"},
		{"from the first second after Opened on", idempotency.Entry{Definition: old("@custom moon"), Opened: at(5).Add(time.Second / 2)}, 13, time.Minute, policy{}, "missed unknown 6-13 x1; next 20"},
		{"where there is one", idempotency.Entry{Definition: old("@custom moon"), Opened: at(13)}, 13, time.Minute, policy{}, "next 20"},
		{"a store that stepped back", idempotency.Entry{Definition: def, Opened: at(25)}, 12, time.Minute, policy{}, "next 30"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := plannerOf(jobs.Every(10*time.Second), at(c.now), c.missedAfter, time.Hour, c.missed)
			if c.missedAfter == time.Second && c.now > 3600 {
				p.horizon = 5 * time.Second
			}
			d, _ := p.plan(c.entry)
			if got := spell(d); got != c.want {
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
