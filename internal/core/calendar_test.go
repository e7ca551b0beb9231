package core

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

// endEach ends each handler at once.
func endEach(_ int, a Action) []Event {
	if s, ok := a.(Start); ok {
		return []Event{Ended{Handle: s.Handle}}
	}
	return nil
}

// A calendar that fails now and then makes no decision that a store would refuse: that would stop all others in its batch.
func TestBadCalendarsAreDecided(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 7))
		panics := seed%2 == 0
		calendar := jobs.Custom("c", func(after time.Time) time.Time {
			switch {
			case r.IntN(50) > 0:
				return after.Truncate(time.Minute).Add(time.Minute)
			case panics:
				panic("calendar")
			}
			return time.Time{}
		})
		m := []jobs.Missed{{}, {Policy: jobs.MissedSkip}, {Policy: jobs.MissedAll, Max: 5}}[r.IntN(3)]
		p := plannerOf(calendar, epoch.Add(2*time.Hour), time.Minute, time.Hour, m)
		d, _ := p.plan(idempotency.Entry{Definition: idempotency.Definition{Job: "j", Hash: "h"}, Opened: epoch})
		if err := d.Validate(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// Likewise in a replica that has been cut off from its store: the other job goes on, and somebody is told.
func TestBadCalendarStopsNobody(t *testing.T) {
	t.Parallel()
	told := 0
	for seed := range uint64(20) {
		w, ran := newTower(t, timing(), "a"), 0
		w.act = func(i int, a Action) []Event {
			switch a := a.(type) {
			case Start:
				if a.Occurrence.Job == "other" {
					ran++
				}
			case Problem:
				told++
			}
			return endEach(i, a)
		}
		r := rand.New(rand.NewPCG(seed, 7))
		bad := jobs.Custom("bad", func(after time.Time) time.Time {
			if r.IntN(50) == 0 && after.After(epoch.Add(time.Hour)) {
				panic("calendar")
			}
			return after.Truncate(time.Minute).Add(time.Minute)
		})
		w.begin(jobs.Job{Name: "bad", Schedule: bad, Run: none}, jobs.Job{Name: "other", Schedule: jobs.Every(10 * time.Second), Run: none})
		w.until(65 * time.Second)
		w.call = func(int, string) error { return errDown }
		w.until(90 * time.Minute)
		w.call = nil
		ran = 0
		w.until(100 * time.Minute)
		if ran < 50 {
			t.Errorf("seed %d: the other job ran %d times in ten minutes, want 60", seed, ran)
		}
	}
	if told == 0 {
		t.Error("nobody was told in any seed")
	}
}

// zeroed shows a job's entry as an older program with a calendar of its own would have left it, without Opened.
type zeroed struct {
	idempotency.Store
	schedule string
}

func (z zeroed) blank(list []idempotency.Entry) {
	for i, e := range list {
		if e.Job == "z" {
			list[i].Opened, list[i].Hash, list[i].Schedule = time.Time{}, "old", z.schedule
		}
	}
}

func (z zeroed) Declare(ctx context.Context, s idempotency.Session, nonce int64, d []idempotency.Declaration) ([]idempotency.Entry, error) {
	list, err := z.Store.Declare(ctx, s, nonce, d)
	z.blank(list)
	return list, err
}

func (z zeroed) Lagging(ctx context.Context, s idempotency.Session, q idempotency.LagQuery) (idempotency.Lag, error) {
	l, err := z.Store.Lagging(ctx, s, q)
	z.blank(l.Entries)
	return l, err
}

// CU-05: an entry without Opened has missed nothing, whatever its schedule, and stops nobody else.
func TestZeroOpenedHasMissedNothing(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"@custom older", "* * * * *"} {
		w := newTower(t, timing(), "a")
		w.store = zeroed{w.store, text}
		ran := map[string]int{}
		w.act = func(i int, a Action) []Event {
			switch a := a.(type) {
			case Start:
				ran[a.Occurrence.Job]++
			case Decided:
				if a.Missed > 0 {
					t.Errorf("%s: %d dues of %s were missed", text, a.Missed, a.Job)
				}
			}
			return endEach(i, a)
		}
		w.begin(jobs.Job{Name: "z", Schedule: jobs.Every(time.Minute), Run: none}, jobs.Job{Name: "other", Schedule: jobs.Every(10 * time.Second), Run: none})
		w.until(10 * time.Minute)
		if ran["other"] < 55 {
			t.Errorf("%s: the other job ran %d times in ten minutes, want 60", text, ran["other"])
		}
	}
}

// After a long outage each of forty calendars takes long to decide. No step decides two of them, wherever they come from:
// their own dues, or the first sweep.
func TestSlowDecisionsTakeTurns(t *testing.T) {
	t.Parallel()
	c := timing()
	c.Horizon, c.Retention = 24*time.Hour, 48*time.Hour
	w := newTower(t, c, "a")
	w.act = endEach
	calls, most, before := 0, 0, 0
	var list []jobs.Job
	for i := range 40 {
		list = append(list, jobs.Job{Name: fmt.Sprint("j", i), Schedule: walked(time.Second, &calls), Run: none})
	}
	w.begin(list...)
	w.until(time.Second)
	w.call = func(int, string) error { return errDown }
	w.until(20 * time.Second)
	w.call = nil
	w.now += 10 * 24 * time.Hour
	for range 100 {
		w.now = min(w.now+50*time.Millisecond, max(w.cores[0].Wake(), w.now+time.Microsecond))
		in := Instant{Mono: w.now, Wall: epoch.Add(w.now)}
		var events []Event
		for more := true; more; more = len(events) > 0 {
			before = calls
			acts := w.cores[0].Step(in, events...)
			most = max(most, calls-before)
			events = nil
			for _, a := range acts {
				if call, ok := a.(*Call); ok {
					events = append(events, call.Do(t.Context(), w.store))
				} else {
					events = append(events, endEach(0, a)...)
				}
			}
		}
	}
	if most < maxSteps/2 || most > 3*maxSteps {
		t.Errorf("a step asked the calendars %d times, want about %d at most", most, maxSteps)
	}
}
