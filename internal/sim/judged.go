package sim

import (
	"context"
	"slices"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/internal/sim/oracle"
	"github.com/belfry-go/belfry/jobs"
)

// Judged is a store in memory that tells an oracle what it answers: for real replicas, with goroutines, in a bubble of fake time.
// What they do in Namespace is judged, and no call waits for anything but another call. Safe for concurrent use.
type Judged struct {
	tap
	idempotency.History
	memory *idempotency.Memory
	keyed  func(job string) bool
}

var (
	_ idempotency.Store   = (*Judged)(nil)
	_ idempotency.History = (*Judged)(nil)
	_ idempotency.Control = (*Judged)(nil)
	_ idempotency.Leaders = (*Judged)(nil)
)

// NewJudged returns an empty store with the clock of the process, whose oracle judges by the rules. Each job has one plan,
// whatever its versions, and keys or none.
func NewJudged(rules oracle.Rules, plan func(job string) (oracle.Schedule, oracle.Choice), keyed func(job string) bool) *Judged {
	m := idempotency.NewMemory(nil)
	j := &Judged{History: m, memory: m, keyed: keyed}
	j.tap = tap{Store: m, oracle: oracle.New(rules), clock: time.Now, partitions: rules.Partitions}
	j.define = func(boot, job, hash string) {
		schedule, choice := plan(job)
		j.oracle.Define(hash, schedule)
		j.oracle.Has(boot, job, hash, choice)
	}
	return j
}

// Submit applies a command of a person.
func (j *Judged) Submit(ctx context.Context, namespace string, c idempotency.Command) (idempotency.Command, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	done, err := j.memory.Submit(ctx, namespace, c)
	return judge(&j.tap, "Submit", done, err, func(x *oracle.Oracle) {
		id, all := done.ID, c.ID.Key == "" && j.keyed(c.ID.Job)
		if id.Key == "" && !all {
			id.Key = id.Job
		}
		c.At = done.At
		tellCommand(x, c, id, all)
	})
}

// Started tells that a handler starts.
func (j *Judged) Started(o jobs.Occurrence) {
	j.tell(func(x *oracle.Oracle) { x.Started(idOf(o), o.Fence, o.Attempt) })
}

// Returned tells how a handler ended, or what ended its context.
func (j *Judged) Returned(o jobs.Occurrence, end oracle.End) {
	j.tell(func(x *oracle.Oracle) { x.Returned(o.Fence, end) })
}

// Present tells that a key of a job is there from now on.
func (j *Judged) Present(job, key string) {
	j.tell(func(x *oracle.Oracle) { x.Present(job, key, true) })
}

func (j *Judged) tell(what func(*oracle.Oracle)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.oracle.At(j.now())
	what(j.oracle)
}

// Settle demands that everything due up to limit has ended by now, and that the store holds what it answered.
func (j *Judged) Settle(limit time.Time) (err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.oracle.At(j.now())
	j.oracle.Settled(limit)
	rows := slices.Collect(storedIn(j.memory, func(e error) { err = e }))
	if err == nil { // else what was not listed would be missing
		j.oracle.Audit(slices.Values(rows))
	}
	return err
}

// Violations are the laws that were broken so far.
func (j *Judged) Violations() []oracle.Violation {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.oracle.Violations()
}
