package core

import (
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// startsTooLate says whether a run that should have started so long ago may not start for the first time any more.
func (j *job) startsTooLate(late time.Duration) bool {
	return j.StartWithin > 0 && late > j.StartWithin
}

// startsTooLate says the same of a run here that no handler had and nobody asked for, if the store's time is so much later than we take it for.
func (h *held) startsTooLate(behind time.Duration) bool {
	return h.past == fresh && h.occ.Request == "" && h.job.startsTooLate(h.late+behind)
}

// lastStart is how long after a due of a job with keys the last of them starts.
func (j *job) lastStart() time.Duration { return j.starts.delay(j.starts.partitions - 1) }

// skipLate takes the dues out of a decision of which no key may start any more, so that each leaves one record and not one
// for every key.
func (j *job) skipLate(d *idempotency.Decision, now time.Time) {
	for len(d.Run) > 0 && j.startsTooLate(now.Sub(d.Run[0])-j.lastStart()) {
		due := d.Run[0]
		d.Run = d.Run[1:]
		if n := len(d.Ranges); n > 0 && d.Ranges[n-1].Reason == reasonDeadline && !between(d.Ranges, d.Ranges[n-1].To, due) {
			d.Ranges[n-1].To = due
			d.Ranges[n-1].Count++
			continue
		}
		d.Ranges = append(d.Ranges, idempotency.Range{Job: d.Job, From: due, To: due, Count: 1,
			Outcome: idempotency.Skipped, Reason: reasonDeadline})
	}
}

// between says whether one of the ranges begins after an instant and before another.
func between(list []idempotency.Range, after, before time.Time) bool {
	for _, r := range list {
		if r.From.After(after) && r.From.Before(before) {
			return true
		}
	}
	return false
}

// pastOfDue is the past of the runs of an open due. Those of one that a person asked for start however late they are.
func pastOfDue(o idempotency.OpenDue) past {
	if o.ByHand {
		return byHand
	}
	return fresh
}
