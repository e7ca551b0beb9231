package core

import (
	"context"
	"slices"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// roster is which members have not the code of which jobs, as the store knows it from what their sessions announce. It is asked for only
// where a job's Limit.Cluster makes some members its owners, or a leader is: one without the code must not be one of them, or else nobody would run it.
// That somebody opens a session, or announces a job, a little later than others must not change who owns what: so a
// member counts as without it when it has been so for a Lease.
type roster struct {
	lacks  map[knowing]time.Duration // since when, as far as asked
	at     time.Duration             // when the last one was taken
	asking bool
	again  bool // something changed since it was asked for
	failed bool // it is asked for again after a Sweep
	watch  *timer
}

// knowing is a member and a definition that it may announce.
type knowing struct{ member, job, hash string }

// rosterEvery is how often the roster is asked for where no member came or went.
const rosterEvery = time.Minute

// knowers are the members that run a job as we have it, as far as known.
func (c *Core) knowers(j *job) []string {
	r := &c.roster
	return slices.DeleteFunc(c.ring.Members(), func(name string) bool {
		since, lacks := r.lacks[knowing{name, j.Name, j.hash}]
		return lacks && r.at-since >= c.cfg.Lease && name != c.cfg.Replica
	})
}

// askRoster asks for the roster where it matters.
func (c *Core) askRoster() {
	r, s := &c.roster, c.session
	if !c.ready() || !c.fewOwn() && !c.followsLeader() {
		return
	}
	if r.asking {
		r.again = true
		return
	}
	r.asking, r.again = true, false
	c.emit(newCall("Overview",
		func(ctx context.Context, st idempotency.Store) ([]idempotency.SessionStatus, error) {
			h, ok := st.(idempotency.History)
			if !ok {
				return nil, nil // it cannot tell: all members count
			}
			o, err := h.Overview(ctx, s.Namespace)
			return o.Sessions, err
		},
		func(list []idempotency.SessionStatus, err error) {
			r.asking = false
			switch { // where none is taken, what was known stays so until the next time
			case err != nil && !r.failed:
				r.failed = true
				c.after(c.cfg.Sweep, func() {
					r.failed = false
					c.askRoster()
				})
			case err == nil && c.session == s && len(list) > 0:
				c.tookRoster(list)
			}
			if r.again {
				c.askRoster()
			}
		}))
}

// overdue has it looked at who has the code of a job that is held, and that its leader has not opened.
func (c *Core) overdue() {
	if r := &c.roster; c.followsLeader() && !r.asking && c.now.Mono-r.at >= c.cfg.Lease/2 {
		c.askRoster()
	}
}

func (c *Core) tookRoster(list []idempotency.SessionStatus) {
	has := map[knowing]bool{}
	for _, s := range list {
		for job, hash := range s.Announced {
			if j := c.jobs[job]; j != nil && j.Limit.Cluster > 0 {
				has[knowing{s.Replica, job, hash}] = true
			}
		}
	}
	r, watch := &c.roster, c.tookLeader(list)
	before := r.lacks
	r.lacks, r.at = map[knowing]time.Duration{}, c.now.Mono
	for _, j := range c.jobs {
		for _, name := range c.limitedTo(j) {
			k := knowing{name, j.Name, j.hash}
			if has[k] {
				continue
			}
			since, was := before[k]
			if !was {
				since = r.at
			}
			r.lacks[k] = since
			watch = watch || r.at-since < c.cfg.Lease
		}
	}
	if c.stopTimer(r.watch); watch {
		r.watch = c.after(c.cfg.Lease, c.askRoster)
	}
	c.dropShares()
	c.sweepSoon(0)
}

// limitedTo are the members of which only some can own a job; nil where all do.
func (c *Core) limitedTo(j *job) []string {
	if n := j.Limit.Cluster; n == 0 || c.ring == nil || n >= len(c.ring.Members()) {
		return nil
	}
	return c.ring.Members()
}

// fewOwn says that there is a job which not all members own.
func (c *Core) fewOwn() bool {
	for _, j := range c.jobs {
		if c.limitedTo(j) != nil {
			return true
		}
	}
	return false
}

func (c *Core) watchRoster(s *session) bool {
	if c.session != s {
		return false
	}
	c.askRoster()
	return true
}
