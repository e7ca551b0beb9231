package core

import (
	"errors"
	"slices"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

// lookAfter is how soon after a due of a job with keys the replicas that do not
// open it look for their share: time enough for the opening to commit, mostly.
var lookAfter = [...]time.Duration{20 * time.Millisecond, 150 * time.Millisecond}

// fireDues looks at every job whose time has come, as many as can be decided in
// the time of a step: the session has to be renewed between many that take long.
func (c *Core) fireDues() {
	if c.ready() {
		c.fireStored(c.storeDues.take(c.storeMicro()))
	}
	c.fireLocalDues()
}

// fireStored looks at correctness jobs.
func (c *Core) fireStored(due []*job) {
	if len(due) == 0 {
		return
	}
	if c.ranked {
		slices.SortStableFunc(due, byPriority)
	}
	now, spent := c.storeNow(), 0
	for _, j := range due {
		if spent >= maxSteps {
			c.storeDues.set(j, j.next) // its turn is the next step
			continue
		}
		c.storeDues.set(j, j.look(now))
		switch {
		case c.rankOf(j) == 0:
			spent += c.decide(j)
		case j.keyed() && !c.held(j):
			for _, d := range lookAfter {
				c.after(d, func() { c.sweepSoon(0) })
			}
		}
	}
}

var errContradicts = errors.New("its calendar gave answers that contradict each other; what was due since is recorded as missed (unknown); " +
	"a Custom has to give the same answer to the same question, and to panic at none")

// decide opens what is due of a job, or puts our definition in force. It returns how many dues it walked over.
func (c *Core) decide(j *job) (spent int) {
	if j.deciding || c.session == nil || c.draining {
		return 0
	}
	if j.efficient() {
		c.decideLocal(j)
		return 0
	}
	now, missedAfter := c.reach(j)
	p := planner{
		now: now, missedAfter: missedAfter, horizon: c.cfg.Horizon,
		def: j.definition(), schedule: j.Schedule, missed: j.Missed, keyed: j.keyed(), steps: maxSteps,
	}
	until := p.until(j.entry)
	if j.entry.Hash == j.hash && j.notYet(until) {
		j.behind = false
		c.see(j, j.entry) // woken too early
		return 0
	}
	d, spent := p.plan(j.entry)
	d.Next = j.offerAt(d.Opened)
	if n := len(d.Ranges); n > 0 && d.Ranges[n-1].Reason == reasonUnknown && j.entry.Hash == j.hash {
		c.emit(Problem{Job: j.Name, Due: d.Ranges[n-1].From, Err: errContradicts})
	}
	d.CatchUp = j.behind || len(d.Run) > 1 || len(d.Run) == 1 && until.Sub(d.Run[0]) > c.cfg.Lease
	j.behind = d.Opened.Before(until)
	d.Overlap, d.Term = j.overlap(), c.termOf(j)
	if j.keyed() {
		j.skipLate(&d, until)
	} else {
		d.Claim = c.claimable(j, len(d.Run))
	}
	if c.reserve(j, d.Claim); d.Claim > 0 {
		c.turned(j)
	}
	j.deciding = true
	hedged := c.rankOf(j) > 0
	c.decides.add(d, func(d idempotency.Decision, a idempotency.Decided) {
		j.deciding = false
		c.reserve(j, -d.Claim)
		c.decided(j, d, a, hedged)
		c.tellTwoLead(j, d, a)
	}, func(d idempotency.Decision) {
		j.deciding = false
		c.reserve(j, -d.Claim)
	})
	return spent
}

func (c *Core) decided(j *job, d idempotency.Decision, a idempotency.Decided, hedged bool) {
	if c.jobs[j.Name] == j { // else it was removed meanwhile
		c.see(j, a.Entry)
	}
	if !a.Won {
		// Somebody else was first, or what we knew was old: what is still due is
		// decided again from what is true now. But the store had another reason
		// where the entry is as we saw it; then the next sweep tries again.
		if sameEntry(a.Entry, d.Seen) && j.index > 0 {
			c.storeDues.set(j, j.look(c.storeNow()))
		}
		return
	}
	c.emit(observeDecision(d))
	if d.Next.IsZero() && !d.Seen.Next.IsZero() {
		c.emit(NoMoreDues{Job: d.Job, Schedule: d.Schedule})
	}
	c.beginDecided(j, a.Runs, d.CatchUp, hedged)
	if j.keyed() && len(d.Run) > 0 {
		c.sweepSoon(0)
		if c.draining { // the others looked when they saw us leave, and it was not there yet
			c.hintHeirs()
		}
	}
}

// tellTwoLead tells of the runs that we would have started as the leader, had not another replica opened their dues after we came to
// decide them: so two were the leader for a moment. What was opened before that an earlier leader has opened, as it should.
func (c *Core) tellTwoLead(j *job, d idempotency.Decision, a idempotency.Decided) {
	if a.Won || d.Term == 0 || a.Entry.Hash != d.Hash || a.Entry.Opened.Before(d.Opened) {
		return
	}
	for _, due := range d.Run[:min(d.Claim, len(d.Run))] {
		c.emit(Refused{Occurrence: c.occurrence(j, idempotency.ID{Job: j.Name, Key: j.Name, Due: due}, 0, 0, nil), Cause: cause(idempotency.Taken)})
	}
}

// beginDecided starts what the opening claimed. What waits is offered to our
// workers.
func (c *Core) beginDecided(j *job, runs []idempotency.Run, late, hedged bool) {
	for _, r := range runs {
		switch {
		case r.State == idempotency.Running:
			c.begin(j, r, fresh, hedged)
		case r.Outcome == idempotency.Skipped:
			c.emit(Refused{Occurrence: c.occurrence(j, r.ID, r.Fence, r.Attempt, r.Payload), Cause: reasonOverlap})
		case r.State == idempotency.Waiting:
			if j.Overlap == jobs.OverlapCancel {
				c.sweepSoon(0) // the run that was told to end may be ours
			}
			if !c.held(j) {
				c.backlog.offer(r, late, 4*c.cfg.Concurrency)
			}
		}
	}
}

func sameEntry(a, b idempotency.Entry) bool {
	return a.Hash == b.Hash && a.Opened.Equal(b.Opened) && a.PausedFrom.Equal(b.PausedFrom) && a.PausedUntil.Equal(b.PausedUntil)
}

func observeDecision(d idempotency.Decision) Decided {
	o := Decided{Job: d.Job, Dues: d.Run}
	for _, r := range d.Ranges {
		switch {
		case r.Outcome == idempotency.Missed:
			o.Missed += r.Count
		case r.Reason == reasonDeadline:
			o.TooLate += r.Count
		default:
			o.Paused += r.Count
		}
	}
	return o
}
