package ordeal

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

const (
	namespace  = "ordeal"
	job        = "renewals"
	hash       = "h1"
	partitions = 8

	perKey = 40 // questions until a key is old
	field  = 4  // keys that are asked about at a time
	again  = 3  // how often a call is made until it is answered
)

// opening is what a client asks of a session that lives until it is closed.
func opening(boot string) idempotency.Opening {
	return idempotency.Opening{
		Namespace: namespace, Replica: "r", Boot: boot, Partitions: partitions,
		Lease: time.Hour, Horizon: 90 * time.Minute, Retention: 2 * time.Hour, Tolerance: 100 * time.Millisecond,
	}
}

// everything is a question of a replica that has rank 0 everywhere.
func everything(limit int) idempotency.LagQuery {
	return idempotency.LagQuery{Ranks: [][]byte{{255}}, Grace: time.Minute, Limit: limit}
}

// declaration is the job's, with every due of the last day to be decided.
func declaration(now time.Time) idempotency.Declaration {
	return idempotency.Declaration{
		Definition: idempotency.Definition{Job: job, Schedule: "@daily", Hash: hash},
		Opened:     now.Add(-24 * time.Hour), Next: now.Add(-23 * time.Hour).Truncate(time.Second),
	}
}

// client is one replica that does by chance what replicas do, and notes what it asked and was answered.
type client struct {
	store    idempotency.Store
	h        *history
	name     int
	rng      *rand.Rand
	due      time.Time
	brief    time.Duration // lease of a session that is to lapse
	deadline time.Duration // of each call

	boots    int
	nonce    int64
	session  *idempotency.Session // nil: none
	mayLapse bool
	held     []idempotency.Finish
	old      []idempotency.Finish // of sessions that are gone
}

// run asks until the history has that many questions, and all trouble is over.
func (c *client) run(ctx context.Context, until int) {
	for ctx.Err() == nil && (c.h.len() < until || !c.h.calm.Load()) {
		if c.session == nil {
			c.open(ctx)
			continue
		}
		switch x := c.rng.IntN(20); {
		case x < 8:
			c.insert(ctx)
		case x < 12:
			c.finish(ctx, &c.held)
		case x < 13:
			c.finish(ctx, &c.old)
		case x < 16:
			c.sweep(ctx)
		case x < 17:
			c.raid(ctx)
		case x < 18:
			c.simple(ctx, renew)
		case x < 19:
			c.mine(ctx)
		default:
			c.simple(ctx, closing)
			if c.rng.IntN(2) == 0 { // else it does not know, and goes on
				c.crash()
			}
		}
	}
}

