package core

import (
	"context"
	"slices"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// roster is which members have announced what to the store. It is asked for only where a job's Limit.Cluster makes some of
// them its owners: one without the job's code must not be one of them, or else nobody would run it.
type roster struct {
	members   []string                     // of the ring, when it was asked for
	announced map[string]map[string]string // hashes by job, by member; nil: not known
	asking    bool
	again     bool // something changed since it was asked for
}

// rosterEvery is how often the roster is asked for where no member came or went.
const rosterEvery = time.Minute

// knowers are the members that run a job as we have it, as far as known. One that is new to us is taken for one.
func (c *Core) knowers(j *job) []string {
	r := &c.roster
	all := c.ring.Members()
	if r.announced == nil {
		return all
	}
	return slices.DeleteFunc(all, func(name string) bool {
		return name != c.cfg.Replica && slices.Contains(r.members, name) && r.announced[name][j.Name] != j.hash
	})
}

// askRoster asks for the roster where it matters.
func (c *Core) askRoster() {
	r, s := &c.roster, c.session
	if !c.ready() || c.ring == nil || !c.fewOwn() {
		return
	}
	if r.asking {
		r.again = true
		return
	}
	r.asking, r.again = true, false
	members := c.ring.Members()
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
			if err == nil && c.session == s && len(list) > 0 { // else what was known stays so until the next time
				c.tookRoster(members, list)
			}
			if r.again {
				c.askRoster()
			}
		}))
}

func (c *Core) tookRoster(members []string, list []idempotency.SessionStatus) {
	r := &c.roster
	r.members, r.announced = members, map[string]map[string]string{}
	for _, s := range list {
		if r.announced[s.Replica] == nil {
			r.announced[s.Replica] = map[string]string{}
		}
		for job, hash := range s.Announced {
			r.announced[s.Replica][job] = hash
		}
	}
	c.dropShares()
	c.sweepSoon(0)
}

// fewOwn says that there is a job which not all members own.
func (c *Core) fewOwn() bool {
	m := len(c.ring.Members())
	for _, j := range c.jobs {
		if n := j.Limit.Cluster; n > 0 && n < m {
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
