package scheduler

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// ErrNoStore is returned by the methods of a Client that has no store, or one that keeps no record for people.
var ErrNoStore = errors.New("scheduler: needs a store")

// Client reads and steers a cluster through its store alone; it runs nothing, and needs no replica to be up. A Scheduler
// has one. What it changes takes effect on every replica within two sweeps, and is kept over
// restarts. Its methods are safe for concurrent use, and end with their contexts.
type Client struct {
	namespace string
	store     idempotency.Store
}

// By says who asks, and why; both are recorded.
type By struct {
	Actor  string // required, such as a name or an address
	Reason string
	// Request names what is asked, so that asking again changes nothing: [A-Za-z0-9._-]{1,36}. Empty: a new one each time.
	Request string
}

// JobStatus is a job as the store has it.
type JobStatus struct {
	Name, Schedule string
	Keyed          bool
	Efficiency     bool      // the store has no record of its runs
	Next           time.Time // its next due; zero: none, or nobody can tell, since the schedule is a program's own
	Opened         time.Time // every due up to here is decided
	PausedFrom     time.Time // zero: it is not paused
	Retired        time.Time // zero: it is not
	Announced      []string  // live replicas that have the job's code, by name
	Last           *idempotency.Run
}

// Gap is a stretch of dues of which the store has no record.
type Gap struct {
	Job      string
	From, To time.Time // the first due and the last
	Count    int64
}

// Explanation says what became of an occurrence, and why.
type Explanation struct {
	ID        idempotency.ID
	Run       *idempotency.Run // nil: there is no row
	Sentences []string         // for people, in the order to read them
}

// NewClient returns a client of the namespace in a store, which stays the caller's to close.
func NewClient(namespace string, store idempotency.Store) (*Client, error) {
	return &Client{namespace: namespace, store: store}, nil
}

// Jobs returns all jobs that the store knows, by name; retired ones too.
func (c *Client) Jobs(ctx context.Context) ([]JobStatus, error) { return nil, ErrNoStore }

// Runs yields runs; Filter.Namespace is the client's whatever it says.
func (c *Client) Runs(ctx context.Context, f idempotency.Filter) iter.Seq2[idempotency.Run, error] {
	return func(yield func(idempotency.Run, error) bool) { yield(idempotency.Run{}, ErrNoStore) }
}

// Commands yields what people asked for, newest first; of all jobs where job is empty.
func (c *Client) Commands(ctx context.Context, job string) iter.Seq2[idempotency.Command, error] {
	return func(yield func(idempotency.Command, error) bool) { yield(idempotency.Command{}, ErrNoStore) }
}

// Explain says what became of one occurrence. An empty key is the job's name.
func (c *Client) Explain(ctx context.Context, id idempotency.ID) (Explanation, error) {
	return Explanation{}, ErrNoStore
}

// Gaps yields the stretches of dues in [from, to) that left no record, by the schedule in force now.
func (c *Client) Gaps(ctx context.Context, job string, from, to time.Time) iter.Seq2[Gap, error] {
	return func(yield func(Gap, error) bool) { yield(Gap{}, ErrNoStore) }
}

// Trigger asks for a run now. A nil payload is the job's own. For a job with keys an empty key asks for all of them.
func (c *Client) Trigger(ctx context.Context, job, key string, payload []byte, by By) (idempotency.Command, error) {
	return idempotency.Command{}, ErrNoStore
}

// Pause makes dues from now on be recorded as skipped (paused), until Resume. Runs that have begun or wait go on.
func (c *Client) Pause(ctx context.Context, job string, by By) (idempotency.Command, error) {
	return idempotency.Command{}, ErrNoStore
}

// Resume ends a pause.
func (c *Client) Resume(ctx context.Context, job string, by By) (idempotency.Command, error) {
	return idempotency.Command{}, ErrNoStore
}

// SkipNext makes the job's next due, or one key's run of it, be recorded as skipped (by hand). The record's ID.Due is that due.
func (c *Client) SkipNext(ctx context.Context, job, key string, by By) (idempotency.Command, error) {
	return idempotency.Command{}, ErrNoStore
}

// Backfill makes the job's dues in [from, to) run that were missed, skipped or never decided, by the schedule in force now; 1,000 at most.
func (c *Client) Backfill(ctx context.Context, job, key string, from, to time.Time, by By) (idempotency.Command, error) {
	return idempotency.Command{}, ErrNoStore
}

// Cancel ends a run that waits or is at work.
func (c *Client) Cancel(ctx context.Context, id idempotency.ID, by By) (idempotency.Command, error) {
	return idempotency.Command{}, ErrNoStore
}

// Retry makes a failed run wait to be run again, with all its attempts.
func (c *Client) Retry(ctx context.Context, id idempotency.ID, by By) (idempotency.Command, error) {
	return idempotency.Command{}, ErrNoStore
}