// call makes a call under its deadline.
func (c *client) call(ctx context.Context, f func(context.Context) error) reply {
	limited, cancel := context.WithTimeout(ctx, c.deadline)
	defer cancel()
	err := f(limited)
	r := reply{dead: errors.Is(err, idempotency.ErrSessionDead)}
	if r.lost = err != nil && !r.dead; r.lost { // a server that is down is not asked all the time
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return r
}

// open opens a session. One in three has a short lease.
func (c *client) open(ctx context.Context) {
	c.boots++
	o := opening(fmt.Sprint(c.name, ".", c.boots))
	c.mayLapse = c.rng.IntN(3) == 0
	if c.mayLapse {
		o.Lease = c.brief
	}
	var s idempotency.Session
	var told idempotency.Renewal
	if r := c.call(ctx, func(ctx context.Context) (err error) { s, told, err = c.store.OpenSession(ctx, o); return err }); r.lost {
		return
	}
	declare := func(ctx context.Context) error {
		_, err := c.store.Declare(ctx, s, 1, []idempotency.Declaration{declaration(told.Now)})
		return err
	}
	if r := c.call(ctx, declare); !r.lost && !r.dead {
		c.session = &s
		c.h.opened(s.ID, c.mayLapse)
	}
}

// crash forgets the session; what it held may still be finished, by what comes late.
func (c *client) crash() {
	c.old = append(c.old, c.held...)
	c.held, c.session = nil, nil
}

func (c *client) key() string {
	return fmt.Sprintf("k%04d", c.h.len()/perKey+c.rng.IntN(field))
}

func (c *client) insert(ctx context.Context) {
	batch := make(map[string]idempotency.Claim)
	for range 1 + c.rng.IntN(3) {
		k := c.key()
		batch[k] = idempotency.Claim{ID: idempotency.ID{Job: job, Key: k, Due: c.due}, Hash: hash, Exclusive: true}
	}
	var all []idempotency.Claim
	for _, x := range batch {
		all = append(all, x)
	}
	c.claim(ctx, all)
}

// claim claims until it is answered, and now and then once more, always under the same nonce.
func (c *client) claim(ctx context.Context, batch []idempotency.Claim) {
	c.nonce++
	won := make(map[int64]bool)
	for i := 0; i < again; i++ {
		call := c.h.now()
		var answers []idempotency.Answer
		r := c.call(ctx, func(ctx context.Context) (err error) {
			answers, err = c.store.Claim(ctx, *c.session, c.nonce, batch)
			return err
		})
		notes := make([]asked, len(batch))
		for i, x := range batch {
			q := question{kind: insert, key: x.ID.Key, session: c.session.ID, nonce: c.nonce, mayLapse: c.mayLapse}
			if x.TakeUp {
				q.kind, q.fence = takeUp, x.Seen
			}
			notes[i] = asked{client: c.name, question: q, reply: r, call: call}
			if r.lost || r.dead {
				continue
			}
			notes[i].verdict, notes[i].reply.fence = answers[i].Verdict, answers[i].Fence
			if answers[i].Verdict == idempotency.Won && !won[answers[i].Fence] {
				won[answers[i].Fence] = true
				f := idempotency.Finish{ID: x.ID, Fence: answers[i].Fence, Outcome: idempotency.Done, Attempt: 1}
				c.held = append(c.held, f)
				c.h.remember(f)
			}
		}
		c.h.add(notes...)
		if r.dead {
			c.crash()
			return
		}
		if !r.lost && c.rng.IntN(4) > 0 {
			return
		}
	}
}

// finish ends one of the list, or lets it wait, until that is answered, and now and then once more.
func (c *client) finish(ctx context.Context, list *[]idempotency.Finish) {
	if len(*list) == 0 {
		return
	}
	i := c.rng.IntN(len(*list))
	f := (*list)[i]
	*list = slices.Delete(*list, i, i+1)
	q := question{kind: finish, key: f.ID.Key, fence: f.Fence}
	if c.rng.IntN(3) == 0 {
		q.kind, f.Outcome, f.Wake = release, idempotency.Wait, c.due
	}
	for range again {
		call := c.h.now()
		var answers []idempotency.FinishAnswer
		r := c.call(ctx, func(ctx context.Context) (err error) {
			answers, err = c.store.Finish(ctx, namespace, []idempotency.Finish{f})
			return err
		})
		if !r.lost && !r.dead {
			r.finish = answers[0]
		}
		c.h.add(asked{client: c.name, question: q, reply: r, call: call})
		if !r.lost && c.rng.IntN(4) > 0 {
			return
		}
	}
}

// sweep marks the dead and takes up one run.
func (c *client) sweep(ctx context.Context) {
	var lag idempotency.Lag
	r := c.call(ctx, func(ctx context.Context) (err error) {
		lag, err = c.store.Lagging(ctx, *c.session, everything(10))
		return err
	})
	if r.dead {
		c.crash()
	}
	if r.dead || r.lost {
		return
	}
	for _, x := range lag.Orphaned {
		c.mark(ctx, x.Session)
	}
	if runs := append(lag.Orphaned, lag.Waiting...); len(runs) > 0 {
		x := runs[c.rng.IntN(len(runs))]
		c.claim(ctx, []idempotency.Claim{{ID: x.ID, Hash: hash, Exclusive: true, TakeUp: true, Seen: x.Fence}})
	}
}

// raid takes up a run by what was true of it once: its holder may live, it may have been taken up since, or have ended.
func (c *client) raid(ctx context.Context) {
	if f, ok := c.h.recall(c.rng); ok {
		c.claim(ctx, []idempotency.Claim{{ID: f.ID, Hash: hash, Exclusive: true, TakeUp: true, Seen: f.Fence}})
	}
}

// mark marks a session that was seen not to be live.
func (c *client) mark(ctx context.Context, dead int64) {
	call := c.h.now()
	r := c.call(ctx, func(ctx context.Context) error { return c.store.MarkDead(ctx, *c.session, []int64{dead}) })
	if !r.dead {
		c.h.add(asked{client: c.name, question: question{kind: mark, session: dead, mayLapse: c.h.mayLapse(dead)}, reply: r, call: call})
	}
}

// simple renews or closes the session.
func (c *client) simple(ctx context.Context, k kind) {
	call := c.h.now()
	r := c.call(ctx, func(ctx context.Context) error {
		if k == closing {
			return c.store.CloseSession(ctx, *c.session)
		}
		_, err := c.store.RenewSession(ctx, *c.session)
		return err
	})
	c.h.add(asked{client: c.name, question: question{kind: k, session: c.session.ID, mayLapse: c.mayLapse}, reply: r, call: call})
}

func (c *client) mine(ctx context.Context) {
	call := c.h.now()
	held := make(map[string]int64)
	r := c.call(ctx, func(ctx context.Context) error {
		runs, err := c.store.Mine(ctx, *c.session)
		for _, x := range runs {
			held[x.ID.Key] = x.Fence
		}
		return err
	})
	q := question{kind: mine, session: c.session.ID, mayLapse: c.mayLapse}
	c.h.add(asked{client: c.name, question: q, reply: r, held: held, call: call})
}
