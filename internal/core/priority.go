package core

import (
	"cmp"
	"slices"

	"github.com/belfry-go/belfry/idempotency"
)

// levels are the priorities of what waits for workers, highest first.
func (c *Core) levels() []int {
	if len(c.passes) == 0 && len(c.local) == 0 && len(c.backlog.left) == 0 && len(c.backlog.fresh) == 0 { // as nearly always
		return nil
	}
	var list []int
	add := func(level int) {
		if i, had := slices.BinarySearchFunc(list, level, descending); !had {
			list = slices.Insert(list, i, level)
		}
	}
	for _, p := range c.passes {
		add(p.job.Priority)
	}
	for i := 0; i < len(c.local); i = c.localEnd(c.local[i].job.Priority) {
		add(c.local[i].job.Priority)
	}
	for _, runs := range [][]idempotency.Run{c.backlog.left, c.backlog.fresh} {
		for _, r := range runs {
			if add(c.levelOf(r.ID.Job)); !c.ranked {
				break // all the same
			}
		}
	}
	return list
}

func descending(a, b int) int { return cmp.Compare(b, a) }

func byPriority(a, b *job) int { return descending(a.Priority, b.Priority) }

// levelOf is the priority of a job by its name. What is left of a removed one may be looked at with any other.
func (c *Core) levelOf(name string) int {
	if j := c.jobs[name]; j != nil {
		return j.Priority
	}
	return c.level
}

// setRanked notes whether the jobs differ in priority, and puts local runs in order, since a job may have another one now.
func (c *Core) setRanked() {
	c.ranked = false
	for i, j := range c.sortedJobs() {
		c.ranked = c.ranked || i > 0 && j.Priority != c.level
		c.level = j.Priority
	}
	slices.SortStableFunc(c.local, func(a, b localRun) int { return byPriority(a.job, b.job) })
}

// localStart and localEnd are where the local runs of a priority begin and end.
func (c *Core) localStart(level int) int {
	i, _ := slices.BinarySearchFunc(c.local, level, func(r localRun, level int) int { return descending(r.job.Priority, level) })
	return i
}

func (c *Core) localEnd(level int) int {
	i, _ := slices.BinarySearchFunc(c.local, level, func(r localRun, level int) int {
		if r.job.Priority >= level {
			return -1
		}
		return 1
	})
	return i
}

// roomNow is how many runs of a job may start now.
func (c *Core) roomNow(j *job) int { return min(c.workers.free(c), c.room(j)) }

// roomToOpen is how many of a job's runs may start in the opening of its due: of the free workers those that
// nothing of a higher priority waits for.
func (c *Core) roomToOpen(j *job) int {
	n := c.roomNow(j)
	if n == 0 || !c.ranked {
		return n
	}
	return min(n, max(c.workers.free(c)-c.wanted(j.Priority), 0))
}

// wanted is how many runs above a priority wait and could start, as far as that matters.
func (c *Core) wanted(level int) (n int) {
	for _, p := range c.passes {
		if p.job.Priority > level {
			n += min(len(p.buf), c.room(p.job))
		}
	}
	for _, runs := range [][]idempotency.Run{c.backlog.left, c.backlog.fresh} {
		for _, r := range runs {
			if j := c.jobs[r.ID.Job]; j != nil && j.Priority > level && c.room(j) > 0 {
				n++
			}
		}
	}
	for _, r := range c.local {
		if r.job.Priority <= level || n >= c.cfg.Concurrency {
			break
		}
		if c.room(r.job) > 0 {
			n++
		}
	}
	return n
}
