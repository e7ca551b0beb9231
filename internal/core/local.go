package core

import (
	"errors"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

// localRun is a run of an efficiency job: no store knows of it.
type localRun struct {
	job     *job
	key     string
	due     time.Time
	attempt int  // attempts that ended
	alone   bool // it holds its key
	waited  bool // for another run of its key: it may be late
}

type localKey struct{ job, key string }

func (r localRun) localKey() localKey { return localKey{r.job.Name, r.key} }

// fireLocalDues looks at every efficiency job whose time has come by the host's clock.
func (c *Core) fireLocalDues() {
	if c.draining {
		return
	}
	for _, j := range c.wallDues.take(c.now.Wall.UnixMicro()) {
		start, late := j.next, c.now.Wall.Add(-c.cfg.MissedAfter)
		if j.keyed() {
			late = late.Add(-j.Spread) // some of its keys start that much after the due
		}
		if start.Before(late) {
			start = c.nextLocal(j, late)
		}
		if c.wallDues.set(j, c.nextLocal(j, c.now.Wall)); j.next.IsZero() {
			c.emit(NoMoreDues{Job: j.Name, Schedule: j.Schedule.String()})
		}
		switch {
		case start.IsZero() || start.After(c.now.Wall):
		case j.keyed() && j.Spread > 0:
			// Several may have come at once, after a step on or a suspension; of each, some partitions may be still to start.
			for due := start; !due.IsZero() && !due.After(c.now.Wall); due = c.nextLocal(j, due) {
				c.spreadLocal(j, due, 0)
			}
		default:
			c.openLocal(j, start.Add(-j.delay))
		}
	}
}

var errStillStreaming = errors.New("the keys of its last due are still being read; this due is left out on this replica")

// openLocal runs a due of an efficiency job where that is this replica's to do now.
func (c *Core) openLocal(j *job, due time.Time) {
	if !j.keyed() {
		if c.runsLocal(j) && !c.staysQuiet(j, due) {
			c.queueLocal(localRun{job: j, key: j.Name, due: due})
		}
		return
	}
	c.streamLocal(j, due, 0, c.cfg.Partitions)
}

func (c *Core) refuseLocal(r localRun, cause string) {
	id := idempotency.ID{Job: r.job.Name, Key: r.key, Due: r.due}
	c.emit(Refused{Occurrence: c.occurrence(r.job, id, 0, r.attempt, nil), Cause: cause})
}

// dropsLocal says why a local run that waits does not run any more; empty: it does.
func (c *Core) dropsLocal(r localRun) string {
	late := c.lateLocal(r)
	slow := r.waited || r.job.keyed() && r.job.Limit != (jobs.Limit{}) // it was to wait, for its key or for other keys
	switch {
	case c.jobs[r.job.Name] != r.job:
		return "expired"
	case c.held(r.job):
		return causeLeader
	case r.attempt > 0:
	case r.job.startsTooLate(late):
		return reasonDeadline
	case late > c.cfg.MissedAfter+r.job.starts.coarse() && !slow:
		return "expired"
	}
	return c.quiet(r.job, r.due)
}

// startLocal gives a local run a worker, unless it waited for too long, or its job was removed or is quiet now: then it is left out.
func (c *Core) startLocal(r localRun) {
	if why := c.dropsLocal(r); why != "" {
		c.refuseLocal(r, why)
		c.freeQueue(r)
		return
	}
	c.turned(r.job)
	id := idempotency.ID{Job: r.job.Name, Key: r.key, Due: r.due}
	h := &held{job: r.job, occ: c.occurrence(r.job, id, 0, r.attempt, nil), late: max(c.lateLocal(r), 0), alone: r.alone}
	h.occ.Term = c.termOf(r.job)
	c.hold(h)
	c.enterQueue(h)
	c.start(h)
}

// lateLocal is how long ago a run should have started.
func (c *Core) lateLocal(r localRun) time.Duration {
	return c.now.Wall.Sub(c.startOf(r.job, r.key, r.due))
}

// wroteLocal takes the end of an efficiency run's attempt: there is nobody to ask.
func (c *Core) wroteLocal(h *held, f idempotency.Finish, err error) {
	h.answered = true
	c.observe(h, f, err)
	if f.Outcome == idempotency.Wait && !h.givesBack(f) {
		c.retryLocal(localRun{job: h.job, key: h.occ.Key, due: h.occ.Due, attempt: f.Attempt}, h.pause)
	}
	c.letGo(h)
}
