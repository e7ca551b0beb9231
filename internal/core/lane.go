package core

import (
	"context"
	"errors"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// lane makes one kind of store call in batches: while a batch is under way, what
// comes piles up and is the next one. A batch that was not answered is
// repeated as it was, under its nonce. A bound lane belongs to the session: when that
// is lost, all it holds is gone.
type lane[Q, A any] struct {
	name  string
	bound bool
	send  func(ctx context.Context, st idempotency.Store, s idempotency.Session, nonce int64, q []Q) ([]A, error)

	// weigh is how much of a batch an element takes; one of more than a whole batch goes alone. Nil: 1.
	weigh func(Q) int

	queue, flight batch[Q, A]

	sent time.Duration // when the batch under way was, the first time
}

// batch is elements, and what becomes of each.
type batch[Q, A any] struct {
	q    []Q
	ends []end[Q, A]
}

// end takes what became of an element. Exactly one of then and gone is called.
type end[Q, A any] struct {
	then func(Q, A)
	gone func(Q)
}

func (b *batch[Q, A]) add(q Q, e end[Q, A]) {
	b.q, b.ends = append(b.q, q), append(b.ends, e)
}

// cut takes the first n elements out.
func (b *batch[Q, A]) cut(n int) batch[Q, A] {
	first := batch[Q, A]{b.q[:n:n], b.ends[:n:n]}
	if *b = (batch[Q, A]{b.q[n:], b.ends[n:]}); len(b.q) == 0 {
		*b = batch[Q, A]{}
	}
	return first
}

func (b *batch[Q, A]) give(answers []A) {
	for i, e := range b.ends {
		e.then(b.q[i], answers[i])
	}
}

func (b *batch[Q, A]) giveUp() {
	for i, e := range b.ends {
		e.gone(b.q[i])
	}
}

func (l *lane[Q, A]) add(q Q, then func(Q, A), gone func(Q)) {
	l.queue.add(q, end[Q, A]{then, gone})
}

func (l *lane[Q, A]) idle() bool { return len(l.queue.q) == 0 && len(l.flight.q) == 0 }

// ails says that a batch has not been answered for a Lease, however often it was sent.
func (l *lane[Q, A]) ails(c *Core) bool {
	return len(l.flight.q) > 0 && c.now.Mono-l.sent >= c.cfg.Lease
}

// flush sends the next batch if none is under way.
func (l *lane[Q, A]) flush(c *Core) {
	if len(l.queue.q) == 0 || len(l.flight.q) > 0 || l.bound && c.session == nil {
		return
	}
	l.flight, l.sent = l.queue.cut(l.fits()), c.now.Mono
	c.nonce++
	l.try(c, c.session, c.nonce)
}

// fits is how many of the queue's elements are one batch.
func (l *lane[Q, A]) fits() int {
	n := min(len(l.queue.q), idempotency.MaxBatch)
	if l.weigh == nil {
		return n
	}
	weight := 0
	for i, q := range l.queue.q[:n] {
		if weight += l.weigh(q); weight > idempotency.MaxBatch {
			return max(i, 1)
		}
	}
	return n
}

// try sends the batch under way.
func (l *lane[Q, A]) try(c *Core, s *session, nonce int64) {
	id := idempotency.Session{Namespace: c.cfg.Namespace}
	if s != nil {
		id = s.Session
	}
	x := &batchCall[Q, A]{c: c, lane: l, s: s, id: id, nonce: nonce, q: l.flight.q}
	x.Call = Call{Name: l.name, call: x}
	c.emit(&x.Call)
}

// batchCall sends a batch, for the first time or again.
type batchCall[Q, A any] struct {
	Call
	reply[[]A]
	c     *Core
	lane  *lane[Q, A]
	s     *session
	id    idempotency.Session
	nonce int64
	q     []Q
}

func (x *batchCall[Q, A]) do(ctx context.Context, st idempotency.Store) *Replied {
	a, err := x.lane.send(ctx, st, x.id, x.nonce, x.q)
	return x.put(&x.Call, a, err)
}

func (x *batchCall[Q, A]) then(r *Replied) {
	c, l := x.c, x.lane
	a, err := x.get(r)
	if err == nil && len(a) != len(x.q) {
		err = errShort
	}
	switch {
	case l.bound && c.session != x.s: // all of it is gone already
	case l.bound && errors.Is(err, idempotency.ErrSessionDead):
		c.lose("the store says it is dead")
	case err != nil:
		c.after(c.retryPause(), func() {
			if !l.bound || c.session == x.s {
				l.try(c, x.s, x.nonce)
			}
		})
	default:
		done := l.flight
		l.flight = batch[Q, A]{}
		done.give(a)
	}
}

var errShort = errors.New("core: the store did not answer each element of the batch")

// drop gives up what was not sent yet: all of it where such is nil, else what such says.
func (l *lane[Q, A]) drop(such func(Q) bool) {
	var kept, dropped batch[Q, A]
	for i, q := range l.queue.q {
		if such == nil || such(q) {
			dropped.add(q, l.queue.ends[i])
		} else {
			kept.add(q, l.queue.ends[i])
		}
	}
	l.queue = kept
	dropped.giveUp()
}

// reset gives up everything, for a lost session.
func (l *lane[Q, A]) reset() {
	flight, queue := l.flight, l.queue
	l.flight, l.queue = batch[Q, A]{}, batch[Q, A]{}
	flight.giveUp()
	queue.giveUp()
}

// lanes are the calls that are made in batches.
type lanes struct {
	decides  lane[idempotency.Decision, idempotency.Decided]
	claims   lane[idempotency.Claim, idempotency.Answer]
	saves    lane[idempotency.Pass, idempotency.Verdict]
	finishes lane[idempotency.Finish, idempotency.FinishAnswer]
}

func (l *lanes) makeLanes() {
	type (
		ctx     = context.Context
		store   = idempotency.Store
		session = idempotency.Session
	)
	l.decides.name, l.decides.bound = "Decide", true
	l.decides.weigh = func(d idempotency.Decision) int { return max(len(d.Run), 1) } // it writes a row for each
	l.decides.send = func(ctx ctx, st store, s session, nonce int64, q []idempotency.Decision) ([]idempotency.Decided, error) {
		return st.Decide(ctx, s, nonce, q)
	}
	l.claims.name, l.claims.bound = "Claim", true
	l.claims.send = func(ctx ctx, st store, s session, nonce int64, q []idempotency.Claim) ([]idempotency.Answer, error) {
		return st.Claim(ctx, s, nonce, q)
	}
	l.saves.name, l.saves.bound = "SavePass", true
	l.saves.send = func(ctx ctx, st store, s session, _ int64, q []idempotency.Pass) ([]idempotency.Verdict, error) {
		return st.SavePass(ctx, s, q)
	}
	l.finishes.name = "Finish"
	l.finishes.send = func(ctx ctx, st store, s session, _ int64, q []idempotency.Finish) ([]idempotency.FinishAnswer, error) {
		return st.Finish(ctx, s.Namespace, q)
	}
}
