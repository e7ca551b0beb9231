package membership

import (
	"slices"
	"time"
)

// missingFor is how long a member that vanished counts as missing: jobs.MissingFor.
const missingFor = 15 * time.Minute

// Missing returns the sorted names of the members that vanished within the last 15 minutes without leaving: their
// process died, or a partition lies between. A name of which a process lives, the same or another one, is back. One that had not
// announced anything before it vanished was no member yet. Only what this process has seen since its own
// start counts. It never blocks.
func (c *Cluster) Missing() []string { return c.view.missing(time.Now()) }

func (v *view) missing(now time.Time) []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var names []string
	for _, p := range v.lost {
		if p.state != Joining && now.Sub(p.at) < missingFor && !v.livesLocked(p.name) {
			names = append(names, p.name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (v *view) livesLocked(name string) bool {
	for _, p := range v.others {
		if p.name == name {
			return true
		}
	}
	return v.self.name == name
}
