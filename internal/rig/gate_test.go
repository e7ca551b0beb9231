//go:build unix

package rig

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// gate lets a replica's calls through to the store or, when it is cut, hangs them until their contexts end. SQLite is a
// file, with no network to cut, so this stands for one that swallows packets without a word (F35): a call that is made
// does not reach the store, and of one that was under way the answer is lost, whatever it did. How a driver itself
// takes a dead connection is not shown here.
type gate struct {
	store idempotency.Store // not embedded: a call that the store gets one day must not slip past
	cut   atomic.Bool
}

var _ idempotency.Store = (*gate)(nil)

// wait returns nil while there is a way.
func (g *gate) wait(ctx context.Context) error {
	if !g.cut.Load() {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

func through[T any](ctx context.Context, g *gate, call func() (T, error)) (T, error) {
	var none T
	if err := g.wait(ctx); err != nil {
		return none, err
	}
	answer, failed := call()
	if err := g.wait(ctx); err != nil {
		return none, err
	}
	return answer, failed
}

func (g *gate) OpenSession(ctx context.Context, o idempotency.Opening) (idempotency.Session, idempotency.Renewal, error) {
	var r idempotency.Renewal
	s, err := through(ctx, g, func() (s idempotency.Session, err error) {
		s, r, err = g.store.OpenSession(ctx, o)
		return s, err
	})
	return s, r, err
}

func (g *gate) RenewSession(ctx context.Context, s idempotency.Session) (idempotency.Renewal, error) {
	return through(ctx, g, func() (idempotency.Renewal, error) { return g.store.RenewSession(ctx, s) })
}

func (g *gate) CloseSession(ctx context.Context, s idempotency.Session) error {
	_, err := through(ctx, g, func() (any, error) { return nil, g.store.CloseSession(ctx, s) })
	return err
}

func (g *gate) MarkDead(ctx context.Context, s idempotency.Session, dead []int64) error {
	_, err := through(ctx, g, func() (any, error) { return nil, g.store.MarkDead(ctx, s, dead) })
	return err
}

func (g *gate) Declare(ctx context.Context, s idempotency.Session, nonce int64, d []idempotency.Declaration) ([]idempotency.Entry, error) {
	return through(ctx, g, func() ([]idempotency.Entry, error) { return g.store.Declare(ctx, s, nonce, d) })
}

func (g *gate) Decide(ctx context.Context, s idempotency.Session, nonce int64, d []idempotency.Decision) ([]idempotency.Decided, error) {
	return through(ctx, g, func() ([]idempotency.Decided, error) { return g.store.Decide(ctx, s, nonce, d) })
}

func (g *gate) Lagging(ctx context.Context, s idempotency.Session, q idempotency.LagQuery) (idempotency.Lag, error) {
	return through(ctx, g, func() (idempotency.Lag, error) { return g.store.Lagging(ctx, s, q) })
}

func (g *gate) Claim(ctx context.Context, s idempotency.Session, nonce int64, c []idempotency.Claim) ([]idempotency.Answer, error) {
	return through(ctx, g, func() ([]idempotency.Answer, error) { return g.store.Claim(ctx, s, nonce, c) })
}

func (g *gate) Finish(ctx context.Context, namespace string, f []idempotency.Finish) ([]idempotency.FinishAnswer, error) {
	return through(ctx, g, func() ([]idempotency.FinishAnswer, error) { return g.store.Finish(ctx, namespace, f) })
}

func (g *gate) Mine(ctx context.Context, s idempotency.Session) ([]idempotency.Run, error) {
	return through(ctx, g, func() ([]idempotency.Run, error) { return g.store.Mine(ctx, s) })
}

func (g *gate) Prune(ctx context.Context, s idempotency.Session, limit int) (int, error) {
	return through(ctx, g, func() (int, error) { return g.store.Prune(ctx, s, limit) })
}

func (g *gate) SavePass(ctx context.Context, s idempotency.Session, p []idempotency.Pass) ([]idempotency.Verdict, error) {
	return through(ctx, g, func() ([]idempotency.Verdict, error) { return g.store.SavePass(ctx, s, p) })
}

func (g *gate) CloseDue(ctx context.Context, s idempotency.Session, job string, due time.Time, missed *idempotency.Range) (bool, error) {
	return through(ctx, g, func() (bool, error) { return g.store.CloseDue(ctx, s, job, due, missed) })
}
