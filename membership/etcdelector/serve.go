package etcdelector

import (
	"context"
	"log/slog"
	"time"
)

// serve calls lead, once, and tells why the term ended. It fails where there was no term any more.
func (c *candidacy) serve(ctx context.Context, lead func(context.Context, int64) error) error {
	t := &term{Context: c.ctx, trust: &c.trust, lose: c.lose}
	if t.Err() != nil {
		return context.Cause(c.ctx)
	}
	c.log(ctx, slog.LevelInfo, "elected leader", "term", c.rev)
	c.running.Go(c.renew)
	c.running.Go(c.expire)
	c.running.Go(c.hand)
	defer func() { // also where lead panics
		c.lose(errReturned)
		close(c.returned)
	}()
	err := lead(t, c.rev)
	switch {
	case ctx.Err() != nil:
		c.log(ctx, slog.LevelInfo, "leads no more", "term", c.rev, "why", context.Cause(ctx))
	case c.ctx.Err() != nil:
		c.log(ctx, slog.LevelWarn, "leadership was lost", "term", c.rev, "why", context.Cause(c.ctx))
	case err != nil:
		c.log(ctx, slog.LevelWarn, "lead has failed; resigns", "term", c.rev, "err", err)
	default:
		c.log(ctx, slog.LevelInfo, "lead has returned; resigns", "term", c.rev)
	}
	return nil
}

// renew confirms the term again and again, from one renewal to the next in Renew, and sooner after a failure.
func (c *candidacy) renew() {
	pause := c.options.Renew - time.Since(c.asked)
	for {
		sleep(c.ctx, pause)
		if c.ctx.Err() != nil {
			return
		}
		err := c.confirm(c.ctx)
		pause = c.options.Renew - time.Since(c.asked)
		if err != nil && c.ctx.Err() == nil {
			pause = c.options.Retry
			c.log(c.ctx, slog.LevelWarn, "leadership was not renewed", "term", c.rev, "trust", c.trust.left(), "err", err)
		}
	}
}

// expire ends the term when the trust is over. It looks at least once a Renew, since a suspended machine's timers come late.
func (c *candidacy) expire() {
	for c.ctx.Err() == nil {
		left := c.trust.left()
		if left == 0 {
			c.lose(errTrust)
			return
		}
		sleep(c.ctx, min(left, c.options.Renew))
	}
}

// hand resigns once the term is over and lead has returned. For one that does not return it waits no longer than the trust, which nothing extends
// any more, and the margin that lead has to stop: whoever waits for a leader has one then. The trust may be over, and so the term, long before etcd ends
// the lease.
func (c *candidacy) hand() {
	<-c.ctx.Done()
	c.session.Orphan()
	t := time.NewTimer(c.trust.left() + c.margin)
	defer t.Stop()
	select {
	case <-c.returned:
	case <-t.C:
	}
	c.resign()
}
