package core

import (
	"slices"
	"time"

	"github.com/belfry-go/belfry/jobs"
)

// keyQueue is the runs of one key of an efficiency job on this replica, where they do not run beside each other. The
// overlap policy holds here and nowhere else: other replicas have queues of their own.
type keyQueue struct {
	at      *held      // the run at work
	queued  bool       // it waits for a worker still
	behind  []localRun // wait until that has ended; more than one only where all but one make another attempt
	pausing int        // runs that wait for their next attempts
	newest  time.Time  // due of those that came
}

func (l *keyQueue) busy() bool { return l.at != nil || l.queued }

// queueLocal lets a run wait for a worker, or does with it what its job says where another run of its key waits or runs here.
func (c *Core) queueLocal(r localRun) {
	if r, ok := c.admitLocal(r); ok {
		c.waitForWorker(r)
	}
}

// admitLocal says whether a run may have a worker as far as its key goes, which it then holds. Else it waits behind another
// run, or was refused.
func (c *Core) admitLocal(r localRun) (localRun, bool) {
	if r.alone = r.job.holdsKey(); !r.alone {
		return r, true
	}
	k := r.localKey()
	switch taken := c.backlog.taken[keyOfJob(k)] > 0; { // a person asked for a run, which is the store's
	case taken && r.attempt > 0:
		c.retryLocal(r, c.cfg.Sweep)
		return r, false
	case taken, r.attempt == 0 && !c.keyHeld(k) && c.backlog.waits(keyOfJob(k)):
		c.refuseLocal(r, "busy")
		return r, false
	}
	l := c.queueOf(r)
	if r.due.After(l.newest) {
		l.newest = r.due
	}
	switch {
	case !l.busy():
		l.queued = true
		return r, true
	case r.job.Overlap == jobs.OverlapCancel:
		c.overtakeLocal(l, r)
	case r.attempt > 0, r.job.Overlap == jobs.OverlapQueue && len(l.behind) == 0 && l.pausing == 0:
		l.behind = append(l.behind, r)
	default:
		c.refuseLocal(r, "busy")
	}
	return r, false
}

// keyHeld says whether a local run of a key waits for a worker, or is at work.
func (c *Core) keyHeld(k localKey) bool {
	l := c.workers.queues[k]
	return l != nil && l.busy()
}

func (c *Core) queueOf(r localRun) *keyQueue {
	l := c.workers.queues[r.localKey()]
	if l == nil {
		l = &keyQueue{}
		c.workers.queues[r.localKey()] = l
	}
	return l
}

func (c *Core) waitForWorker(r localRun) {
	c.local = slices.Insert(c.local, c.localEnd(r.job.Priority), r)
}

// overtakeLocal ends what of a key is at work, and leaves out what waits.
func (c *Core) overtakeLocal(l *keyQueue, r localRun) {
	for _, o := range l.behind {
		c.refuseLocal(o, reasonOvertaken)
	}
	l.behind = nil
	if l.at != nil {
		l.behind = []localRun{r}
		c.tellEnd(l.at, jobs.ErrOvertaken)
		return
	}
	i := slices.IndexFunc(c.local, func(o localRun) bool { return o.alone && o.localKey() == r.localKey() })
	c.refuseLocal(c.local[i], reasonOvertaken)
	c.local[i] = r
}

// enterQueue notes that a run of a queue has its worker.
func (c *Core) enterQueue(h *held) {
	if l := c.workers.queues[h.localKey()]; h.alone {
		l.at, l.queued = h, false
	}
}

// leftQueue notes that a run has ended, and its handler returned.
func (c *Core) leftQueue(h *held) {
	if h.alone {
		c.freeQueue(localRun{job: h.job, key: h.occ.Key, alone: true})
	}
}

// freeQueue lets come what waits behind a run. What a person asked for goes before new dues, which keep coming; not before other
// attempts, of which there is an end.
func (c *Core) freeQueue(r localRun) {
	l := c.workers.queues[r.localKey()]
	if !r.alone || l == nil {
		return
	}
	l.at, l.queued = nil, false
	for len(l.behind) > 0 {
		next := takeOut(&l.behind, 0)
		if next.attempt == 0 && c.backlog.waits(keyOfJob(r.localKey())) {
			c.refuseLocal(next, "busy")
			continue
		}
		l.queued, next.waited = true, true
		c.waitForWorker(next)
		return
	}
	c.dropQueue(r, l)
}

func (c *Core) dropQueue(r localRun, l *keyQueue) {
	if !l.busy() && len(l.behind) == 0 && l.pausing == 0 {
		delete(c.workers.queues, r.localKey())
	}
}

// retryLocal makes the next attempt of a run after a pause, unless a newer run has overtaken it by then.
func (c *Core) retryLocal(r localRun, pause time.Duration) {
	l := c.queueOf(r)
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
		c.dropQueue(r, l)
	})
}

func (h *held) localKey() localKey { return localKey{h.occ.Job, h.occ.Key} }
