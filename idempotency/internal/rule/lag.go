package rule

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// Lag chooses, of what lags, what one replica may take: the part of Lagging that no index decides. Entries
// come first, for they tell which jobs are known.
type Lag struct {
	Now        time.Time // the store's clock
	Partitions int
	Query      idempotency.LagQuery

	entries []idempotency.Entry
	known   map[string]bool // jobs whose entry has the hash that the session announced
}

// Entry considers an entry of a job for which the session announced that hash.
func (l *Lag) Entry(e idempotency.Entry, announced string) {
	if l.known == nil {
		l.known = make(map[string]bool)
	}
	l.known[e.Job] = e.Hash == announced
	come := !e.Next.IsZero() && l.may(RunKey(e), e.Next)
	if l.known[e.Job] && come || e.Hash != e.InForce && announced == e.InForce {
		l.entries = append(l.entries, e)
	}
}

// Entries are those that were chosen, the one that is due first before the others.
func (l *Lag) Entries() []idempotency.Entry {
	slices.SortFunc(l.entries, func(a, b idempotency.Entry) int {
		if a.Next.IsZero() != b.Next.IsZero() {
			return b.Next.Compare(a.Next) // those that are never due last
		}
		return cmp.Or(a.Next.Compare(b.Next), strings.Compare(a.Job, b.Job))
	})
	return l.entries
}

// Known reports whether the entry of the job has the hash that the session announced.
func (l *Lag) Known(job string) bool { return l.known[job] }

// Jobs are the known ones of which runs are asked for: no run of another needs to be offered.
func (l *Lag) Jobs() []string {
	var jobs []string
	for job, known := range l.known {
		if known && !slices.Contains(l.Query.Full, job) {
			jobs = append(jobs, job)
		}
	}
	slices.Sort(jobs)
	return jobs
}

// Waiting chooses among runs whose wake time has come, offered oldest first with it.
func (l *Lag) Waiting() *Runs { return &Runs{lag: l, crashes: 2} }

// Orphaned chooses among running runs whose session is not live, offered oldest first with when it stopped being so.
func (l *Lag) Orphaned() *Runs { return &Runs{lag: l, crashes: 1} }

// may reports whether this replica may act now on what lags since then: rank r after r x grace.
func (l *Lag) may(key string, since time.Time) bool {
	p := idempotency.Slot(key) % l.Partitions
	for r, b := range l.Query.Ranks {
		if len(b) > 0 && b[p/8]>>(p%8)&1 == 1 {
			return !l.Now.Before(since.Add(time.Duration(r) * l.Query.Grace))
		}
	}
	return false
}

// Runs are chosen up to the query's limit; of those with many crashes only the first: a key that kills its process must
// die alone.
type Runs struct {
	List []idempotency.Run

	lag      *Lag
	crashes  int // so many make a suspect
	suspects int
}

// Add considers a run that lags since then, and reports whether there are enough.
func (r *Runs) Add(x idempotency.Run, since time.Time) (enough bool) {
	if !r.lag.Known(x.ID.Job) || slices.Contains(r.lag.Query.Full, x.ID.Job) || !r.lag.may(x.ID.Key, since) {
		return false
	}
	if x.Crashes >= r.crashes {
		if r.suspects++; r.suspects > 1 {
			return false
		}
	}
	r.List = append(r.List, x)
	return len(r.List) == r.lag.Query.Limit
}
