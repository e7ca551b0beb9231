package schedulertest

import (
	"context"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// door is a process's way to the store. Once the process has crashed nothing passes: a call ends with its context.
type door struct {
	*idempotency.Memory
	p *process
}

func (d *door) shut(ctx context.Context) error {
	if !d.p.crashed.Load() {
		return nil
	}
	<-ctx.Done()
	return errCrashed
}

// call makes f, which answers with a value, if it passes.
func call[T any](ctx context.Context, d *door, f func() (T, error)) (none T, err error) {
	if err := d.shut(ctx); err != nil {
		return none, err
	}
	return f()
}

func (d *door) OpenSession(ctx context.Context, o idempotency.Opening) (idempotency.Session, idempotency.Renewal, error) {
	if err := d.shut(ctx); err != nil {
		return idempotency.Session{}, idempotency.Renewal{}, err
	}
	return d.Memory.OpenSession(ctx, o)
}

func (d *door) RenewSession(ctx context.Context, s idempotency.Session) (idempotency.Renewal, error) {
	return call(ctx, d, func() (idempotency.Renewal, error) { return d.Memory.RenewSession(ctx, s) })
}

func (d *door) CloseSession(ctx context.Context, s idempotency.Session) error {
	if err := d.shut(ctx); err != nil {
		return err
	}
	return d.Memory.CloseSession(ctx, s)
}

func (d *door) MarkDead(ctx context.Context, s idempotency.Session, dead []int64) error {
	if err := d.shut(ctx); err != nil {
		return err
	}
	return d.Memory.MarkDead(ctx, s, dead)
}

func (d *door) Declare(ctx context.Context, s idempotency.Session, nonce int64, q []idempotency.Declaration) ([]idempotency.Entry, error) {
	return call(ctx, d, func() ([]idempotency.Entry, error) { return d.Memory.Declare(ctx, s, nonce, q) })
}

func (d *door) Decide(ctx context.Context, s idempotency.Session, nonce int64, q []idempotency.Decision) ([]idempotency.Decided, error) {
	return call(ctx, d, func() ([]idempotency.Decided, error) { return d.Memory.Decide(ctx, s, nonce, q) })
}

func (d *door) Lagging(ctx context.Context, s idempotency.Session, q idempotency.LagQuery) (idempotency.Lag, error) {
	return call(ctx, d, func() (idempotency.Lag, error) { return d.Memory.Lagging(ctx, s, q) })
}

func (d *door) Lead(ctx context.Context, s idempotency.Session, term int64) (idempotency.Leader, error) {
	return call(ctx, d, func() (idempotency.Leader, error) { return d.Memory.Lead(ctx, s, term) })
}

func (d *door) Resign(ctx context.Context, s idempotency.Session, term int64, why string) error {
	if err := d.shut(ctx); err != nil {
		return err
	}
	return d.Memory.Resign(ctx, s, term, why)
}

func (d *door) Leader(ctx context.Context, namespace string) (idempotency.Leader, error) {
	return call(ctx, d, func() (idempotency.Leader, error) { return d.Memory.Leader(ctx, namespace) })
}

func (d *door) Retire(ctx context.Context, s idempotency.Session, after time.Duration) ([]idempotency.Orphan, error) {
	return call(ctx, d, func() ([]idempotency.Orphan, error) { return d.Memory.Retire(ctx, s, after) })
}

func (d *door) Claim(ctx context.Context, s idempotency.Session, nonce int64, q []idempotency.Claim) ([]idempotency.Answer, error) {
	return call(ctx, d, func() ([]idempotency.Answer, error) { return d.Memory.Claim(ctx, s, nonce, q) })
}

func (d *door) Finish(ctx context.Context, namespace string, q []idempotency.Finish) ([]idempotency.FinishAnswer, error) {
	return call(ctx, d, func() ([]idempotency.FinishAnswer, error) { return d.Memory.Finish(ctx, namespace, q) })
}

func (d *door) Mine(ctx context.Context, s idempotency.Session) ([]idempotency.Run, error) {
	return call(ctx, d, func() ([]idempotency.Run, error) { return d.Memory.Mine(ctx, s) })
}

func (d *door) Prune(ctx context.Context, s idempotency.Session, limit int) (int, error) {
	return call(ctx, d, func() (int, error) { return d.Memory.Prune(ctx, s, limit) })
}

func (d *door) SavePass(ctx context.Context, s idempotency.Session, q []idempotency.Pass) ([]idempotency.Verdict, error) {
	return call(ctx, d, func() ([]idempotency.Verdict, error) { return d.Memory.SavePass(ctx, s, q) })
}

func (d *door) CloseDue(ctx context.Context, s idempotency.Session, job string, due time.Time, missed *idempotency.Range) (bool, error) {
	return call(ctx, d, func() (bool, error) { return d.Memory.CloseDue(ctx, s, job, due, missed) })
}
