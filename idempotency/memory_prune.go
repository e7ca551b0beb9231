package idempotency

import (
	"context"
	"slices"
	"time"
)

// stale is something that retention may remove.
type stale struct {
	at   time.Time
	drop func()
}

// removed notes that no record of the due is left for sure.
func (p *pruning) removed(due time.Time) {
	if due.After(p.space.pruned) {
		p.space.pruned = due
	}
}

// Prune removes what is older than the session's retention; see Runs.
func (m *Memory) Prune(ctx context.Context, s Session, limit int) (n int, err error) {
	err = m.with(ctx, s, func(c *call) error {
		n = c.prune(limit)
		return nil
	})
	return n, err
}

func (c *call) prune(limit int) int {
	p := pruning{
		call: c, before: c.now.Add(-c.by.Retention), limit: limit, oldest: make(map[string]time.Time),
		thinned: make(map[*dueRows]bool), goneRanges: make(map[*Range]bool), goneSessions: make(map[*session]bool),
	}
	for _, d := range slices.Backward(c.open) {
		p.oldest[d.job] = d.due
	}
	list := slices.Concat(p.runs(), p.closedDues(), p.oldRanges(), p.oldCommands())
	slices.SortStableFunc(list, func(a, b stale) int { return a.at.Compare(b.at) })
	list = append(list, p.deadSessions()...)
	list = list[:max(0, min(len(list), limit))]
	for _, x := range list {
		x.drop()
	}
	p.compact()
	return len(list)
}

// pruning is one call of Prune. Each of its lists may end at limit elements.
type pruning struct {
	*call
	before time.Time
	limit  int
	oldest map[string]time.Time // open due, by job

	// What goes; of rows and dues their maps say it.
	thinned      map[*dueRows]bool
	goneRanges   map[*Range]bool
	goneSessions map[*session]bool
}

// may reports whether what is of the job and that old may go.
func (p *pruning) may(job string, at time.Time) bool {
	open, ok := p.oldest[job]
	return at.Before(p.before) && (!ok || at.Before(open))
}

func (p *pruning) runs() []stale {
	var list []stale
	for _, d := range p.dues {
		if len(list) >= p.limit || !time.Unix(d.due, 0).Before(p.before) {
			break
		}
		for _, r := range d.inOrder() {
			if len(list) < p.limit && r.State == Ended && p.may(r.ID.Job, r.ID.Due) {
				list = append(list, stale{r.ID.Due, func() {
					p.removed(r.ID.Due)
					p.name(r, holder{})
					delete(p.rows, refOf(r.ID))
					p.thinned[d] = true
				}})
			}
		}
	}
	return list
}

func (p *pruning) closedDues() []stale {
	var list []stale
	for _, d := range p.closed {
		if len(list) >= p.limit || !d.due.Before(p.before) {
			break
		}
		if p.may(d.job, d.due) {
			list = append(list, stale{d.due, func() {
				p.removed(d.due)
				delete(p.keyed, jobDue{d.job, d.due.Unix()})
			}})
		}
	}
	return list
}

func (p *pruning) oldRanges() []stale {
	var list []stale
	for _, r := range p.ranges {
		if !r.From.Before(p.before) {
			break
		}
		if p.may(r.Job, r.To) {
			list = append(list, stale{r.To, func() {
				p.removed(r.To)
				p.goneRanges[r] = true
			}})
		}
	}
	return list
}

func (p *pruning) oldCommands() []stale {
	var list []stale
	for _, x := range p.commands {
		if p.may(x.ID.Job, x.At) {
			list = append(list, stale{x.At, func() { delete(p.requests, x.Request) }})
		}
	}
	return list
}

func (p *pruning) deadSessions() []stale {
	var list []stale
	for _, s := range p.sessions {
		if s.named == 0 && !s.live(p.now) && s.died().Before(p.before) {
			list = append(list, stale{s.died(), func() { p.goneSessions[s] = true }})
		}
	}
	return list
}

// compact removes what has gone from the lists.
func (p *pruning) compact() {
	for d := range p.thinned {
		d.rows = slices.DeleteFunc(d.rows, func(r *row) bool { return p.rows[refOf(r.ID)] == nil })
	}
	p.dues = slices.DeleteFunc(p.dues, func(d *dueRows) bool { return len(d.rows) == 0 })
	p.closed = slices.DeleteFunc(p.closed, func(d *keyedDue) bool { return p.keyed[jobDue{d.job, d.due.Unix()}] == nil })
	p.ranges = slices.DeleteFunc(p.ranges, func(r *Range) bool { return p.goneRanges[r] })
	p.sessions = slices.DeleteFunc(p.sessions, func(s *session) bool { return p.goneSessions[s] })
	p.commands = slices.DeleteFunc(p.commands, func(x *Command) bool { return p.requests[x.Request] != x })
	for _, e := range p.entries {
		for s := range p.goneSessions {
			delete(e.won, s.id)
		}
	}
}
