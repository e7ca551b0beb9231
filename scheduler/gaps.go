package scheduler

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

// Gap is a stretch of dues of which the store has no record, while it has one of those before and after it, if there are any; or
// of the newest dues, where nobody has decided them.
type Gap struct {
	Job      string
	From, To time.Time // the first due and the last
	Count    int64

	// Undecided says that no replica has decided these dues: none that has the job is up, or none reaches the store. Once one does,
	// they run or are missed, by the job's policy.
	Undecided bool
}

// overdue is how old a due is at least that counts as undecided: a replica that looks at once may still wait for the store.
const overdue = time.Minute

// Gaps yields the stretches of dues in [from, to) that left no record, oldest first, by the schedule in force now: after a change of the
// schedule the dues that the new one would have had before are gaps too. A record is a run of the job, whatever became of it; or
// a stretch that was skipped or missed; or, of a job with keys, a due that was opened. Looked at are the dues that are decided, and none from before the
// oldest record of the job that is kept, since retention may have removed theirs, or the job was not there yet. The last one is of the
// dues that came a minute ago or earlier and are not decided, unless the job is paused or retired. An
// efficiency job leaves no record, and of a schedule that is a program's own (jobs.Custom) nobody else can tell the
// dues: these are errors that wrap idempotency.ErrRejected.
func (c *Client) Gaps(ctx context.Context, job string, from, to time.Time) iter.Seq2[Gap, error] {
	return func(yield func(Gap, error) bool) {
		o, e, err := c.look(ctx, job)
		if err != nil {
			yield(Gap{}, err)
			return
		}
		if err := c.gaps(ctx, o, e, from, to, func(g Gap) bool { return yield(g, nil) }); err != nil {
			yield(Gap{}, fmt.Errorf("scheduler: gaps of job %q: %w", job, err))
		}
	}
}

func (c *Client) gaps(ctx context.Context, o idempotency.Overview, e idempotency.Entry, from, to time.Time, yield func(Gap) bool) error {
	if efficient(e) {
		return fmt.Errorf("%w: it is an efficiency job, of which the store has no record", idempotency.ErrRejected)
	}
	s, err := scheduleOf(e)
	if err != nil {
		return fmt.Errorf("%w: %w", idempotency.ErrRejected, err)
	}
	more := true
	tell := func(g Gap) bool {
		more = yield(g)
		return more
	}
	if err := c.unrecorded(ctx, e, s, from, to, tell); err != nil || !more {
		return err
	}
	g, err := undecided(ctx, o, e, s, from, to)
	if err == nil && g.Count > 0 {
		yield(g)
	}
	return err
}

// undecided is the stretch of dues in [from, to) that should have been decided.
func undecided(ctx context.Context, o idempotency.Overview, e idempotency.Entry, s jobs.Schedule, from, to time.Time) (Gap, error) {
	after, upTo := second(from), second(to)
	if e.Opened.After(after) {
		after = e.Opened
	}
	if latest := o.Now.Add(-overdue); latest.Before(upTo) {
		upTo = latest
	}
	first, ok := s.Next(after)
	if !ok || first.After(upTo) || paused(e) || !e.Retired.IsZero() {
		return Gap{}, nil
	}
	n, err := count(ctx, s, after, upTo)
	last, _ := s.Prev(upTo.Add(time.Second).Truncate(time.Second))
	return Gap{Job: e.Job, From: first, To: last, Count: n, Undecided: true}, err
}

// unrecorded yields the stretches of decided dues of which there is no record.
func (c *Client) unrecorded(ctx context.Context, e idempotency.Entry, s jobs.Schedule, from, to time.Time, yield func(Gap) bool) error {
	if upTo := second(to); upTo.Before(e.Opened) {
		e.Opened = upTo
	}
	if from.After(e.Opened) {
		return nil
	}
	older, err := c.recordedBefore(ctx, e, from)
	if err != nil {
		return err
	}
	g := gapFinder{ctx: ctx, job: e.Job, schedule: s, at: second(from), end: e.Opened.Truncate(time.Second), within: older, yield: yield}
	for r, err := range c.records(ctx, e, from, come(e.Opened)) {
		if err != nil {
			return err
		}
		if more, err := g.pass(r); err != nil || !more {
			return err
		}
	}
	_, err = g.finish()
	return err
}

// gapFinder compares records, which come by their beginnings, with a schedule.
type gapFinder struct {
	ctx      context.Context
	job      string
	schedule jobs.Schedule
	at, end  time.Time // the dues in (at, end] are still to be looked at
	within   bool      // what is at hand is not older than the oldest record
	found    Gap       // that may go on; Count 0: none
	yield    func(Gap) bool
}

// pass goes on to the end of a record, and reports whether to go on from there.
func (g *gapFinder) pass(r record) (more bool, err error) {
	before := second(r.from)
	if before.After(g.end) {
		return g.finish()
	}
	switch {
	case g.within:
		if err := g.miss(before); err != nil {
			return false, err
		}
	case r.stays:
		return true, nil
	}
	g.within = true
	due, ok := g.schedule.Next(before)
	if ok && !due.After(r.to) && !g.tell() { // else it is not of this schedule, and separates nothing
		return false, nil
	}
	if to := r.to.Truncate(time.Second); to.After(g.at) {
		g.at = to
	}
	return true, nil
}

// miss adds the dues up to an instant, of which there is no record, to the gap.
func (g *gapFinder) miss(upTo time.Time) error {
	if !upTo.After(g.at) {
		return nil
	}
	first, ok := g.schedule.Next(g.at)
	if !ok || first.After(upTo) {
		g.at = upTo
		return nil
	}
	n, err := count(g.ctx, g.schedule, g.at, upTo)
	if err != nil {
		return err
	}
	last, _ := g.schedule.Prev(upTo.Add(time.Second))
	if g.found.Count == 0 {
		g.found = Gap{Job: g.job, From: first}
	}
	g.found.To, g.found.Count = last, g.found.Count+n
	g.at = upTo
	return nil
}

// tell yields the gap at hand, and reports whether to go on.
func (g *gapFinder) tell() bool {
	gap := g.found
	g.found = Gap{}
	return gap.Count == 0 || g.yield(gap)
}

// finish looks at what is left after the last record.
func (g *gapFinder) finish() (more bool, err error) {
	if g.within {
		err = g.miss(g.end)
	}
	if err == nil {
		g.tell()
	}
	return false, err
}
