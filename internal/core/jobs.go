package core

import (
	"maps"
	"slices"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/internal/timetable"
	"github.com/belfry-go/belfry/jobs"
)

// job is one job that this replica has the code of.
type job struct {
	jobs.Job
	hash      string
	partition int // of its name
	starts    starts
	load      *load
	share     *share        // nil: to be computed
	delay     time.Duration // from a due to when it is opened, which is its start; 0 with keys

	next  time.Time    // when to look at it: by the store's time, or by the host's for an efficiency job; zero: never
	index timetable.ID // in dues; 0: not there

	since time.Duration // when we got it
	told  time.Time     // up to where we told that its entry is opened, ahead of the store's clock

	entry    idempotency.Entry // as read last
	deciding bool
	behind   bool          // the last decision did not come to what is due now: the next one catches up with it
	lived    time.Duration // when a run of it last began or ended here
	began    bool          // lived is set
	refused  time.Time     // the last local due that did not run because the job is quiet
	handed   bool          // a job of the leader that goes by the ring's ranks now
}

// dueKey names a due of a job.
type dueKey struct {
	job string
	due int64
}

func keyOf(job string, due time.Time) dueKey { return dueKey{job, due.Unix()} }

func (j *job) efficient() bool { return j.Guarantee == jobs.Efficiency }
func (j *job) keyed() bool     { return j.Keys != nil }

func (j *job) definition() idempotency.Definition {
	return idempotency.Definition{Job: j.Name, Schedule: j.Schedule.String(), Hash: j.hash, Revision: j.Revision, Keyed: j.keyed(), Leader: j.ofLeader()}
}

// setJobs takes the whole set of jobs, and whether the leader has roles. Jobs that stay keep their state.
func (c *Core) setJobs(list []jobs.Job, roles bool) {
	before := c.jobs
	c.jobs, c.bounded = make(map[string]*job, len(list)), false
	for _, spec := range list {
		j := before[spec.Name]
		if j != nil && j.Guarantee != spec.Guarantee { // another kind of job altogether
			c.queue(j).set(j, time.Time{})
			j = nil
		}
		known := j != nil
		if !known {
			j = &job{since: c.now.Mono}
		}
		edited := j.hash != spec.Definition()
		j.Job, j.hash, j.partition = spec, spec.Definition(), c.partition(spec.Name)
		j.load, j.share = c.loadOf(spec), nil
		moved := j.spreadStarts(c.cfg)
		c.jobs[spec.Name] = j
		c.bounded = c.bounded || spec.Limit.Cluster > 0 || spec.Limit.PerSecond > 0 || j.ofLeader()
		if j.efficient() && (moved || edited || j.index == 0) {
			c.wallDues.set(j, c.nextLocal(j, c.now.Wall))
		}
		if j.efficient() && !known {
			c.resumeLocal(j)
		}
	}
	for name, j := range before {
		if c.jobs[name] == nil {
			c.queue(j).set(j, time.Time{})
		}
	}
	for _, p := range slices.Clone(c.passes) {
		if c.jobs[p.job.Name] != p.job {
			c.dropPass(p)
		}
	}
	c.setRanked()
	c.setLeader(roles)
	c.dropLoads()
	switch {
	case c.session == nil:
		c.openSession()
	case c.session.declared:
		c.session.declared, c.session.since = false, c.now.Mono
		c.declare()
	default:
		c.session.again = true
	}
	c.announce()
}

func (c *Core) queue(j *job) *dues {
	if j.efficient() {
		return &c.wallDues
	}
	return &c.storeDues
}

func (c *Core) sortedJobs() []*job {
	return slices.SortedFunc(maps.Values(c.jobs), func(a, b *job) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
}

// see takes note of an entry, and of when to look at it next: at the first due after what is opened. Where the entry is not of
// our definition, and ours is not in force either, that is the first due of ours to come: others may put ours in force, and no
// sweep tells of that before the due.
func (c *Core) see(j *job, e idempotency.Entry) {
	j.entry = e
	if j.efficient() {
		return
	}
	next := j.look(c.storeNow())
	if e.Hash == j.hash || e.InForce == j.hash {
		next = j.firstStart(e.Opened)
	}
	c.storeDues.set(j, next)
}
