//go:build unix

package rig

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// pulse tells the ledger that this process's session has ended by itself, or may have, for the want of a renewal. Where
// the process opens another one that is seen anyway. But one that drains does not, and others take its runs up.
type pulse struct {
	ledger *ledger
	lease  time.Duration

	mu   sync.Mutex
	last time.Time // when the last renewal was sent that was answered; zero: there is no session
}

// beat is a renewal that was answered.
func (p *pulse) beat(sent time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = sent
}

// stop is the end of the session. Where it is not known to have been live, that is written down.
func (p *pulse) stop(dead bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if dead || !p.last.IsZero() && time.Since(p.last) > p.lease {
		p.ledger.write(line{Phase: lapsed})
	}
	p.last = time.Time{}
}

// OpenSession begins to feel the pulse.
func (d *door) OpenSession(ctx context.Context, o idempotency.Opening) (idempotency.Session, idempotency.Renewal, error) {
	sent := time.Now()
	s, r, err := d.Store.OpenSession(ctx, o)
	if err == nil {
		d.beat(sent)
	}
	return s, r, err
}

// RenewSession is also one of the calls that a process is not stopped in.
func (d *door) RenewSession(ctx context.Context, s idempotency.Session) (idempotency.Renewal, error) {
	d.calls.RLock()
	defer d.calls.RUnlock()
	sent := time.Now()
	r, err := d.Store.RenewSession(ctx, s)
	switch {
	case err == nil:
		d.beat(sent)
	case errors.Is(err, idempotency.ErrSessionDead):
		d.pulse.stop(true)
	}
	return r, err
}

// CloseSession ends it.
func (d *door) CloseSession(ctx context.Context, s idempotency.Session) error {
	err := d.Store.CloseSession(ctx, s)
	d.pulse.stop(false)
	return err
}
