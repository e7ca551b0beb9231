package core

import (
	"slices"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

// maxDues bounds how many dues one decision covers, so that a decision after a
// long outage takes milliseconds; the next one goes on where it ended.
const maxDues = 50_000

// Reasons of range rows.
const (
	reasonPaused  = "paused"
	reasonLate    = "late"
	reasonUnknown = "unknown schedule"
)

// planner is what a plan depends on besides the entry.
type planner struct {
	now                  time.Time // the store's, never ahead of it
	missedAfter, horizon time.Duration
	def                  idempotency.Definition // ours, to be in force afterwards
	schedule             jobs.Schedule          // ours
	keyed                bool
}

// plan decides every due of an entry in (Opened, now]: by the entry's own
// schedule, which is ours unless our definition takes over just now. Each due is
//
//   - skipped (paused), where it lies in the last pause;
//   - to run, where it is not older than missedAfter;
//   - missed (late) else, but for the latest of these, which runs if it is
//     younger than the horizon: the missed policy "latest".
//
// Where nobody can tell the dues of the entry's schedule any more, one missed range stands for them, counted as one.
func (p planner) plan(e idempotency.Entry) idempotency.Decision {
	d := idempotency.Decision{Seen: e, Definition: p.def, Opened: e.Opened, Keyed: p.keyed}
	if p.now.After(d.Opened) {
		d.Opened = p.now
	}
	if theirs, err := p.scheduleOf(e); err != nil {
		d.Ranges = []idempotency.Range{{Job: e.Job, From: e.Opened, To: d.Opened, Count: 1, Outcome: idempotency.Missed, Reason: reasonUnknown}}
	} else {
		p.decide(e, theirs, &d)
	}
	d.Next, _ = p.schedule.Next(d.Opened)
	return d
}

func (p planner) scheduleOf(e idempotency.Entry) (jobs.Schedule, error) {
	if e.Hash == p.def.Hash {
		return p.schedule, nil
	}
	return jobs.ParseSchedule(e.Schedule)
}

func (p planner) decide(e idempotency.Entry, s jobs.Schedule, d *idempotency.Decision) {
	var latest time.Time // of the late ones
	var n int
	until := d.Opened
	last := e.Hash != p.def.Hash // the next plan would not know this schedule
	for t, ok := s.Next(e.Opened); ok && !t.After(until); t, ok = s.Next(t) {
		if n++; n > maxDues && !last {
			break
		}
		switch {
		case paused(e, t):
			d.Ranges = extend(d.Ranges, e.Job, t, idempotency.Skipped, reasonPaused)
		case t.Before(p.now.Add(-p.missedAfter)), last && len(d.Run) == idempotency.MaxBatch-1:
			if !latest.IsZero() {
				d.Ranges = extend(d.Ranges, e.Job, latest, idempotency.Missed, reasonLate)
			}
			latest = t
		default:
			d.Run = append(d.Run, t)
		}
		if n == maxDues && !last {
			d.Opened = t
		}
		if len(d.Run) == idempotency.MaxBatch-1 && !last {
			d.Opened, until = t, t
		}
	}
	switch {
	case latest.IsZero():
	case (n <= maxDues || last) && latest.After(p.now.Add(-p.horizon)):
		d.Run = append(d.Run, latest)
		slices.SortFunc(d.Run, time.Time.Compare)
	default:
		d.Ranges = extend(d.Ranges, e.Job, latest, idempotency.Missed, reasonLate)
	}
}

// paused says whether a due lies in the entry's last pause, [PausedFrom, PausedUntil).
func paused(e idempotency.Entry, due time.Time) bool {
	return !e.PausedFrom.IsZero() && !due.Before(e.PausedFrom) &&
		(e.PausedUntil.IsZero() || due.Before(e.PausedUntil))
}

// extend adds a due to the last range if that has the same outcome and reason. A
// range speaks for Count dues between its ends; a due in between that runs has its own row.
func extend(r []idempotency.Range, job string, due time.Time, o idempotency.Outcome, reason string) []idempotency.Range {
	if n := len(r); n > 0 && r[n-1].Outcome == o && r[n-1].Reason == reason {
		r[n-1].To = due
		r[n-1].Count++
		return r
	}
	return append(r, idempotency.Range{Job: job, From: due, To: due, Count: 1, Outcome: o, Reason: reason})
}
