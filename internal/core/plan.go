package core

import (
	"slices"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

// Reasons of range rows. Each due that does not run has the first that applies.
const (
	reasonPaused  = "paused"  // inside the pause window; skipped
	reasonAge     = "age"     // older than Missed.MaxAge, or the horizon where that is not set
	reasonLate    = "late"    // older than MissedAfter, and the policy lets none of these run, or only the latest
	reasonMax     = "max"     // enough newer ones run: Missed.Max, or as many as the last decision of an older definition takes
	reasonUnknown = "unknown" // the schedule is a Custom one of an older definition: nobody can tell its dues any more
)

// planner is what a plan depends on besides the entry.
type planner struct {
	now                  time.Time // the store's, never ahead of it
	missedAfter, horizon time.Duration
	def                  idempotency.Definition // ours, to be in force afterwards
	schedule             jobs.Schedule          // ours
	missed               jobs.Missed            // with its defaults
	keyed                bool
	steps                int // about how many dues to walk over at most
}

// plan decides the dues of an entry in (Opened, now], by the entry's own schedule, which is ours unless our definition
// takes over just now. Each due is
//
//   - skipped, where it lies in the last pause;
//   - to run, where it is not older than missedAfter;
//   - to run or missed else, as our missed policy says.
//
// It covers all of them, or the oldest: as many as one decision can run, or as can be counted in its time where a
// schedule can only be walked. Then Opened says how far it came, and the next plan goes on from there. A schedule that
// is not ours any more is decided to its end, for the next plan would not know it.
//
// Where nobody can tell the dues of the entry's schedule any more, one missed range stands for them, counted as one.
// Spent is how many dues were walked over, at most.
func (p planner) plan(e idempotency.Entry) (d idempotency.Decision, spent int) {
	if p.missed.MaxAge == 0 {
		p.missed.MaxAge = p.horizon
	}
	d = idempotency.Decision{Seen: e, Definition: p.def, Opened: p.until(e), Keyed: p.keyed}
	s, err := p.scheduleOf(e)
	switch {
	case e.Opened.IsZero(): // nobody knows since when it is there: it has missed nothing
	case err != nil:
		p.giveUp(&d)
	default:
		w := planning{Decision: &d, schedule: s, steps: p.steps}
		if e.Hash != p.def.Hash {
			w.whole, w.steps = true, maxInt
		}
		w.decide(p.stretches(e, d.Opened), p.missed)
		spent = w.spent
	}
	if d.Next, _ = p.schedule.Next(d.Opened); d.Validate() != nil {
		// A Custom has contradicted itself. The store would refuse the decision, and all others in its batch.
		p.giveUp(&d)
		d.Next, _ = p.schedule.Next(d.Opened)
	}
	return d, spent
}

// giveUp makes a decision of what nobody can tell the dues of: one missed range stands for them, counted as one. It begins
// at the first second after Opened, for a due at Opened is decided.
func (p planner) giveUp(d *idempotency.Decision) {
	e := d.Seen
	d.Run, d.Ranges, d.Opened = nil, nil, p.until(e)
	if from := e.Opened.Add(time.Second).Truncate(time.Second); !from.After(d.Opened) {
		d.Ranges = []idempotency.Range{{Job: e.Job, From: from, To: d.Opened, Count: 1, Outcome: idempotency.Missed, Reason: reasonUnknown}}
	}
}

// until is how far a plan of the entry can come: opened never moves back.
func (p planner) until(e idempotency.Entry) time.Time {
	if p.now.After(e.Opened) {
		return p.now
	}
	return e.Opened
}

func (p planner) scheduleOf(e idempotency.Entry) (jobs.Schedule, error) {
	if e.Hash == p.def.Hash {
		return p.schedule, nil
	}
	return jobs.ParseSchedule(e.Schedule)
}

// fate is what becomes of a due for when it is.
type fate int

const (
	paused fate = iota
	aged        // too old to run
	late        // as the policy says
	young       // runs
)

// stretch is a part of what a plan covers, the dues in (after, to], that have one fate.
type stretch struct {
	after, to time.Time
	fate
}

// stretches cuts (e.Opened, until] where the fate of the dues changes.
func (p planner) stretches(e idempotency.Entry, until time.Time) []stretch {
	until = until.Truncate(time.Second)
	cuts := []time.Time{until}
	for _, t := range []time.Time{e.PausedFrom, e.PausedUntil, p.now.Add(-p.missed.MaxAge), p.now.Add(-p.missedAfter)} {
		if t = before(t); t.After(e.Opened) && t.Before(until) {
			cuts = append(cuts, t)
		}
	}
	slices.SortFunc(cuts, time.Time.Compare)
	var list []stretch
	after := e.Opened
	for _, to := range cuts {
		if !to.After(after) {
			continue
		}
		f := p.fateOf(e, to)
		if n := len(list); n > 0 && list[n-1].fate == f {
			list[n-1].to = to
		} else {
			list = append(list, stretch{after, to, f})
		}
		after = to
	}
	return list
}

func (p planner) fateOf(e idempotency.Entry, due time.Time) fate {
	switch {
	case inPause(e, due):
		return paused
	case !due.Before(p.now.Add(-p.missedAfter)):
		return young
	case p.missed.Policy != jobs.MissedSkip && due.Before(p.now.Add(-p.missed.MaxAge)):
		return aged
	default:
		return late
	}
}

// before is the last whole second before t, so that the dues before t are those up to it.
func before(t time.Time) time.Time { return t.Add(-1).Truncate(time.Second) }

// record adds a range for the n dues in (after, to]. It names the first and the last of them.
func (w *planning) record(after, to time.Time, n int64, o idempotency.Outcome, reason string) {
	if n == 0 {
		return
	}
	first, _ := w.schedule.Next(after)
	last, ok := w.schedule.Next(to.Add(-time.Second))
	if !ok || !last.Equal(to) { // else it is cheaper than looking back, where a schedule can only be walked
		last, _ = w.schedule.Prev(to.Add(time.Second))
	}
	r := idempotency.Range{Job: w.Job, From: first, To: last, Count: n, Outcome: o, Reason: reason}
	w.Ranges = append(w.Ranges, r)
}
