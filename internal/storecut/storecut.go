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
	To    idempotency.Store    // not embedded: a call that the store gets one day must not slip past
	Delay func() time.Duration // how long a call takes to get there; nil: it is there at once

	cut atomic.Bool
}

var _ idempotency.Store = (*Store)(nil)

// Cut cuts the way to the store, or mends it. Calls that hang are not freed by that.
func (s *Store) Cut(cut bool) { s.cut.Store(cut) }

// wait returns nil while there is a way.
func (s *Store) wait(ctx context.Context) error {
	if !s.cut.Load() {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

func through[T any](ctx context.Context, s *Store, call func() (T, error)) (T, error) {
	var none T
	if s.Delay != nil {
		<-time.After(s.Delay())
	}
	if err := s.wait(ctx); err != nil {
		return none, err
	}
	answer, failed := call()
	if err := s.wait(ctx); err != nil {
		return none, err
	}
	return answer, failed
}

func (s *Store) OpenSession(ctx context.Context, o idempotency.Opening) (idempotency.Session, idempotency.Renewal, error) {
	var r idempotency.Renewal
	opened, err := through(ctx, s, func() (opened idempotency.Session, err error) {
		opened, r, err = s.To.OpenSession(ctx, o)
		return opened, err
	})
	return opened, r, err
}

func (s *Store) RenewSession(ctx context.Context, o idempotency.Session) (idempotency.Renewal, error) {
	return through(ctx, s, func() (idempotency.Renewal, error) { return s.To.RenewSession(ctx, o) })
}

func (s *Store) CloseSession(ctx context.Context, o idempotency.Session) error {
	_, err := through(ctx, s, func() (any, error) { return nil, s.To.CloseSession(ctx, o) })
	return err
}

func (s *Store) MarkDead(ctx context.Context, o idempotency.Session, dead []int64) error {
	_, err := through(ctx, s, func() (any, error) { return nil, s.To.MarkDead(ctx, o, dead) })
	return err
}

func (s *Store) Declare(ctx context.Context, o idempotency.Session, nonce int64, d []idempotency.Declaration) ([]idempotency.Entry, error) {
	return through(ctx, s, func() ([]idempotency.Entry, error) { return s.To.Declare(ctx, o, nonce, d) })
}

func (s *Store) Decide(ctx context.Context, o idempotency.Session, nonce int64, d []idempotency.Decision) ([]idempotency.Decided, error) {
	return through(ctx, s, func() ([]idempotency.Decided, error) { return s.To.Decide(ctx, o, nonce, d) })
}

func (s *Store) Lagging(ctx context.Context, o idempotency.Session, q idempotency.LagQuery) (idempotency.Lag, error) {
	return through(ctx, s, func() (idempotency.Lag, error) { return s.To.Lagging(ctx, o, q) })
}

func (s *Store) Claim(ctx context.Context, o idempotency.Session, nonce int64, c []idempotency.Claim) ([]idempotency.Answer, error) {
	return through(ctx, s, func() ([]idempotency.Answer, error) { return s.To.Claim(ctx, o, nonce, c) })
}

func (s *Store) Finish(ctx context.Context, namespace string, f []idempotency.Finish) ([]idempotency.FinishAnswer, error) {
	return through(ctx, s, func() ([]idempotency.FinishAnswer, error) { return s.To.Finish(ctx, namespace, f) })
}

func (s *Store) Mine(ctx context.Context, o idempotency.Session) ([]idempotency.Run, error) {
	return through(ctx, s, func() ([]idempotency.Run, error) { return s.To.Mine(ctx, o) })
}

func (s *Store) Prune(ctx context.Context, o idempotency.Session, limit int) (int, error) {
	return through(ctx, s, func() (int, error) { return s.To.Prune(ctx, o, limit) })
}

func (s *Store) SavePass(ctx context.Context, o idempotency.Session, p []idempotency.Pass) ([]idempotency.Verdict, error) {
	return through(ctx, s, func() ([]idempotency.Verdict, error) { return s.To.SavePass(ctx, o, p) })
}

func (s *Store) CloseDue(ctx context.Context, o idempotency.Session, job string, due time.Time, missed *idempotency.Range) (bool, error) {
	return through(ctx, s, func() (bool, error) { return s.To.CloseDue(ctx, o, job, due, missed) })
}
