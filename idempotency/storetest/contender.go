package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

// contender is one replica of Stress, through all its processes and sessions.
type contender struct {
	*stress
	store Store
	name  int
	rng   *rand.Rand
	boots int
	nonce int64
	lease time.Duration
	now   *replica // its session; nil: none
	vain  int      // sessions in a row that died before a claim was answered
}

// work claims every run once, in an order of its own, sweeps between, and then until none is left.
func (c *contender) work(ctx context.Context) error {
	order := slices.Clone(c.keys)
	c.rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	for batch := range slices.Chunk(order, stressBatch) {
		if err := c.claim(ctx, repeat(len(batch), func(i int) idempotency.Claim { return c.insert(batch[i]) })); err != nil {
			return err
		}
		if c.rng.IntN(4) == 0 {
			if err := c.sweep(ctx); err != nil {
				return err
			}
		}
	}
	for {
		if err := c.sweep(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.done:
			return c.leave(ctx)
		case <-time.After(c.lease / 4):
		}
	}
}

func (c *contender) insert(k string) idempotency.Claim {
	return idempotency.Claim{ID: key(k, c.due), Hash: "h1", Exclusive: true}
}

// open opens a session where there is none. On a slow machine the lease may be too short even to claim; then it grows.
func (c *contender) open(ctx context.Context) error {
	for c.now == nil {
		if c.vain == 3 {
			c.vain, c.lease = 0, 2*c.lease
		}
		s, _, err := c.store.OpenSession(ctx, idempotency.Opening{
			Namespace: namespace, Replica: fmt.Sprint(c.name), Boot: fmt.Sprint(c.name, ".", c.boots), Partitions: partitions,
			Lease: c.lease, Horizon: 90 * time.Minute, Retention: 2 * time.Hour,
		})
		if err != nil {
			return fmt.Errorf("open session: %w", err)
		}
		c.vain++
		_, err = c.store.Declare(ctx, s, 0, []idempotency.Declaration{c.definition(keyed, "h1")})
		if err == nil {
			c.now = &replica{session: s}
		} else if !errors.Is(err, idempotency.ErrSessionDead) {
			return fmt.Errorf("declare: %w", err)
		}
		c.mu.Lock()
		c.sessions++
		c.mu.Unlock()
	}
	return nil
}

// live makes a call under a session, and again under a new one where that is dead.
func (c *contender) live(ctx context.Context, what string, call func(idempotency.Session) error) error {
	for {
		if err := c.open(ctx); err != nil {
			return err
		}
		err := call(c.now.session)
		switch {
		case errors.Is(err, idempotency.ErrSessionDead):
			c.now = nil
		case err != nil:
			return fmt.Errorf("%s: %w", what, err)
		default:
			return nil
		}
	}
}

// claim claims until it is answered, and then holds what it won.
func (c *contender) claim(ctx context.Context, batch []idempotency.Claim) error {
	ids := repeat(len(batch), func(i int) idempotency.ID { return batch[i].ID })
	before := c.before(ids)
	var answers []idempotency.Answer
	err := c.live(ctx, "claim", func(s idempotency.Session) (err error) {
		c.nonce++
		answers, err = c.store.Claim(ctx, s, c.nonce, batch)
		return err
	})
	if err != nil {
		return err
	}
	c.vain = 0
	won, holder, err := c.claimed(batch, before, answers)
	if err != nil || len(won) == 0 {
		return err
	}
	return c.hold(ctx, won, holder)
}

// hold does what holders do. The first holder of all crashes, and the second is paused until it has been overtaken,
// so that both were seen however few runs there are.
func (c *contender) hold(ctx context.Context, won []idempotency.Finish, holder int) error {
	x := c.rng.IntN(100)
	switch {
	case holder == 1 || holder > 2 && x < crashing:
		c.now = nil
		c.boots++
		return nil
	case holder == 2 || x < crashing+pausing:
		if err := c.pause(ctx, won, holder == 2); err != nil {
			return err
		}
	case x < crashing+pausing+renewing:
		_, err := c.store.RenewSession(ctx, c.now.session)
		if errors.Is(err, idempotency.ErrSessionDead) {
			c.now = nil
		} else if err != nil {
			return fmt.Errorf("renew: %w", err)
		}
	}
	return c.finish(ctx, won)
}

// pause is what a stopped process is to its store: for twice its lease nothing comes.
func (c *contender) pause(ctx context.Context, held []idempotency.Finish, overtaken bool) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(2 * c.lease):
		}
		if !overtaken || c.overtaken(held) {
			return nil
		}
	}
}

// finish ends what is held, each with its effect where the driver has that.
func (c *contender) finish(ctx context.Context, held []idempotency.Finish) error {
	before := c.before(repeat(len(held), func(i int) idempotency.ID { return held[i].ID }))
	if c.Effect == nil {
		answers, err := c.store.Finish(ctx, namespace, held)
		if err != nil {
			return fmt.Errorf("finish: %w", err)
		}
		for i, a := range answers {
			err = errors.Join(err, c.finished(held[i], before[i], a != idempotency.Fenced))
		}
		return err
	}
	for i, f := range held {
		err := c.Effect.Apply(ctx, c.store, jobs.Occurrence{
			Namespace: namespace, Job: f.ID.Job, Key: f.ID.Key, Due: f.ID.Due, Attempt: 1, Fence: f.Fence,
		})
		overtaken := errors.Is(err, jobs.ErrOvertaken)
		if err != nil && !overtaken {
			return fmt.Errorf("effect: %w", err)
		}
		if err := c.finished(f, before[i], !overtaken); err != nil {
			return err
		}
	}
	return nil
}

// sweep takes up what the dead left.
func (c *contender) sweep(ctx context.Context) error {
	var orphans []idempotency.Run
	err := c.live(ctx, "sweep", func(s idempotency.Session) error {
		q := all()
		q.Limit = stressBatch
		lag, err := c.store.Lagging(ctx, s, q)
		if err != nil {
			return err
		}
		orphans = lag.Orphaned
		dead := repeat(len(orphans), func(i int) int64 { return orphans[i].Session })
		return c.store.MarkDead(ctx, s, dead)
	})
	if err != nil || len(orphans) == 0 {
		return err
	}
	return c.claim(ctx, repeat(len(orphans), func(i int) idempotency.Claim {
		t := c.insert(orphans[i].ID.Key)
		t.TakeUp, t.Seen = true, orphans[i].Fence
		return t
	}))
}

// leave closes the session, which a contender that crashed last has none of.
func (c *contender) leave(ctx context.Context) error {
	if c.now == nil {
		return nil
	}
	return c.store.CloseSession(ctx, c.now.session)
}
