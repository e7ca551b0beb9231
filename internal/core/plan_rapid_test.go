package core

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

// verdict is what the slow planner says of one due.
type verdict struct {
	due    time.Time
	reason string // empty: it runs
}

// slowPlan lists every due of the entry with its fate, one by one from the newest, as the rules are written.
func slowPlan(p planner, s jobs.Schedule, e idempotency.Entry) []verdict {
	var list []verdict
	for due, ok := s.Next(e.Opened); ok && !due.After(p.now); due, ok = s.Next(due) {
		list = append(list, verdict{due: due})
	}
	room, left := len(list), 1
	if e.Hash != p.def.Hash {
		room = idempotency.MaxBatch
	}
	if p.missed.Policy != jobs.MissedLatest {
		left = p.missed.Max
	}
	maxAge := p.missed.MaxAge
	if maxAge == 0 {
		maxAge = p.horizon
	}
	for i := len(list) - 1; i >= 0; i-- {
		v, age := &list[i], p.now.Sub(list[i].due)
		switch isLate := age > p.missedAfter; {
		case !e.PausedFrom.IsZero() && !v.due.Before(e.PausedFrom) && (e.PausedUntil.IsZero() || v.due.Before(e.PausedUntil)):
			v.reason = reasonPaused
		case isLate && p.missed.Policy != jobs.MissedSkip && age > maxAge:
			v.reason = reasonAge
		case room > 0 && (!isLate || left > 0):
			room--
			if isLate {
				left--
			}
		case !isLate || p.missed.Policy == jobs.MissedAll:
			v.reason = reasonMax
		default:
			v.reason = reasonLate
		}
	}
	return list
}

var someSchedules = rapid.Custom(func(t *rapid.T) jobs.Schedule {
	calls := 0
	step := time.Duration(rapid.SampledFrom([]int{1, 1, 1, 2, 7, 60, 300, 3600}).Draw(t, "step")) * time.Second
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 0:
		return walked(step, &calls)
	case 1:
		return jobs.Cron(rapid.SampledFrom([]string{"* * * * *", "*/5 9-17 * * *", "30 2 * * *", "* * * * * *", "CRON_TZ=America/New_York */7 1-3 * * *"}).Draw(t, "cron"))
	case 2:
		var at []time.Time
		for _, n := range rapid.SliceOfN(rapid.IntRange(0, 100_000), 1, 30).Draw(t, "at") {
			at = append(at, epoch.Add(time.Duration(n)*time.Second))
		}
		return jobs.At(at...)
	case 3: // bursts of a due each second
		return jobs.Custom("bursts", func(after time.Time) time.Time {
			next := after.Truncate(time.Second).Add(time.Second)
			if next.Minute()%10 < 3 {
				return next
			}
			return next.Truncate(10 * time.Minute).Add(10 * time.Minute)
		})
	default:
		return jobs.Every(step).Phase(time.Duration(rapid.IntRange(0, 3599).Draw(t, "phase")) * time.Second)
	}
})

func drawPlanner(t *rapid.T, s jobs.Schedule) (planner, idempotency.Entry) {
	instant := func(name string) time.Time {
		whole := time.Duration(rapid.SampledFrom([]int{0, 60, 900, 3000, 7000, 10_000}).Draw(t, name)) * time.Second
		return epoch.Add(whole + time.Duration(rapid.IntRange(0, 600).Draw(t, name))*time.Second + time.Duration(rapid.SampledFrom([]int{0, 0, 1, 999}).Draw(t, name))*time.Millisecond)
	}
	span := func(name string) time.Duration {
		return time.Duration(rapid.SampledFrom([]int{1, 30, 700, 3000, 10_000}).Draw(t, name)) * time.Second
	}
	p := plannerOf(s, instant("now"), span("missedAfter"), span("horizon"), jobs.Missed{})
	p.steps = rapid.SampledFrom([]int{1000, 3000, maxSteps}).Draw(t, "steps")
	p.missed.Policy = rapid.SampledFrom([]jobs.MissedPolicy{jobs.MissedLatest, jobs.MissedSkip, jobs.MissedAll}).Draw(t, "policy")
	switch {
	case p.missed.Policy == jobs.MissedAll:
		p.missed.Max = rapid.SampledFrom([]int{1, 3, 100, 1500}).Draw(t, "max")
		fallthrough
	case p.missed.Policy == jobs.MissedLatest && rapid.Bool().Draw(t, "aged"):
		p.missed.MaxAge = span("maxAge")
	}
	e := idempotency.Entry{Definition: p.def, Opened: instant("opened")}
	if rapid.Bool().Draw(t, "paused") {
		if e.PausedFrom = instant("from"); rapid.Bool().Draw(t, "resumed") {
			e.PausedUntil = e.PausedFrom.Add(span("pause"))
		}
	}
	return p, e
}

