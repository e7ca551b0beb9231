package scheduler

import (
	"context"
	"errors"
	"fmt"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

// ErrDeposed is the cause of a role's ended context (context.Cause) where its replica gave leadership up or lost it, unless
// Config.Elector ended the term: then the cause is the elector's.
var ErrDeposed = errors.New("scheduler: this replica does not lead any more")

// OnLeader adds a long-lived role that only the leader has, such as to poll a queue, before or during Run; without a Run it does nothing.
// f is called in each term of this replica; its context ends when the term is over (its Err looks at the clocks itself, so that a process which
// was frozen sees that at once; Done and derived contexts may be a moment late), and it must return soon
// then: the next leader is not waited for longer than Lease/2, and what has not returned by then is left behind, which the log
// tells. A receiver that remembers the highest term it has seen can refuse one that does not
// know yet that it is over. An f that returns nil is done for the term; one that returns an error or panics is called
// again in the same term, after a pause that grows from about a second to a minute at most. A role is never called twice at once on one replica: one
// that was left behind is called in a later term when it has returned. A name that was added before is refused, and so is a
// Scheduler that knows no leader: one without a Config.Elector and a Store, and one whose Store cannot keep who leads
// (idempotency.Leaders). All replicas that have the role, or a job of jobs.Leader, may be elected.
func (s *Scheduler) OnLeader(name string, f func(ctx context.Context, term int64) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return errEnded
	}
	if err := jobs.ValidateName(name); err != nil {
		return fmt.Errorf("scheduler: role of the leader: %w", err)
	}
	if f == nil {
		return fmt.Errorf("scheduler: role %q of the leader: no function; pass what the leader is to do", name)
	}
	if err := s.cfg.checkLeaders(); err != nil {
		return fmt.Errorf("scheduler: role %q of the leader: %w", name, err)
	}
	if err := s.roles.add(name, f); err != nil {
		return err
	}
	s.tellLocked()
	return nil
}

// checkLeaders refuses where nobody could ever lead, or where the store could not say who does.
func (c Config) checkLeaders() error {
	_, keeps := c.Store.(idempotency.Leaders)
	switch {
	case c.Store == nil && c.Elector == nil:
		return errors.New("nobody is ever elected; set Config.Elector, or a Config.Store that elects (idempotency.Leaders)")
	case c.Store != nil && !keeps:
		return fmt.Errorf("%T cannot keep who leads; use a Config.Store that implements idempotency.Leaders", c.Store)
	}
	return nil
}

// checkLeader refuses a job of the leader where nobody leads.
func (c Config) checkLeader(j jobs.Job) error {
	if j.Placement != jobs.Leader {
		return nil
	}
	if err := c.checkLeaders(); err != nil {
		return fmt.Errorf("scheduler: job %q: its Placement is jobs.Leader, and %w", j.Name, err)
	}
	if j.HandOverAfter > 0 && c.Store == nil {
		return fmt.Errorf("scheduler: job %q: HandOverAfter needs a store, which tells all replicas that nobody leads; set Config.Store, or leave HandOverAfter 0", j.Name)
	}
	return nil
}

// Leader says who leads, since when and in which term, or who led last, and why the last change was. A leader that died leads until its session
// has ended. Where it was never asked for, the zero Leader. A store that knows no leaders (idempotency.Leaders) is an error that wraps ErrNoStore.
func (c *Client) Leader(ctx context.Context) (idempotency.Leader, error) {
	if c.leaders == nil {
		if c.lacks != nil {
			return idempotency.Leader{}, c.lacks
		}
		return idempotency.Leader{}, fmt.Errorf("%w that keeps who leads; %T does not implement idempotency.Leaders", ErrNoStore, c.history)
	}
	l, err := c.leaders.Leader(ctx, c.namespace)
	if err != nil {
		return l, fmt.Errorf("scheduler: read who leads namespace %q: %w", c.namespace, err)
	}
	return l, nil
}
