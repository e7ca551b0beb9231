package core

import (
	"bytes"
	"slices"

	"github.com/belfry-go/belfry/jobs"
)

// everywhere says that each replica that serves runs the job for itself: no rank is asked for.
func (j *job) everywhere() bool { return j.Placement == jobs.EveryReplica }

// localMask are the partitions of which this replica runs the keys of a local job now; nil: none. It is the caller's.
func (c *Core) localMask(j *job) []byte {
	if j.everywhere() {
		if c.said.State != Serving {
			return nil
		}
		return bytes.Repeat([]byte{0xff}, c.cfg.Partitions/8)
	}
	if ranks := c.ranksOf(j); len(ranks) > 0 {
		return slices.Clone(ranks[0])
	}
	return nil
}

// runsLocal says whether this replica runs the dues of a local job without keys now.
func (c *Core) runsLocal(j *job) bool {
	if j.everywhere() {
		return c.said.State == Serving
	}
	return c.rankOf(j) == 0
}
