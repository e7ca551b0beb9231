package schedulertest

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/scheduler"
)

// Run is what became of an occurrence.
type Run struct {
	// Occurrence has the last Attempt that began and its Fence. Its Payload is that of a run by hand; nil: the job's.
	jobs.Occurrence

	// Replica is the name of the one that had it last; empty: none had. Started is when that claimed it; zero: none did. Of a run
	// that is failed (abandoned) they can be who recorded that and when, since whoever does claims it once more, but starts nothing.
	Replica string
	Started time.Time

	// Outcome is how it ended; idempotency.Wait while it waits, for another attempt or its turn; 0 while it
	// is at work, or since its replica crashed.
	Outcome idempotency.Outcome
	Reason  string // such as exhausted or overlap; empty where it is done
	Text    string // of the last error, as it is recorded
}

// Runs returns what the store has recorded of runs, and the runs of efficiency jobs that began on any replica, of which the store knows
// nothing. They are in the order of (due, job, key, request, replica). Dues that were missed or
// skipped without a run of their own are not among them: Client tells of those.
func (c *Cluster) Runs() []Run {
	c.t.Helper()
	synctest.Wait()
	var list []Run
	for r, err := range c.store.List(c.context(), idempotency.Filter{Namespace: c.config.Namespace}) {
		if err != nil {
			c.t.Fatal(err)
		}
		list = append(list, c.run(r))
	}
	c.mu.Lock()
	for _, r := range c.local {
		list = append(list, *r)
	}
	c.mu.Unlock()
	slices.SortFunc(list, func(a, b Run) int {
		return cmp.Or(a.Due.Compare(b.Due), strings.Compare(a.Job, b.Job), strings.Compare(a.Key, b.Key),
			strings.Compare(a.Request, b.Request), strings.Compare(a.Replica, b.Replica), a.Started.Compare(b.Started))
	})
	return list
}

// run is a row of the store.
func (c *Cluster) run(r idempotency.Run) Run {
	out := Run{
		Occurrence: jobs.Occurrence{
			Namespace: c.config.Namespace, Job: r.ID.Job, Key: r.ID.Key, Due: r.ID.Due, Request: r.ID.Request,
			Attempt: r.Attempt, Fence: r.Fence, Term: r.Term, Payload: r.Payload,
		},
		Replica: r.Replica, Started: r.Started, Outcome: r.Outcome, Reason: r.Reason, Text: r.Text,
	}
	switch r.State {
	case idempotency.Running:
		out.Attempt++
	case idempotency.Waiting:
		out.Outcome = idempotency.Wait
	}
	return out
}

// localKey names a run of an efficiency job on one replica's process.
type localKey struct {
	boot, job, key, request string
	due                     int64 // Unix seconds
}

func (p *process) localKey(o jobs.Occurrence) localKey {
	return localKey{p.seat.boot, o.Job, o.Key, o.Request, o.Due.Unix()}
}

// beginLocalLocked notes the first attempt of an efficiency run, or the next one.
func (c *Cluster) beginLocalLocked(p *process, o jobs.Occurrence) {
	k := p.localKey(o)
	o.Payload = nil // as for the others, whose rows have it only where it is not the job's
	c.local[k] = &Run{Occurrence: o, Replica: p.name, Started: time.Now().UTC()}
}

// finished notes how an attempt of an efficiency run ended.
func (p *process) finished(_ context.Context, f scheduler.Finished) {
	if f.Fence != 0 || p.crashed.Load() {
		return
	}
	c := p.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.local[p.localKey(f.Occurrence)]
	if r == nil || r.Attempt != f.Attempt { // the hook tells late, and the next one has begun
		return
	}
	r.Outcome, r.Reason = f.Outcome, f.Reason
	if f.Err != nil {
		r.Text = f.Err.Error()
	}
}
