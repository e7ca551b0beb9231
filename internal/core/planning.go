package core

import (
	"math"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

const (
	// maxSteps bounds how many dues one decision walks over, so that it takes
	// milliseconds; schedules that can be counted need no walk.
	maxSteps = 50_000

	// tallySteps is how many of them are counted at once.
	tallySteps = 1024

	// worthWalking is how many dues may be walked over for each one that is looked
	// for, rather than to look back, which some schedules can only do by walking a day.
	worthWalking = 64

	maxInt = math.MaxInt
)

// planning is a decision in the making.
type planning struct {
	*idempotency.Decision
	schedule jobs.Schedule
	steps    int
	whole    bool // it has to cover all; what does not fit into it is missed
	spent    int  // steps taken, as far as known
}

// tally counts. What was not finished was walked; what is more than the steps allow, and finished, was not.
func (w *planning) tally(from, to time.Time, steps int) (int64, time.Time) {
	n, until := w.schedule.Tally(from, to, steps)
	if until.Before(to) || n < int64(steps) {
		w.spent += int(n)
	}
	return n, until
}

// decide decides the dues of the stretches, oldest first, until one could not be decided to its end.
func (w *planning) decide(list []stretch, m jobs.Missed) {
	reason := reasonLate
	if m.Policy == jobs.MissedAll {
		reason = reasonMax
	}
	run := w.shares(list, m)
	for i, s := range list {
		var to time.Time
		switch {
		case s.fate == paused:
			to = w.drop(s, idempotency.Skipped, reasonPaused)
		case s.fate == aged:
			to = w.drop(s, idempotency.Missed, reasonAge)
		case s.fate == late && run[i] == 0:
			to = w.drop(s, idempotency.Missed, reason)
		case s.fate == late:
			to = w.keep(s, run[i], reason)
		case w.whole:
			to = w.keep(s, run[i], reasonMax)
		default:
			to = w.run(s.after, s.to)
		}
		if to.Before(s.to) {
			w.Opened = to
			return
		}
	}
}

// shares is how many of its newest dues each stretch may run: of the late ones as many as the policy says, less what
// newer stretches have of them; and where the decision has to cover all, no more than fit into it.
func (w *planning) shares(list []stretch, m jobs.Missed) []int {
	keep, room := 1, maxInt
	switch m.Policy {
	case jobs.MissedSkip:
		keep = 0
	case jobs.MissedAll:
		keep = m.Max
	}
	if w.whole {
		room = idempotency.MaxBatch
	}
	n := make([]int, len(list))
	for i := len(list) - 1; i >= 0; i-- {
		switch s := list[i]; {
		case s.fate == late:
			n[i] = min(keep, room)
			had := w.atLeast(s, n[i])
			keep, room = keep-had, room-had
		case s.fate == young && w.whole:
			n[i] = room
			room -= w.atLeast(s, room)
		}
	}
	return n
}

// atLeast is how many dues a stretch has, or n where it has more.
func (w *planning) atLeast(s stretch, n int) int {
	had := int64(0)
	for s.after.Before(s.to) && had < int64(n) {
		var m int64
		m, s.after = w.tally(s.after, s.to, tallySteps)
		had += m
	}
	return int(min(had, int64(n)))
}

// drop records that the dues of a stretch do not run, and returns how far it came.
func (w *planning) drop(s stretch, o idempotency.Outcome, reason string) time.Time {
	n, to := w.tally(s.after, s.to, w.steps)
	w.record(s.after, to, n, o, reason)
	return to
}

// keep lets the newest so many dues of a stretch run, and records the others as missed. Where it cannot count
// to the stretch's end in time, it drops only those that have enough newer ones, and returns how far these go.
func (w *planning) keep(s stretch, most int, reason string) time.Time {
	type mark struct {
		at time.Time
		n  int64 // dues up to it
	}
	k := int64(most)
	base, end := mark{at: s.after}, mark{at: s.after} // at least k dues follow base, unless that is where the stretch begins
	for end.at.Before(s.to) {
		if base.n > 0 && end.n > int64(w.steps) {
			w.record(s.after, base.at, base.n, idempotency.Missed, reason)
			return base.at
		}
		n, at := w.tally(end.at, s.to, max(2*most, tallySteps))
		if n >= k {
			base = end
		}
		end = mark{at, end.n + n}
	}
	if end.n <= k {
		return w.run(s.after, s.to)
	}
	last := w.beforeNewest(base.at, s.to, end.n-base.n, k)
	w.record(s.after, last, end.n-k, idempotency.Missed, reason)
	return w.run(last, s.to)
}

// beforeNewest is an instant after which come the newest k of the n dues in (after, to].
func (w *planning) beforeNewest(after, to time.Time, n, k int64) time.Time {
	if n > worthWalking*k+2*tallySteps {
		to = to.Add(time.Second)
		for ; k > 0; k-- {
			to, _ = w.schedule.Prev(to)
		}
		return to.Add(-time.Second)
	}
	for ; n > k; n-- {
		after, _ = w.schedule.Next(after)
	}
	return after
}

// run lets the dues in (after, to] run, and returns how far it came: the decision may be full.
func (w *planning) run(after, to time.Time) time.Time {
	for due := range w.schedule.All(after, to) {
		if len(w.Run) == idempotency.MaxBatch {
			return after
		}
		w.Run = append(w.Run, due)
		after = due
	}
	return to
}
