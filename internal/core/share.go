package core

import (
	"cmp"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// share is this replica's part of a job's Limit.Cluster, as far as the members agree about who is there; or of a job of the leader's, for
// which see leaderjobs.go.
//
// All members that have the job's code are put into an order that depends on the job's name and theirs alone, and so is the same on
// every replica; a member that comes or goes moves no two others. Where the limit is below their number, as many of them as it says,
// the first ones, own the job, and each runs one at a time. Else each has an equal part, and the first ones what is left over.
//
// A member that is no owner of the job takes nothing of it, also where an owner hangs: what hangs is at work, and counts. One that dies
// or cannot reach the store leaves the ring, and one that has not the job's code does not announce it to the store, which counts
// after a Lease (see roster); both make the next one in the order an owner. But an owner whose workers are all held by other jobs
// stays one: nobody else may start the job instead, since the owner could start it at any time too. Openings run nothing, so they are anybody's: a member
// that is no owner makes them after those that are have had their time.
type share struct {
	most   int      // runs at once here
	owners []string // where not all members own the job: those that do
	rank   int      // ours among the owners for the job's name; -1: we are none

	ranks [][]byte // ours among the owners for keys; nil: not asked for yet
}

// few says that not all members own the job.
func (s *share) few() bool { return s.owners != nil }

// everybody is the share of a job without a bound.
var everybody = &share{most: maxInt}

// shareOf is our share of a job. It is computed anew when the members change, or what is known of them.
func (c *Core) shareOf(j *job) *share {
	switch {
	case j.ofLeader() && c.leader.term != 0:
		return c.leader.alone
	case c.held(j):
		return c.leader.others
	case j.Limit.Cluster == 0:
		return everybody
	case j.share == nil && c.ring == nil:
		return &share{rank: -1, owners: []string{}}
	case j.share == nil:
		j.share = c.makeShare(j)
	}
	return j.share
}

func (c *Core) makeShare(j *job) *share {
	order := shareOrder(j.Name, c.knowers(j))
	s := &share{most: shareAt(order, c.cfg.Replica, j.Limit.Cluster), rank: -1}
	if c.limitedTo(j) == nil {
		return s
	}
	s.owners = order[:min(j.Limit.Cluster, len(order))]
	if s.most == 0 {
		return s
	}
	all := c.ring.Owners(j.Name, len(c.ring.Members()))
	all = slices.DeleteFunc(all, func(name string) bool { return !slices.Contains(s.owners, name) })
	s.rank = slices.Index(all, c.cfg.Replica)
	return s
}

// dropShares has every share computed anew.
func (c *Core) dropShares() {
	for _, j := range c.jobs {
		j.share = nil
	}
}

// shareOrder sorts members by a hash of the job's name and theirs.
func shareOrder(job string, members []string) []string {
	type place struct {
		name string
		hash uint64
	}
	places := make([]place, len(members))
	for i, name := range members {
		places[i] = place{name, xxhash.Sum64String(job + "\x00" + name)}
	}
	slices.SortFunc(places, func(a, b place) int { return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.name, b.name)) })
	order := make([]string, len(places))
	for i, p := range places {
		order[i] = p.name
	}
	return order
}

// shareAt is how many of limit runs a member has; one that is not in the order has none.
func shareAt(order []string, name string, limit int) int {
	i, m := slices.Index(order, name), len(order)
	switch {
	case i < 0:
		return 0
	case i < limit%m:
		return limit/m + 1
	}
	return limit / m
}

// ranksOf are our ranks in the partitions, for a job's keys. Nil: it is not ours.
func (c *Core) ranksOf(j *job) [][]byte {
	s := c.shareOf(j)
	switch {
	case !s.few():
		return c.ranks
	case s.rank < 0:
		return nil
	case s.ranks == nil:
		s.ranks = lump(c.ring.RanksAmong(s.owners, c.cfg.Replica, maxRanks))
	}
	return s.ranks
}

// rankOf is our rank for a job's name: 0 makes its openings at once. -1: it is not ours.
func (c *Core) rankOf(j *job) int {
	if s := c.shareOf(j); s.few() {
		return s.rank
	}
	return c.rank(j.partition)
}

// turnOf is after how many graces we open what nobody has opened: our rank, and after all owners where we are none.
func (c *Core) turnOf(j *job) int {
	s, r := c.shareOf(j), max(c.rank(j.partition), 0)
	switch {
	case !s.few():
		return r
	case s.rank >= 0:
		return s.rank
	}
	return len(s.owners) + r
}
