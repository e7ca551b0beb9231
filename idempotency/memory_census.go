package idempotency

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// census is which sessions are live, and so which definitions are in force. The end of a lease changes that without a write, and a step
// back of the store's clock revives who was not marked: so it holds from one instant to another, and is taken anew outside of them.
type census struct {
	from, until time.Time // until is zero where it has to be taken
	live        []*session
	outdated    bool // what is in force has to be found anew, whoever lives

	unforced []*entry // those of another hash than the one in force, by job
}

// count takes the census where it does not hold now.
func (sp *space) count(now time.Time) {
	x := &sp.census
	if now.Before(x.until) && !now.Before(x.from) && !x.outdated {
		return
	}
	live, from, until := make([]*session, 0, len(x.live)+1), time.Time{}, now.Add(longestCensus)
	for _, s := range sp.sessions {
		switch {
		case !s.marked.IsZero():
		case s.live(now):
			live = append(live, s)
			until = earlier(until, s.expires)
		case s.expires.After(from):
			from = s.expires
		}
	}
	x.from, x.until = from, until
	if x.outdated || !slices.Equal(live, x.live) {
		x.live, x.outdated = live, false
		sp.force()
	}
}

// longestCensus is for how long one holds where nobody lives.
const longestCensus = time.Hour

// force finds the definition in force of each entry.
func (sp *space) force() {
	unforced := sp.census.unforced[:0]
	for _, e := range sp.entries {
		if e.InForce = sp.inForce(e.Job); e.InForce != e.Hash {
			unforced = append(unforced, e)
		}
	}
	slices.SortFunc(unforced, func(a, b *entry) int { return strings.Compare(a.Job, b.Job) })
	sp.census.unforced = unforced
}

// inForce is the hash of a job's definition in force; empty where no live session announces the job.
func (sp *space) inForce(job string) string {
	var best Definition
	for _, s := range sp.census.live {
		d, ok := s.defs[job]
		if !ok {
			continue
		}
		first := sp.seen[jobHash{job, d.Hash}] > sp.seen[jobHash{job, best.Hash}]
		if best.Hash == "" || d.Revision > best.Revision || d.Revision == best.Revision && first {
			best = d
		}
	}
	return best.Hash
}

// offer sets when an entry is next due; zero: never.
func (sp *space) offer(e *entry, next time.Time) {
	if !e.Next.IsZero() {
		i, _ := findNext(sp.offered, e)
		sp.offered = slices.Delete(sp.offered, i, i+1)
	}
	if e.Next = next; !next.IsZero() {
		i, _ := findNext(sp.offered, e)
		sp.offered = slices.Insert(sp.offered, i, e)
	}
}

func findNext(list []*entry, e *entry) (int, bool) {
	return slices.BinarySearchFunc(list, e, func(a, b *entry) int {
		return cmp.Or(a.Next.Compare(b.Next), strings.Compare(a.Job, b.Job))
	})
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
