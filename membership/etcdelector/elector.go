package etcdelector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Elector elects one of the replicas that share its etcd and its Prefix. It is this replica's candidate: one Lead at a time. Several
// electors may share a client.
type Elector struct {
	client  *clientv3.Client
	options Options
	now     func() instant // the clocks; a test has its own
	busy    atomic.Bool    // a Lead is under way
}

// New returns an elector on c, which stays the caller's to close, after Lead has returned. It asks etcd nothing. A client
// that is nil and options that make no sense are errors.
func New(c *clientv3.Client, o *Options) (*Elector, error) {
	if c == nil {
		return nil, errors.New("etcdelector: the client is nil; make one by clientv3.New")
	}
	var opts Options
	if o != nil {
		opts = *o
	}
	opts, err := opts.withDefaults()
	if err := errors.Join(err, opts.validate()); err != nil {
		return nil, err
	}
	return &Elector{client: c, options: opts, now: now}, nil
}

// Lead has this replica elected until ctx ends, again and again: each time it is, it calls lead, in this goroutine, with a context and with
// the term. The context ends when the term is over or its end cannot be ruled out, which is before another
// replica is elected; context.Cause says why. Ask its Err before whatever only a leader may do: it looks at the clocks, and so knows of the end also where the process
// was frozen until now, while Done and contexts derived from it may come a moment later. The term is above that of each leader before.
//
// Lead waits for lead to return before it resigns or has this replica elected again, and calls of lead never overlap. A lead that returns early
// resigns, and so does one that panics or fails, which is logged; the replica stands again after a pause. A lead that does not
// return though its context has ended is waited for, but renewed no more: its key is deleted once the trust and the margin, Lease less Trust, are over, and
// another replica may be elected while it still runs.
//
// When ctx ends Lead resigns, which takes up to three times Renew where etcd does not answer, and returns nil. It survives an etcd that is
// away, and logs that. It returns another error where waiting would not help and the error says what to mend: etcd refuses the
// client's user or its permissions, the client was closed, Lead is under way already.
func (e *Elector) Lead(ctx context.Context, lead func(ctx context.Context, term int64) error) error {
	if lead == nil {
		return errors.New("etcdelector: lead is nil; give the function that the leader runs")
	}
	if !e.busy.CompareAndSwap(false, true) {
		return errors.New("etcdelector: Lead is under way already; one Elector is one candidate, so make another by New")
	}
	defer e.busy.Store(false)
	pause := &backoff.ExponentialBackOff{
		InitialInterval: e.options.Retry, RandomizationFactor: 0.5, Multiplier: 2, MaxInterval: e.options.Renew,
	}
	for ctx.Err() == nil {
		begun := time.Now()
		if conn := e.client.ActiveConnection(); conn != nil {
			conn.ResetConnectBackoff() // which grows to two minutes while etcd is away: our pauses are enough
		}
		err := e.runCandidacy(ctx, lead)
		if ctx.Err() != nil {
			return nil
		}
		if what := e.remedy(err); what != "" {
			return fmt.Errorf("etcdelector: prefix %q: %w; %s", e.options.Prefix, err, what)
		}
		if time.Since(begun) > e.options.Lease {
			pause.Reset()
		}
		wait := pause.NextBackOff()
		if err != nil {
			e.log(ctx, slog.LevelWarn, "not a candidate for leader; stands again after a pause", "pause", wait, "err", err)
		}
		sleep(ctx, wait)
	}
	return nil
}

// runCandidacy is one candidacy, from its lease to its resignation.
func (e *Elector) runCandidacy(ctx context.Context, lead func(context.Context, int64) error) error {
	c, err := e.open(ctx)
	if err != nil {
		return err
	}
	defer c.close() // also where lead panics
	if err := c.announce(); err != nil {
		return err
	}
	if err := c.campaign(); err != nil {
		return err
	}
	return c.serve(ctx, lead)
}

// remedy says what to mend where trying again would not help.
func (e *Elector) remedy(err error) string {
	switch {
	case err == nil:
		return ""
	case e.client.Ctx().Err() != nil:
		return "the client was closed; end the context of Lead before that, and close it after Lead has returned"
	case errors.Is(err, rpctypes.ErrPermissionDenied):
		return fmt.Sprintf("grant the etcd role of the client's user to read and write all keys that begin with %q", e.prefix()+"/")
	case errors.Is(err, rpctypes.ErrAuthFailed), errors.Is(err, rpctypes.ErrUserEmpty), errors.Is(err, rpctypes.ErrUserNotFound):
		return "give the client (clientv3.Config) a Username and Password that etcd knows"
	case errors.Is(err, rpctypes.ErrLeaseTTLTooLarge), errors.Is(err, errShort):
		return "set a shorter Lease"
	}
	return ""
}

// prefix is how the keys of this election begin, without the slash that follows.
func (e *Elector) prefix() string { return e.options.Prefix + "/" + leaders }

func (e *Elector) log(ctx context.Context, level slog.Level, msg string, args ...any) {
	e.options.Logger.Log(context.WithoutCancel(ctx), level, msg, append([]any{"etcd", e.client.Endpoints(), "prefix", e.options.Prefix, "replica", e.options.Name}, args...)...)
}

// sleep waits until d has passed or ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
