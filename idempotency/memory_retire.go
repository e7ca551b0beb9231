package idempotency

import (
	"context"
	"maps"
	"slices"
	"time"
)

// longestCount bounds what one count of Retire adds: the fleet may have been down since the last one.
const longestCount = 2 * time.Minute

// Retire counts for how long nobody has announced a job, and ends what such a job left; see Entries.
func (m *Memory) Retire(ctx context.Context, s Session, after time.Duration) (list []Orphan, err error) {
	err = m.with(ctx, s, func(c *call) error {
		list = c.retire(after)
		return nil
	})
	return list, err
}

func (c *call) retire(after time.Duration) []Orphan {
	var passed time.Duration
	if !c.counted.IsZero() {
		passed = max(0, min(c.now.Sub(c.counted), longestCount))
	}
	c.counted = c.now
	var list []Orphan
	for _, job := range slices.Sorted(maps.Keys(c.entries)) {
		e := c.entries[job]
		switch {
		case c.entry(job).InForce != "":
			e.unannounced = 0
			continue
		case !e.Retired.IsZero():
			c.endJob(job) // what has come to wait since, or lost its session
			continue
		}
		e.unannounced += passed
		x := Orphan{Job: job, For: e.unannounced, Retired: e.unannounced >= after}
		if x.Retired {
			e.Retired = c.now
			c.endJob(job)
		}
		list = append(list, x)
	}
	return list
}

// endJob ends what waits for a replica that has the job's code.
func (c *call) endJob(job string) {
	for _, d := range slices.Clone(c.open) {
		if d.job == job {
			c.record(Range{Job: job, From: d.due, To: d.due, Count: 1, Outcome: Missed, Reason: "retired"})
			c.closeKeyed(d, c.now)
		}
	}
	for at, rows := range c.waiting {
		if at.job != job {
			continue
		}
		for _, r := range slices.Clone(rows) {
			c.end(r, Skipped, "retired", c.now)
		}
	}
	for _, s := range c.sessions {
		if s.live(c.now) {
			continue
		}
		for r := range s.runs {
			if r.ID.Job != job {
				continue
			}
			if s.marked.IsZero() {
				s.marked = c.now
			}
			c.end(r, Failed, "abandoned", c.now)
		}
	}
}
