package scheduler

import (
	"fmt"
	"time"

	"github.com/belfry-go/belfry/jobs"
)

// maxSpreadDues bounds how many dues of a job with keys are under way at once because their starts are spread over more
// than the job's interval: each of them has passes of its own, and is read at each sweep.
const maxSpreadDues = 100

// checkSpread refuses a Spread that could not be kept.
func (c Config) checkSpread(j jobs.Job) error {
	if room := c.Horizon - c.MissedAfter - c.Lease; j.Guarantee == jobs.Correctness && j.Spread > max(room, 0) {
		return fmt.Errorf("scheduler: job %q: Spread %v leaves less than MissedAfter %v and Lease %v until Horizon %v, after which nothing is claimed; shorten Spread to %v, or set Config.Horizon to %v or more and Config.Retention above it",
			j.Name, j.Spread, c.MissedAfter, c.Lease, c.Horizon, max(room, 0), j.Spread+c.MissedAfter+c.Lease)
	}
	if j.Keys == nil || j.Spread == 0 {
		return nil
	}
	schedule, n := j.Schedule.For(j.Name), 0
	first, ok := schedule.Next(time.Now())
	if !ok {
		return nil
	}
	for range schedule.All(first, first.Add(j.Spread)) {
		if n++; n >= maxSpreadDues {
			return fmt.Errorf("scheduler: job %q: Spread %v covers %d dues of its schedule or more, which would all be open at once; shorten Spread", j.Name, j.Spread, maxSpreadDues)
		}
	}
	return nil
}
