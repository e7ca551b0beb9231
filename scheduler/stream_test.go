package scheduler

import (
	"context"
	"testing"

	"github.com/belfry-go/belfry/internal/core"
	"github.com/belfry-go/belfry/jobs"
)

// Add and Remove rewrite every job of the core in place, so what an action
// points to must be read before the next step. Fails under -race only.
func TestStreamReadsJobLate(t *testing.T) {
	r := &runner{mail: newMailbox(), streams: map[int64]*stream{}}
	r.base, r.end = context.WithCancel(context.Background())
	j := &jobs.Job{Name: "j", Keys: jobs.KeyList("k")}
	r.openStream(core.OpenStream{Stream: 1, Job: j, Range: jobs.KeyRange{Count: 8}})
	j.Keys = jobs.KeyList("k") // as core.setJobs does
	r.end()
	r.closeStream(1)
	r.users.Wait()
}
