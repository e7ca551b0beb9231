package core

import (
	"time"

	"github.com/belfry-go/belfry/jobs"
)

// Why a local due does not run.
const (
	causePosture = "posture"
	causePaused  = "paused"
	causeLeader  = "leader" // the job is the leader's, and we do not lead any more
)

// quiet says why a job starts no local run of a due now; empty: it does.
func (c *Core) quiet(j *job, due time.Time) string {
	switch {
	case c.holds(j):
		return causePosture
	case inPause(j.entry, due):
		return causePaused
	}
	return ""
}

// holds says that members are missing, and the job's posture is not to run then.
func (c *Core) holds(j *job) bool {
	missing, seen := c.members.Missing, c.members.InSight
	switch j.Posture {
	case jobs.PostureHold:
		return missing > 0
	case jobs.PostureMajority:
		return missing > 0 && 2*seen <= seen+missing
	}
	return false
}

// staysQuiet refuses what is to start of a due of a job that is quiet: once for each due, in the name of the job.
func (c *Core) staysQuiet(j *job, due time.Time) bool {
	why := c.quiet(j, due)
	if why == "" {
		return false
	}
	if !j.refused.Equal(due) {
		j.refused = due
		c.refuseLocal(localRun{job: j, key: j.Name, due: due}, why)
	}
	return true
}