// Whatever was seen, each plan does with every due up to where it comes what the rules say, with exact counts and ranges
// that do not overlap; and plans one after the other come to now.
func TestPlansAgainstSlowOnes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := someSchedules.Draw(t, "schedule")
		p, e := drawPlanner(t, s)
		for most := 2 + len(slowPlan(p, s, e))/900; ; most-- {
			d, _ := p.plan(e)
			comparePlans(t, d, slowPlan(p, s, e))
			e.Opened, e.Next = d.Opened, d.Next
			if !d.Opened.Before(p.until(e)) {
				return
			}
			if most == 0 {
				t.Fatalf("the plans do not come to an end: opened is %v", d.Opened)
			}
			p.now = p.now.Add(time.Duration(rapid.IntRange(0, 50).Draw(t, "later")) * time.Millisecond)
		}
	})
}

// A schedule that is replaced is decided to its end in one plan, and none of the new one's dues is: DP-01.
func TestLastPlanOfAnOldSchedule(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := someSchedules.Filter(func(s jobs.Schedule) bool { _, err := jobs.ParseSchedule(s.String()); return err == nil }).Draw(t, "schedule")
		p, e := drawPlanner(t, jobs.Every(13*time.Second))
		e.Definition = idempotency.Definition{Job: "j", Schedule: s.String(), Hash: "old"}
		d, _ := p.plan(e)
		comparePlans(t, d, slowPlan(p, s, e))
		if d.Opened.Before(p.until(e)) || !d.Next.After(d.Opened) {
			t.Fatalf("opened is %v and next %v, at %v", d.Opened, d.Next, p.now)
		}
	})
}

// comparePlans demands that a decision is the beginning of what the slow planner says.
func comparePlans(t *rapid.T, d idempotency.Decision, want []verdict) {
	if err := d.Validate(); err != nil {
		t.Fatal(err)
	}
	if len(d.Ranges) > 6 {
		t.Fatalf("%d ranges", len(d.Ranges))
	}
	run, ranges := d.Run, d.Ranges
	for len(want) > 0 && !want[0].due.After(d.Opened) {
		if want[0].reason == "" {
			if len(run) == 0 || !run[0].Equal(want[0].due) {
				t.Fatalf("%v has to run; to run are %v", want[0].due, run)
			}
			run, want = run[1:], want[1:]
			continue
		}
		if len(ranges) == 0 {
			t.Fatalf("no range has %v", want[0])
		}
		r := ranges[0]
		ranges = ranges[1:]
		n := slices.IndexFunc(want, func(v verdict) bool { return v.due.After(r.To) || v.reason != want[0].reason })
		if n < 0 {
			n = len(want)
		}
		outcome := idempotency.Missed
		if want[0].reason == reasonPaused {
			outcome = idempotency.Skipped
		}
		if !r.From.Equal(want[0].due) || !r.To.Equal(want[n-1].due) || r.Count != int64(n) || r.Reason != want[0].reason || r.Outcome != outcome {
			t.Fatalf("range %v, want %d from %v to %v for %q", r, n, want[0].due, want[n-1].due, want[0].reason)
		}
		want = want[n:]
	}
	if len(run)+len(ranges) > 0 {
		t.Fatalf("%v and %v are no dues up to %v", run, ranges, d.Opened)
	}
}
