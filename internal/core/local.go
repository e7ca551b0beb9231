package core

import (
	"errors"
	"time"

	"github.com/belfry-go/belfry/idempotency"
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
	for _, j := range c.wallDues.take(c.now.Wall) {
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

// openLocal runs a due of an efficiency job where this replica is the owner now.
func (c *Core) openLocal(j *job, due time.Time) {
	if c.ranks == nil {
		return
	}
	if !j.keyed() {
		if c.rank(j.partition) == 0 {
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

// fillLocal starts efficiency runs as workers become free; what waited for too
// long, or is of a job that was removed, is left out.
func (c *Core) fillLocal() {
	for len(c.local) > 0 && c.workers.freeLocal(c) > 0 {
		r := c.local[0]
		c.local = c.local[1:]
		if cause := c.tooLateLocal(r); cause != "" {
			c.refuseLocal(r, cause)
			c.freeLane(r)
			continue
		}
		c.startLocal(r)
	}
}

func (c *Core) startLocal(r localRun) {
	id := idempotency.ID{Job: r.job.Name, Key: r.key, Due: r.due}
	h := &held{job: r.job, occ: c.occurrence(r.job, id, 0, r.attempt, nil), late: max(c.lateLocal(r), 0), alone: r.alone}
	c.hold(h)
	c.enterLane(h)
	c.start(h)
}

// tooLateLocal says why a run does not start any more; empty: it does.
func (c *Core) tooLateLocal(r localRun) string {
	late := c.lateLocal(r)
	switch {
	case c.jobs[r.job.Name] != r.job:
		return "expired"
	case r.attempt > 0:
		return ""
	case r.job.startsTooLate(late):
		return reasonDeadline
	case late > c.cfg.MissedAfter+r.job.starts.coarse() && !r.waited:
		return "expired"
	}
	return ""
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
