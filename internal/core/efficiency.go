package core

import (
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// Efficiency jobs are announced to the store where there is one, so that people see them, pause them and trigger runs of them. Their dues
// are not decided there: Opened of such an entry is zero. What a person triggered is an ordinary run of the store's, which waits and is
// claimed and finished there.

// decideLocal puts our definition of an efficiency job in force; nothing else of its entry is decided. Where correctness
// replicas have opened it before us, what they opened stays.
func (c *Core) decideLocal(j *job) {
	if j.entry.Hash == j.hash {
		return
	}
	d := idempotency.Decision{Seen: j.entry, Definition: j.definition(), Opened: j.entry.Opened, Keyed: j.keyed()}
	j.deciding = true
	c.decides.add(d, func(_ idempotency.Decision, a idempotency.Decided) {
		j.deciding = false
		if c.jobs[j.Name] == j {
			c.see(j, a.Entry)
		}
	}, func(idempotency.Decision) { j.deciding = false })
}

// inPause says whether a due lies in an entry's last pause.
func inPause(e idempotency.Entry, due time.Time) bool {
	return !e.PausedFrom.IsZero() && !due.Before(e.PausedFrom) && (e.PausedUntil.IsZero() || due.Before(e.PausedUntil))
}
