package core

import (
	"slices"
	"time"

	"github.com/belfry-go/belfry/jobs"
)

// localLane is the runs of one key of an efficiency job on this replica, where they do not run beside each other. The
// overlap policy holds here and nowhere else: other replicas have lanes of their own.
type localLane struct {
	at      *held     // the run at work
	queued  bool      // it waits for a worker still
	behind  *localRun // waits until that has ended
	pausing int       // runs that wait for their next attempts
	newest  time.Time // due of those that came
}

func (l *localLane) busy() bool { return l.at != nil || l.queued }

// queueLocal lets a run wait for a worker, or does with it what its job says where another run of its key waits or runs here.
func (c *Core) queueLocal(r localRun) {
	if r.alone = r.job.holdsKey(); !r.alone {
		c.local = append(c.local, r)
		return
	}
	l := c.lane(r)
	if r.due.After(l.newest) {
		l.newest = r.due
	}
	switch {
	case !l.busy():
		c.waitForWorker(l, r)
	case r.job.Overlap == jobs.OverlapQueue && l.behind == nil && l.pausing == 0:
		l.behind = &r
	case r.job.Overlap == jobs.OverlapCancel:
		c.overtakeLocal(l, r)
	default:
		c.refuseLocal(r, "busy")
	}
}

func (c *Core) lane(r localRun) *localLane {
	l := c.workers.lanes[r.localKey()]
	if l == nil {
		l = &localLane{}
		c.workers.lanes[r.localKey()] = l
	}
	return l
}

func (c *Core) waitForWorker(l *localLane, r localRun) {
	l.queued = true
	c.local = append(c.local, r)
}

// overtakeLocal ends what of a key is at work, and leaves out what waits.
func (c *Core) overtakeLocal(l *localLane, r localRun) {
	if l.behind != nil {
		c.refuseLocal(*l.behind, reasonOvertaken)
		l.behind = nil
	}
	if l.at != nil {
		l.behind = &r
		c.tellEnd(l.at, jobs.ErrOvertaken)
		return
	}
	i := slices.IndexFunc(c.local, func(o localRun) bool { return o.alone && o.localKey() == r.localKey() })
	c.refuseLocal(c.local[i], reasonOvertaken)
	c.local[i] = r
}

// enterLane notes that a run of a lane has its worker.
func (c *Core) enterLane(h *held) {
	if l := c.workers.lanes[h.localKey()]; h.alone {
		l.at, l.queued = h, false
	}
}

// leftLane notes that a run has ended, and its handler returned.
func (c *Core) leftLane(h *held) {
	if h.alone {
		c.freeLane(localRun{job: h.job, key: h.occ.Key, alone: true})
	}
}

// freeLane lets come what waits behind a run.
func (c *Core) freeLane(r localRun) {
	l := c.workers.lanes[r.localKey()]
	if !r.alone || l == nil {
		return
	}
	if l.at, l.queued = nil, false; l.behind != nil {
		next := *l.behind
		l.behind, next.waited = nil, true
		c.waitForWorker(l, next)
		return
	}
	c.dropLane(r, l)
}

func (c *Core) dropLane(r localRun, l *localLane) {
	if !l.busy() && l.behind == nil && l.pausing == 0 {
		delete(c.workers.lanes, r.localKey())
	}
}

// retryLocal makes the next attempt of a run after a pause, unless a newer run has overtaken it by then.
func (c *Core) retryLocal(r localRun, pause time.Duration) {
	l := c.lane(r)
	l.pausing++
	c.after(pause, func() {
		l.pausing--
		switch {
		case c.draining || c.jobs[r.job.Name] != r.job:
		case r.job.Overlap == jobs.OverlapCancel && l.newest.After(r.due):
			c.refuseLocal(r, reasonOvertaken)
		default:
			c.queueLocal(r)
		}
		c.dropLane(r, l)
	})
}

func (h *held) localKey() localKey { return localKey{h.occ.Job, h.occ.Key} }
