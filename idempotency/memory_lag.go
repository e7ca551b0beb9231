package idempotency

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
)

// Lagging returns what the replica may take; see Entries.
func (m *Memory) Lagging(ctx context.Context, s Session, q LagQuery) (lag Lag, err error) {
	err = m.with(ctx, s, func(c *call) error {
		if err := q.Validate(c.partitions); err != nil {
			return err
		}
		l := lagging{call: c, q: q}
		l.count(l.now)
		lag = Lag{
			Now: c.now, Entries: l.lateEntries(), Open: l.openDues(),
			Waiting: l.waitingRuns(), Orphaned: l.orphanedRuns(), Controls: c.controls,
		}
		return nil
	})
	return lag, err
}

// lagging answers one query.
type lagging struct {
	*call
	q LagQuery
}

// knows reports whether the job's entry has the hash that the session announced.
func (l *lagging) knows(job string) bool {
	e := l.entries[job]
	return e != nil && l.by.announced(job, e.Hash)
}

// asked reports whether runs of the job are asked for.
func (l *lagging) asked(job string) bool { return l.knows(job) && !slices.Contains(l.q.Full, job) }

// due reports whether this replica may act now on what lags since then, as far
// as the rank decides that it has in the key's partition.
func (l *lagging) due(key string, since time.Time) bool {
	p := Slot(key) % l.partitions
	for r, b := range l.q.Ranks {
		if len(b) > 0 && b[p/8]>>(p%8)&1 == 1 {
			return !l.now.Before(since.Add(time.Duration(r) * l.q.Grace))
		}
	}
	return false
}

func (l *lagging) lateEntries() []Entry {
	var list []Entry
	for _, e := range l.offered {
		if e.Next.After(l.now) {
			break
		}
		if l.by.announced(e.Job, e.Hash) && l.due(e.runKey(), e.Next) {
			list = append(list, e.Entry)
		}
	}
	for _, e := range l.census.unforced {
		if l.by.announced(e.Job, e.InForce) {
			list = append(list, e.Entry)
		}
	}
	slices.SortFunc(list, func(a, b Entry) int {
		if a.Next.IsZero() != b.Next.IsZero() {
			return b.Next.Compare(a.Next) // those that are never due last
		}
		return cmp.Or(a.Next.Compare(b.Next), strings.Compare(a.Job, b.Job))
	})
	return list
}

func (l *lagging) openDues() []OpenDue {
	list := slices.Grow([]OpenDue(nil), len(l.open))
	for _, d := range l.open {
		if !l.knows(d.job) {
			continue
		}
		x := OpenDue{Job: d.job, Due: d.due, Opened: d.opened, CatchUp: d.catchUp, ByHand: d.byHand, Finished: l.finished(d)}
		x.Passes = slices.Grow(x.Passes, len(d.passes))
		for _, p := range d.passes {
			if s := l.session(p.Session); s != nil && s.live(l.now) {
				x.Passes = append(x.Passes, p.copy())
			}
		}
		list = append(list, x)
	}
	return list
}

func (p *Pass) copy() Pass {
	x := *p
	x.Mine, x.Finished = slices.Clone(p.Mine), slices.Clone(p.Finished)
	return x
}

func (l *lagging) waitingRuns() []Run {
	var list []*row
	for at, rows := range l.waiting {
		if !l.asked(at.job) || l.exclusive[at] != nil {
			continue
		}
		for _, r := range rows {
			if l.due(r.ID.Key, r.Wake) {
				list = append(list, r)
			}
		}
	}
	return l.oldest(list, 2)
}

func (l *lagging) orphanedRuns() []Run {
	var list []*row
	for _, s := range l.sessions {
		if s.live(l.now) {
			continue
		}
		for r := range s.runs {
			if l.asked(r.ID.Job) && l.due(r.ID.Key, s.died()) {
				list = append(list, r)
			}
		}
	}
	return l.oldest(list, 1)
}

// oldest returns the oldest of the runs up to the limit, of those with that many
// crashes or more at most one: a key that kills its process must die alone.
func (l *lagging) oldest(list []*row, crashes int) []Run {
	slices.SortFunc(list, byDue)
	suspects := 0
	list = slices.DeleteFunc(list, func(r *row) bool {
		if r.Crashes < crashes {
			return false
		}
		suspects++
		return suspects > 1
	})
	return runs(list[:min(len(list), l.q.Limit)])
}
