package core

import (
	"math"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/belfry-go/belfry/jobs"
)

// load is what runs of a job take here. It is kept by the job's name, so that a job which is removed and added again
// finds what still runs of it.
type load struct {
	running  int   // handlers at work, of the store's runs and of local ones; a stuck one counts until it returns
	reserved int   // claims under way
	turn     int64 // when a worker last went to it, as a number that rises

	starts    *rate.Limiter // nil: no bound
	perSecond float64
}

func (l *load) atWork() int { return l.running + l.reserved }

// loadOf is the load of a job by its name, with its bound of starts.
func (c *Core) loadOf(spec jobs.Job) *load {
	l := c.loads[spec.Name]
	if l == nil {
		l = &load{}
		c.loads[spec.Name] = l
	}
	if r := spec.Limit.PerSecond; r != l.perSecond {
		l.perSecond, l.starts = r, nil
		if r > 0 {
			l.starts = rate.NewLimiter(rate.Limit(r), max(1, int(math.Ceil(r))))
		}
	}
	return l
}

// dropLoads forgets those of jobs that are gone, once nothing runs of them.
func (c *Core) dropLoads() {
	for name, l := range c.loads {
		if c.jobs[name] == nil && l.atWork() == 0 {
			delete(c.loads, name)
		}
	}
}

// reserve promises workers to claims of a job, or with n below 0 takes that back.
func (c *Core) reserve(j *job, n int) {
	c.workers.reserved += n
	j.load.reserved += n
}

// limitOf is how many runs of a job may be at work here at once.
func (c *Core) limitOf(j *job) int {
	n := c.cfg.Concurrency
	switch most := j.Limit.PerReplica; {
	case most > 0:
		n = min(n, most)
	case most == 0 && n >= 2 && len(c.jobs) > 1:
		n -= max(1, n/8)
	}
	if j.Limit.Cluster > 0 { // the leader has all of it
		n = min(n, j.Limit.Cluster)
	}
	return min(n, c.shareOf(j).most)
}

// room is how many more runs of a job may start now as far as its own limits go; whether workers are free is another question.
func (c *Core) room(j *job) int {
	n := c.limitOf(j) - j.load.atWork()
	if j.load.starts != nil {
		n = min(n, int(c.tokens(j)))
	}
	return max(n, 0)
}

// atLimit says that a job has as many runs at work here as it may.
func (c *Core) atLimit(j *job) bool { return j.load.atWork() >= c.limitOf(j) }

// tokens is how many starts a job's Limit.PerSecond allows now, less those that claims may take.
func (c *Core) tokens(j *job) float64 {
	return j.load.starts.TokensAt(c.rateTime()) - float64(j.load.reserved)
}

// rateTime is the monotonic clock as rate wants it.
func (c *Core) rateTime() time.Time { return time.Unix(0, int64(c.now.Mono)) }

// outOfTokens says that only a job's PerSecond keeps its runs waiting.
func (c *Core) outOfTokens(j *job) bool {
	return j.load.starts != nil && !c.atLimit(j) && c.tokens(j) < 1
}

// maxTokenWait is after how long a job that may start nothing is looked at again: a very low PerSecond makes it wait for longer than
// a duration can say.
const maxTokenWait = time.Hour

// awaitToken makes Step be called when a job whose runs wait may start one more. It is a little late, so that what rounding takes
// cannot make it come too early again and again.
func (c *Core) awaitToken(j *job) {
	if !c.outOfTokens(j) {
		return
	}
	wait := maxTokenWait
	if s := (1 - c.tokens(j)) / j.load.perSecond; s < wait.Seconds() {
		wait = time.Duration(s*float64(time.Second)) + time.Microsecond
	}
	if at := c.now.Mono + wait; c.tokenAt == 0 || at < c.tokenAt {
		c.tokenAt = at
	}
}

// began counts a handler that starts, which takes a token where starts are bounded: also where there is none, as for a stray, whom the
// next ones then wait for.
func (l *load) began(at time.Time) {
	l.running++
	if l.starts != nil {
		l.starts.ReserveN(at, 1)
	}
}

// full names the jobs of which a sweep is not to bring what waits, since none of it could start: it would keep out what can. Of one
// that only waits for a token some is brought, if none is here. Those that are this replica's to run are looked for
// again as soon as they have room.
func (c *Core) full() (names, ours []string) {
	if c.workers.running+c.workers.reserved == 0 && !c.bounded { // each has room
		return nil, nil
	}
	for name, j := range c.jobs {
		switch {
		case c.limitOf(j) == 0:
			names = append(names, name)
		case c.atLimit(j) || c.outOfTokens(j) && c.backlog.has(name):
			names, ours = append(names, name), append(ours, name)
		}
	}
	slices.Sort(names)
	return names, ours
}

// roomAgain makes a sweep come soon where a job that the last one left out has room again and nothing of it is at hand. Like a
// hint it makes ten a second at most.
func (c *Core) roomAgain() {
	w := &c.sweeper
	for _, name := range w.excluded {
		if j := c.jobs[name]; j != nil && c.room(j) > 0 && !c.backlog.has(name) {
			w.excluded, w.hinted = nil, true
			return
		}
	}
}
