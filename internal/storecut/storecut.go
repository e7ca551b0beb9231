// Package storecut cuts a replica off from its store, for tests: it stands for a network that swallows packets without
// a word. How a driver itself takes a dead connection is not shown by it.
package storecut

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// Store passes each call on to another store. While it is cut, calls hang until their contexts end: one that is made does
// not reach the other store, and of one that was under way the answer is lost, whatever it did.
type Store struct {
	idempotency.Store
	way *way
}

// New returns a way to a store, which is open. Each call takes delay to get there; nil: it is there at once. Safe for
// concurrent use, as both arguments must be.
func New(to idempotency.Store, delay func() time.Duration) *Store {
	w := &way{to: to, delay: delay}
	return &Store{w, w}
}

// Cut cuts the way to the store, or mends it. Calls that hang are not freed by that.
func (s *Store) Cut(cut bool) { s.way.cut.Store(cut) }

// way is what the calls go through.
type way struct {
	to    idempotency.Store // not embedded: a call that the store gets one day must not slip past
	delay func() time.Duration
	cut   atomic.Bool
}

// wait returns nil while there is a way.
func (w *way) wait(ctx context.Context) error {
	if !w.cut.Load() {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

func through[T any](ctx context.Context, w *way, call func() (T, error)) (T, error) {
	var none T
	if w.delay != nil {
		<-time.After(w.delay())
	}
	if err := w.wait(ctx); err != nil {
		return none, err
	}
	answer, failed := call()
	if err := w.wait(ctx); err != nil {
		return none, err
	}
	return answer, failed
}

func (w *way) OpenSession(ctx context.Context, o idempotency.Opening) (idempotency.Session, idempotency.Renewal, error) {
	var r idempotency.Renewal
	opened, err := through(ctx, w, func() (opened idempotency.Session, err error) {
		opened, r, err = w.to.OpenSession(ctx, o)
		return opened, err
	})
	return opened, r, err
}

func (w *way) RenewSession(ctx context.Context, s idempotency.Session) (idempotency.Renewal, error) {
	return through(ctx, w, func() (idempotency.Renewal, error) { return w.to.RenewSession(ctx, s) })
}

func (w *way) CloseSession(ctx context.Context, s idempotency.Session) error {
	_, err := through(ctx, w, func() (any, error) { return nil, w.to.CloseSession(ctx, s) })
	return err
}

func (w *way) MarkDead(ctx context.Context, s idempotency.Session, dead []int64) error {
	_, err := through(ctx, w, func() (any, error) { return nil, w.to.MarkDead(ctx, s, dead) })
	return err
}

func (w *way) Declare(ctx context.Context, s idempotency.Session, nonce int64, d []idempotency.Declaration) ([]idempotency.Entry, error) {
	return through(ctx, w, func() ([]idempotency.Entry, error) { return w.to.Declare(ctx, s, nonce, d) })
}

func (w *way) Decide(ctx context.Context, s idempotency.Session, nonce int64, d []idempotency.Decision) ([]idempotency.Decided, error) {
	return through(ctx, w, func() ([]idempotency.Decided, error) { return w.to.Decide(ctx, s, nonce, d) })
}

func (w *way) Lagging(ctx context.Context, s idempotency.Session, q idempotency.LagQuery) (idempotency.Lag, error) {
	return through(ctx, w, func() (idempotency.Lag, error) { return w.to.Lagging(ctx, s, q) })
}

func (w *way) Claim(ctx context.Context, s idempotency.Session, nonce int64, c []idempotency.Claim) ([]idempotency.Answer, error) {
	return through(ctx, w, func() ([]idempotency.Answer, error) { return w.to.Claim(ctx, s, nonce, c) })
}

func (w *way) Finish(ctx context.Context, namespace string, f []idempotency.Finish) ([]idempotency.FinishAnswer, error) {
	return through(ctx, w, func() ([]idempotency.FinishAnswer, error) { return w.to.Finish(ctx, namespace, f) })
}

func (w *way) Mine(ctx context.Context, s idempotency.Session) ([]idempotency.Run, error) {
	return through(ctx, w, func() ([]idempotency.Run, error) { return w.to.Mine(ctx, s) })
}

func (w *way) Prune(ctx context.Context, s idempotency.Session, limit int) (int, error) {
	return through(ctx, w, func() (int, error) { return w.to.Prune(ctx, s, limit) })
}

func (w *way) SavePass(ctx context.Context, s idempotency.Session, p []idempotency.Pass) ([]idempotency.Verdict, error) {
	return through(ctx, w, func() ([]idempotency.Verdict, error) { return w.to.SavePass(ctx, s, p) })
}

func (w *way) CloseDue(ctx context.Context, s idempotency.Session, job string, due time.Time, missed *idempotency.Range) (bool, error) {
	return through(ctx, w, func() (bool, error) { return w.to.CloseDue(ctx, s, job, due, missed) })
}

func (w *way) Retire(ctx context.Context, s idempotency.Session, after time.Duration) ([]idempotency.Orphan, error) {
	return through(ctx, w, func() ([]idempotency.Orphan, error) { return w.to.Retire(ctx, s, after) })
}
