package core

import (
	"bytes"
	"slices"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// Who runs a job of the leader:
//
//   - The leader runs all of it, and opens it and passes over all of its keys at once. What waits, or was orphaned, the store shows by
//     the ring's ranks, here too: so the leader takes it up to its rank times a Grace later. The others take and open nothing: it is held.
//   - While nobody leads it is held by all. Where its HandOverAfter has passed without a leader, as far as a replica
//     has seen, that replica goes by the ring's ranks, as for any job, until it sees a leader.
//   - Where the leader's session has not announced the job as we have it for a Lease, we go by the ring's ranks too. So
//     does everybody who has that code, and those who have not can take nothing. Whether it is the leader's is a part of
//     its definition: a leader with the code of before it was, or of after, has not the job as we have it.
//
// Any replica may claim at any time: the ranks only say who goes first, and the store decides who wins.
//
// A definition is put in force by any replica that has it and sees that it is not, leader or not, as for any job: that runs nothing. So when a job
// is edited while the leader still has the old code, the first replica with the new code puts the new definition in force; what it decides of the old one's
// dues waits, and so does what comes by the new one, whose claims the store refuses to the leader. After a Lease of that, those
// who have the new code run it by the ring's ranks, until one of them leads. If the leader is replaced before, nobody waits that long.
// Back to the old code it is the same: the leader then puts its own definition in force again.
//
// The dues of an efficiency job are run by who leads when they come, and while nobody does they are left out, as they are while no replica runs.
// What has not started of them when a term ends is left out too.

// lacks are jobs which the leader has not the code of, and since when, as far as asked.
type lacks struct {
	session int64 // the leader's
	since   map[jobAs]time.Duration
	at      time.Duration // when the last roster was taken
}

// jobAs is a job in one definition.
type jobAs struct{ job, hash string }

// makeShares makes the shares of the leader's jobs.
func (l *leader) makeShares(c Config) {
	all := bytes.Repeat([]byte{0xff}, c.Partitions/8)
	l.alone = &share{most: maxInt, owners: []string{c.Replica}, ranks: [][]byte{all}}
	l.others = &share{owners: []string{}, rank: -1}
}

// held says that a job is the leader's to run, and that we are not the one.
func (c *Core) held(j *job) bool { return j.ofLeader() && !j.handed && c.leader.term == 0 }

// termOf is the term of what is claimed, or started, of a job now; 0: of none.
func (c *Core) termOf(j *job) int64 {
	if j.ofLeader() {
		return c.leader.term
	}
	return 0
}

// handOver notes which of the leader's jobs go by the ring's ranks now.
func (c *Core) handOver() {
	changed := false
	for _, j := range c.leader.jobs {
		if handed := c.handsOver(j); handed != j.handed {
			j.handed, changed = handed, true
		}
	}
	if changed {
		c.leaderChanged()
	}
}

func (c *Core) handsOver(j *job) bool {
	l := &c.leader
	switch {
	case l.term != 0 || c.session == nil:
		return false
	case l.nobody:
		return j.HandOverAfter > 0 && l.read-l.noneAt >= j.HandOverAfter
	}
	since, lacks := l.lacks.since[jobAs{j.Name, j.hash}]
	return lacks && l.lacks.session == l.row.Session && l.lacks.at-since >= c.cfg.Lease
}

// leaderChanged looks at all that is the leader's, since other ranks hold for it now. What an entry was when we looked last may be
// long over: then the answer to our decision tells what it is.
func (c *Core) leaderChanged() {
	l := &c.leader
	l.others.owners = []string{}
	if row := l.row; row.Term != 0 && row.Until.IsZero() {
		l.others.owners = []string{row.Replica}
	}
	for _, j := range l.jobs {
		if !j.efficient() && c.jobs[j.Name] == j {
			c.see(j, j.entry)
		}
	}
	c.dropHeld()
	c.askRoster()
	c.sweepSoon(0)
}

// dropHeld gives up what is not claimed yet of jobs that are not ours to run any more.
func (c *Core) dropHeld() {
	held := func(name string) bool {
		j := c.jobs[name]
		return j != nil && c.held(j)
	}
	if !slices.ContainsFunc(c.leader.jobs, c.held) {
		return
	}
	for _, p := range slices.Clone(c.passes) {
		if held(p.job.Name) {
			c.dropPass(p)
		}
	}
	gone := func(r idempotency.Run) bool { return held(r.ID.Job) }
	c.backlog.left = slices.DeleteFunc(c.backlog.left, gone)
	c.backlog.fresh = slices.DeleteFunc(c.backlog.fresh, gone)
	c.decides.drop(func(d idempotency.Decision) bool { return d.Term != 0 && held(d.Job) })
	c.claims.drop(func(q idempotency.Claim) bool { return q.Term != 0 && held(q.ID.Job) })
}

// followsLeader says that it matters what code the leader has.
func (c *Core) followsLeader() bool {
	l := &c.leader
	return len(l.jobs) > 0 && l.term == 0 && l.row.Term != 0 && l.row.Until.IsZero()
}

// tookLeader notes which jobs the leader has not announced, and reports whether there are any: then it is looked again, so that the
// others take them over, and give them back, in time.
func (c *Core) tookLeader(list []idempotency.SessionStatus) bool {
	l := &c.leader
	i := slices.IndexFunc(list, func(s idempotency.SessionStatus) bool { return s.ID == l.row.Session })
	if i < 0 || !c.followsLeader() {
		l.lacks = lacks{}
		return false
	}
	before := l.lacks
	l.lacks = lacks{session: list[i].ID, since: map[jobAs]time.Duration{}, at: c.now.Mono}
	for _, j := range l.jobs {
		if list[i].Announced[j.Name] == j.hash {
			continue
		}
		as := jobAs{j.Name, j.hash}
		since, was := before.since[as]
		if !was || before.session != l.lacks.session {
			since = c.now.Mono
		}
		l.lacks.since[as] = since
	}
	return len(l.lacks.since) > 0
}
