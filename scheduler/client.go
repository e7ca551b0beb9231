package scheduler

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

// ErrNoStore is returned by the methods of a Client that has no store, or one that keeps no record for people.
var ErrNoStore = errors.New("scheduler: needs a store")

// Client reads and steers a cluster through its store alone; it runs nothing, and needs no replica to be up. A Scheduler
// has one. What it changes takes effect on every replica within two sweeps, and is kept over
// restarts. Its methods are safe for concurrent use, make a few calls of the store each, Jobs one for each job, and
// end with their contexts.
//
// Errors wrap ErrNoStore, ErrUnknown where the store knows no such job, idempotency.ErrRejected where asking again would not
// help, or the store's own: then what was asked may have happened, and asking again with the same By.Request is safe. A
// sequence ends after its first error.
type Client struct {
	namespace string
	history   idempotency.History
	control   idempotency.Control
	leaders   idempotency.Leaders // nil: the store keeps none
	lacks     error               // why there is neither; nil: there are both
}

// By says who asks, and why; both are recorded.
type By struct {
	Actor  string // required, such as a name or an address: 1 to 255 bytes
	Reason string // at most 64 KiB
	// Request names what is asked, so that asking again changes nothing: [A-Za-z0-9._-]{1,36}. Empty: a new one each time.
	// Something else under the same name is rejected; Reason and a payload are not compared.
	Request string
}

// JobStatus is a job as the store has it.
type JobStatus struct {
	Name, Schedule string
	Keyed          bool
	Leader         bool             // the leader runs it (jobs.Leader)
	Efficiency     bool             // the store has no record of its scheduled runs
	Next           time.Time        // its next due; zero: none, or nobody can tell, since the schedule is a program's own, or the job is retired
	Opened         time.Time        // every due up to here is decided; zero for an efficiency job
	PausedFrom     time.Time        // dues from here on are skipped; zero: it is not paused. Earlier than the last Pause where dues of the pause before were not decided then
	Retired        time.Time        // zero: it is not
	Announced      []string         // live replicas that have the job's code, of any version, by name
	Last           *idempotency.Run // the run of the newest due that has come; nil: there is none
}

// NewClient returns a client of the namespace in a store, which stays the caller's to close. A store that is nil, or keeps no
// record for people (idempotency.History and idempotency.Control), is refused with an error that wraps ErrNoStore.
func NewClient(namespace string, store idempotency.Store) (*Client, error) {
	c := newClient(namespace, store)
	if err := jobs.ValidateName(namespace); err != nil {
		return nil, errors.Join(fmt.Errorf("scheduler: namespace: %w", err), c.lacks)
	}
	if c.lacks != nil {
		return nil, c.lacks
	}
	return c, nil
}

// newClient returns a client whose methods say what its store lacks.
func newClient(namespace string, store idempotency.Store) *Client {
	c := &Client{namespace: namespace}
	if store == nil {
		c.lacks = fmt.Errorf("%w to read and steer a cluster through, and there is none; give it the one that the replicas share", ErrNoStore)
		return c
	}
	var reads, steers bool
	c.history, reads = store.(idempotency.History)
	c.control, steers = store.(idempotency.Control)
	c.leaders, _ = store.(idempotency.Leaders)
	switch {
	case !reads:
		c.lacks = fmt.Errorf("%w that keeps a record for people; %T does not implement idempotency.History", ErrNoStore, store)
	case !steers:
		c.lacks = fmt.Errorf("%w that takes commands of people; %T does not implement idempotency.Control", ErrNoStore, store)
	}
	return c
}

// Runs yields runs in the order of (due, job, key, request), with Filter.Newest in the reverse order; all of them where Filter.Limit is
// 0. Filter.Namespace is the client's whatever it says.
func (c *Client) Runs(ctx context.Context, f idempotency.Filter) iter.Seq2[idempotency.Run, error] {
	f.Namespace = c.namespace
	return listed(ctx, c, f.Job, "runs", func() iter.Seq2[idempotency.Run, error] { return c.history.List(ctx, f) })
}

// Commands yields what people asked for, newest first; of all jobs where job is empty.
func (c *Client) Commands(ctx context.Context, job string) iter.Seq2[idempotency.Command, error] {
	return listed(ctx, c, job, "commands", func() iter.Seq2[idempotency.Command, error] {
		return c.history.Commands(ctx, c.namespace, job)
	})
}

// listed yields a sequence of the store's. Where that has nothing since there is no such job, it says so.
func listed[T any](ctx context.Context, c *Client, job, what string, list func() iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		if c.lacks != nil {
			yield(none, c.lacks)
			return
		}
		empty := true
		for x, err := range list() {
			if empty = false; err != nil {
				yield(none, fmt.Errorf("scheduler: list %s: %w", what, err))
				return
			}
			if !yield(x, nil) {
				return
			}
		}
		if !empty || job == "" {
			return
		}
		if _, _, err := c.look(ctx, job); err != nil {
			yield(none, err)
		}
	}
}
