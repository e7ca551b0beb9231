package core

import (
	"slices"

	"github.com/belfry-go/belfry/idempotency"
)

// fill gives free workers something to do. Higher priorities come first. Within one every other worker goes to what was due just now,
// while there is something else: what was left lying, or is caught up with. Of either kind the job has the next worker whose last turn
// is longest ago; of a job first what waits in the store, then its keys, oldest due first. So a job that floods, or whose handlers
// hang, makes another one wait for no more than the next workers that become free.
func (c *Core) fill() {
	c.tokenAt = 0
	if c.draining {
		return
	}
	for _, level := range c.levels() {
		for c.workers.freeLocal(c) > 0 {
			next := c.pick(level)
			if next.from == nowhere {
				break
			}
			c.give(next)
		}
		for _, p := range slices.Clone(c.passes) {
			if p.job.Priority == level && (c.ready() || p.local) {
				c.advance(p)
			}
		}
	}
	if w := &c.sweeper; w.full && w.won && !w.asking && c.ready() && c.workers.free(c) > 0 { // nothing is at hand that could start
		c.sweepSoon(0)
	}
}

// candidate is a run that waits for a worker.
type candidate struct {
	from  source
	last  int64 // its job's last turn
	pass  *pass // where it is a key of one
	index int   // else, in its list
}

type source int

const (
	nowhere source = iota
	fromLeft
	fromFresh
	fromPass
	fromLocal
)

// before says that a candidate goes before another one that was found earlier. Passes over one due take turns as well.
func (a candidate) before(b candidate) bool {
	if b.from == nowhere || a.last != b.last {
		return b.from == nowhere || a.last < b.last
	}
	p, q := a.pass, b.pass
	return p != nil && q != nil && p.job == q.job && p.due.Equal(q.due) && p.turn < q.turn
}

// pick is the run of a priority that the next free worker goes to.
func (c *Core) pick(level int) candidate {
	var late, now candidate
	stored := c.ready() && c.workers.free(c) > 0
	if stored {
		c.pickRun(level, c.backlog.left, fromLeft, &late)
		c.pickRun(level, c.backlog.fresh, fromFresh, &now)
	}
	for _, p := range c.passes {
		best := &now
		if p.catchUp {
			best = &late
		}
		x := candidate{from: fromPass, last: p.job.load.turn, pass: p}
		if len(p.buf) > 0 && (stored || p.local) && x.before(*best) && c.may(level, p.job) {
			*best = x
		}
	}
	c.pickLocal(level, &now)
	b := &c.backlog
	if now.from == nowhere || late.from != nowhere && b.nowLast {
		b.nowLast = b.nowLast && late.from == nowhere
		return late
	}
	b.nowLast = true
	return now
}

// pickRun looks among runs that wait in the store. One of a removed job may be dropped at any time.
func (c *Core) pickRun(level int, runs []idempotency.Run, from source, best *candidate) {
	for i, r := range runs {
		j, x := c.jobs[r.ID.Job], candidate{from: from, index: i}
		if j != nil {
			x.last = j.load.turn
		}
		if x.before(*best) && (j == nil || c.mayTake(level, j, r)) {
			*best = x
		}
	}
}

// pickLocal looks among the local runs that wait.
func (c *Core) pickLocal(level int, best *candidate) {
	for i := c.localStart(level); i < len(c.local) && c.local[i].job.Priority == level; i++ {
		r := c.local[i]
		x := candidate{from: fromLocal, last: r.job.load.turn, index: i}
		if x.before(*best) && (c.dropsLocal(r) != "" || c.may(level, r.job)) {
			*best = x
		}
	}
}

// give gives a worker to what was picked.
func (c *Core) give(x candidate) {
	switch x.from {
	case fromLeft:
		c.take(takeOut(&c.backlog.left, x.index))
	case fromFresh:
		c.take(takeOut(&c.backlog.fresh, x.index))
	case fromPass:
		c.giveKey(x.pass)
	case fromLocal:
		c.startLocal(takeOut(&c.local, x.index))
	}
}

// takeOut removes one element. What comes first, as nearly always, costs nothing.
func takeOut[T any](list *[]T, i int) T {
	x := (*list)[i]
	if i == 0 {
		*list = (*list)[1:]
	} else {
		*list = slices.Delete(*list, i, i+1)
	}
	return x
}

// turned notes that it was a job's turn.
func (c *Core) turned(j *job) {
	c.turns++
	j.load.turn = c.turns
}

// may says whether a run of a job that waits may have a worker now.
func (c *Core) may(level int, j *job) bool {
	if j.Priority != level {
		return false
	}
	if c.room(j) > 0 {
		return true
	}
	c.awaitToken(j)
	return false
}

// mayTake is may for a run that waits in the store. One of an efficiency job lets a local run of its key end first, of which the store
// does not know.
func (c *Core) mayTake(level int, j *job, r idempotency.Run) bool {
	return c.may(level, j) && !(j.efficient() && c.keyHeld(localKey{r.ID.Job, r.ID.Key}))
}

// giveKey gives the next key of a pass a worker.
func (c *Core) giveKey(p *pass) {
	key := p.buf[0]
	p.buf = p.buf[1:]
	c.turned(p.job)
	p.turn = c.turns
	if !p.local {
		c.claimKey(p, key)
	} else if r, ok := c.admitLocal(localRun{job: p.job, key: key, due: p.due}); ok {
		c.startLocal(r)
	}
}
