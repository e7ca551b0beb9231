package core

import (
	"slices"

	"github.com/belfry-go/belfry/idempotency"
)

// keyOfJob is what one run at a time may have.
type keyOfJob struct{ job, key string }

// backlog are the runs that are to be taken up as workers become free.
type backlog struct {
	// left is what was left lying as of the last sweep, and what was opened here late since; orphans first, then oldest
	// due first.
	left []idempotency.Run

	// fresh is what was due just now and found no worker, oldest first: every other worker goes to these, or to
	// the keys of such a due, so that nobody waits for all that a long outage has left. It is bounded; what does not fit in, a sweep brings.
	fresh   []idempotency.Run
	nowLast bool

	// taken counts the runs of a key that this session has or is taking up; behind are those that wait until there is
	// none, oldest first. No sweep shows these while one runs.
	taken  map[keyOfJob]int
	behind map[keyOfJob][]idempotency.Run
}

// reset forgets everything: of a lost session nothing is ours.
func (b *backlog) reset() {
	*b = backlog{taken: map[keyOfJob]int{}, behind: map[keyOfJob][]idempotency.Run{}}
}

// offer adds a run that was opened here, and waits.
func (b *backlog) offer(r idempotency.Run, late bool, most int) {
	k := keyOfJob{r.ID.Job, r.ID.Key}
	switch {
	case b.taken[k] > 0:
		b.behind[k] = append(b.behind[k], r)
	case late:
		b.left = append(b.left, r)
	case len(b.fresh) < most:
		b.fresh = append(b.fresh, r)
	}
}

// has says that a run of a job is at hand.
func (b *backlog) has(job string) bool {
	of := func(r idempotency.Run) bool { return r.ID.Job == job }
	return slices.ContainsFunc(b.left, of) || slices.ContainsFunc(b.fresh, of)
}

// waits says that a run of a key is at hand.
func (b *backlog) waits(k keyOfJob) bool {
	of := func(r idempotency.Run) bool { return r.ID.Job == k.job && r.ID.Key == k.key }
	return slices.ContainsFunc(b.left, of) || slices.ContainsFunc(b.fresh, of)
}

// swept replaces what was left lying by what a sweep brought, but for the jobs that it did not ask for: of these is kept
// what was there.
func (b *backlog) swept(runs []idempotency.Run, excluded []string) {
	if len(excluded) == 0 {
		b.left = runs
		return
	}
	kept := slices.DeleteFunc(b.left, func(r idempotency.Run) bool { return !slices.Contains(excluded, r.ID.Job) })
	b.left = append(kept, runs...)
}

// take notes that a run of a key is ours, or about to be.
func (b *backlog) take(k keyOfJob) { b.taken[k]++ }

// free notes that it is not any more; then comes what waits behind it.
func (b *backlog) free(k keyOfJob) {
	if b.taken[k]--; b.taken[k] > 0 {
		return
	}
	delete(b.taken, k)
	if q := b.behind[k]; len(q) > 0 {
		b.left = slices.Insert(b.left, 0, q[0])
		b.behind[k] = q[1:]
		if len(q) == 1 {
			delete(b.behind, k)
		}
	}
}
