package core

import (
	"errors"
	"slices"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// localRun is a run of an efficiency job: no store knows of it.
type localRun struct {
	job     *job
	key     string
	due     time.Time
	attempt int // attempts that ended
}

type localKey struct{ job, key string }

// fireLocalDues looks at every efficiency job whose time has come by the host's clock.
func (c *Core) fireLocalDues() {
	for !c.draining && len(c.wallDues) > 0 {
		j := c.wallDues[0]
		if j.next.After(c.now.Wall) {
			return
		}
		due := j.next
		next, _ := j.Schedule.Next(c.now.Wall)
		c.wallDues.set(j, next)
		if c.now.Wall.Sub(due) <= c.cfg.MissedAfter {
			c.openLocal(j, due)
		}
	}
}

// openLocal runs a due of an efficiency job where this replica is the owner now.
func (c *Core) openLocal(j *job, due time.Time) {
	if c.ranks == nil {
		return
	}
	if !j.keyed() {
		if c.rank(j.partition) == 0 {
			c.local = append(c.local, localRun{job: j, key: j.Name, due: due})
		}
		return
	}
	for _, p := range c.passes {
		if p.job == j {
			c.emit(Problem{Job: j.Name, Due: due, Err: errStillStreaming})
			return
		}
	}
	p := &pass{job: j, due: due, mask: slices.Clone(c.ranks[0])}
	c.addPass(p)
	c.openStream(p)
}

// fillLocal starts efficiency runs as workers become free.
func (c *Core) fillLocal() {
	for len(c.local) > 0 && c.workers.free(c) > 0 {
		r := c.local[0]
		c.local = c.local[1:]
		c.startLocal(r)
	}
}

// startLocal starts a run unless one of the same key still runs here.
func (c *Core) startLocal(r localRun) {
	k := localKey{r.job.Name, r.key}
	id := idempotency.ID{Job: r.job.Name, Key: r.key, Due: r.due}
	if c.workers.localKeys[k] {
		c.emit(Refused{Occurrence: c.occurrence(r.job, id, 0, r.attempt, nil), Cause: "busy"})
		return
	}
	c.workers.localKeys[k] = true
	h := &held{job: r.job, occ: c.occurrence(r.job, id, 0, r.attempt, nil), late: c.now.Wall.Sub(r.due)}
	c.hold(h)
	c.start(h)
}

// wroteLocal takes the end of an efficiency run's attempt: there is nobody to ask.
func (c *Core) wroteLocal(h *held, f idempotency.Finish, err error) {
	h.answered = true
	c.observe(h, f, err)
	again := localRun{job: h.job, key: h.occ.Key, due: h.occ.Due, attempt: f.Attempt}
	if f.Outcome == idempotency.Wait && f.Reason != reasonReleased {
		delay := h.job.Retry.Delay(f.Attempt, c.cfg.Rand.Float64())
		c.after(delay, func() {
			if !c.draining && c.jobs[h.job.Name] == h.job {
				c.local = append(c.local, again)
			}
		})
	}
	c.letGo(h)
}

var errStillStreaming = errors.New("the keys of its last due are still being read; this due is left out on this replica")
