package scheduler

import (
	"context"
	"errors"

	"github.com/belfry-go/belfry/idempotency"
)

// OnLeader adds a long-lived role that only the leader has, such as to poll a queue, before or during Run; without a Run it does nothing.
// f is called in each term of this replica; its context ends when the term is over, and it must return soon
// then: the next leader is not waited for longer than Lease/2. A receiver that remembers the highest term it has seen can refuse one that does not
// know yet that it is over. An f that returns nil is done for the term; one that returns an error or panics is called
// again in the same term, after a pause that grows from a second to a minute. A role is never called twice at once on one replica. A name that was added before is refused, and so is a
// Scheduler whose Config has neither an Elector nor a Store that can elect (idempotency.Leaders). All replicas that have the role, or a job of
// jobs.Leader, may be elected.
func (s *Scheduler) OnLeader(name string, f func(ctx context.Context, term int64) error) error {
	return errors.New("scheduler: roles of the leader are not built yet")
}

// Leader says who leads, since when and in which term, or who led last, and why the last change was. Where it was never asked for, the zero
// Leader. A store that knows no leaders (idempotency.Leaders) is an error that wraps ErrNoStore.
func (c *Client) Leader(ctx context.Context) (idempotency.Leader, error) {
	return idempotency.Leader{}, ErrNoStore
}
