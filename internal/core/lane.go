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

	queue  []item[Q, A]
	flight []item[Q, A]
	sent   time.Duration // when the batch under way was, the first time
}

// item is one element of a batch. Exactly one of then and gone is called.
type item[Q, A any] struct {
	q    Q
	then func(A)
	gone func()
}

func (l *lane[Q, A]) add(q Q, then func(A), gone func()) {
	l.queue = append(l.queue, item[Q, A]{q, then, gone})
}

func (l *lane[Q, A]) idle() bool { return len(l.queue) == 0 && len(l.flight) == 0 }

// ails says that a batch has not been answered for a Lease, however often it was sent.
func (l *lane[Q, A]) ails(c *Core) bool { return len(l.flight) > 0 && c.now.Mono-l.sent >= c.cfg.Lease }

// flush sends the next batch if none is under way.
func (l *lane[Q, A]) flush(c *Core) {
	if len(l.queue) == 0 || len(l.flight) > 0 || l.bound && c.session == nil {
		return
	}
	n := l.fits()
	l.flight, l.queue, l.sent = l.queue[:n:n], l.queue[n:], c.now.Mono
	if len(l.queue) == 0 {
		l.queue = nil
	}
	q := make([]Q, n)
	for i, it := range l.flight {
		q[i] = it.q
	}
	c.nonce++
	l.try(c, c.session, c.nonce, q)
}

// fits is how many of the queue's elements are one batch.
func (l *lane[Q, A]) fits() int {
	n := min(len(l.queue), idempotency.MaxBatch)
	if l.weigh == nil {
		return n
	}
	weight := 0
	for i, it := range l.queue[:n] {
		if weight += l.weigh(it.q); weight > idempotency.MaxBatch {
			return max(i, 1)
		}
	}
	return n
}

func (l *lane[Q, A]) try(c *Core, s *session, nonce int64, q []Q) {
	id := idempotency.Session{Namespace: c.cfg.Namespace}
	if s != nil {
		id = s.Session
	}
	c.emit(newCall(l.name,
		func(ctx context.Context, st idempotency.Store) ([]A, error) { return l.send(ctx, st, id, nonce, q) },
		func(a []A, err error) {
			if err == nil && len(a) != len(q) {
				err = errShort
			}
			switch {
			case l.bound && c.session != s: // all of it is gone already
			case l.bound && errors.Is(err, idempotency.ErrSessionDead):
				c.lose("the store says it is dead")
			case err != nil:
				c.after(c.retryPause(), func() {
					if !l.bound || c.session == s {
						l.try(c, s, nonce, q)
					}
				})
			default:
				done := l.flight
				l.flight = nil
				for i, it := range done {
					it.then(a[i])
				}
			}
		}))
}

var errShort = errors.New("core: the store did not answer each element of the batch")

// drop gives up what was not sent yet: all of it where such is nil, else what such says.
func (l *lane[Q, A]) drop(such func(Q) bool) {
	queue := l.queue
	l.queue = nil
	for _, it := range queue {
		if such == nil || such(it.q) {
			it.gone()
		} else {
			l.queue = append(l.queue, it)
		}
	}
}

// reset gives up everything, for a lost session.
func (l *lane[Q, A]) reset() {
	all := append(l.flight, l.queue...)
	l.flight, l.queue = nil, nil
	for _, it := range all {
		it.gone()
	}
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
