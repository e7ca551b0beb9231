package rule

import (
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// Retired is why something ends that waited for a replica with the job's code.
const Retired = "retired"

// longestCount bounds what one count of Retire adds: the fleet may have been down since the last one.
const longestCount = 2 * time.Minute

// Passed is what a count adds; the zero counted, the time of the last count, is none.
func Passed(counted, now time.Time) time.Duration {
	if counted.IsZero() {
		return 0
	}
	return max(0, min(now.Sub(counted), longestCount))
}

// Unannounced answers for a job that nobody announces and that was not retired before, from what was counted before this count.
func Unannounced(job string, counted, passed, after time.Duration) idempotency.Orphan {
	counted += passed
	return idempotency.Orphan{Job: job, For: counted, Retired: counted >= after}
}

// RetiredDue is the range of a due that a retired job left open.
func RetiredDue(job string, due time.Time) idempotency.Range {
	return idempotency.Range{Job: job, From: due, To: due, Count: 1, Outcome: idempotency.Missed, Reason: Retired}
}
