package scheduler

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/belfry-go/belfry/internal/core"
)

// candidacy is this replica before Config.Elector.
type candidacy struct {
	stop context.CancelFunc // nil: it has never stood
	gone chan struct{}      // closed when the elector has let go of it
	told *term              // that the core believes in; nil: none

	// Of the goroutine that calls the elector.
	pauses *pauses
	rest   time.Time // until when it is not called, since it failed

	mu     sync.Mutex
	newest *term // the last one that the elector began; nil: none, or that has ended
}

// stand has the elector elect this replica from now on, or not any more. The elector is called by one goroutine at a time.
func (r *runner) stand(on bool) {
	c := &r.candidacy
	if c.stop != nil {
		c.stop()
	}
	if !on {
		return
	}
	ctx, stop := context.WithCancel(r.base)
	before, gone := c.gone, make(chan struct{})
	c.stop, c.gone = stop, gone
	r.users.Go(func() {
		defer close(gone)
		if before != nil {
			<-before
		}
		r.campaign(ctx)
	})
}

// campaign calls the elector until ctx ends. One that returns before that, or fails, is called again after a pause, if need be by the next campaign.
func (r *runner) campaign(ctx context.Context) {
	c := &r.candidacy
	for {
		wait(ctx, time.Until(c.rest))
		if ctx.Err() != nil {
			return
		}
		began := time.Now()
		early, err := r.callElector(ctx)
		switch {
		case early && err == nil:
			err = errors.New("it returned without an error, though its context had not ended")
		case err == nil:
			return
		}
		pause := c.pauses.after(time.Since(began))
		c.rest = time.Now().Add(pause)
		r.log.Error("the elector failed; it is called again, and this replica is not elected before that", "in", pause, "err", err)
	}
}

// callElector calls it once, and reports whether it returned before ctx had ended.
func (r *runner) callElector(ctx context.Context) (early bool, err error) {
	lead, stop := context.WithCancel(ctx)
	var serving sync.WaitGroup
	err = sheltered(func() error {
		return r.cfg.Elector.Lead(lead, func(term context.Context, number int64) error {
			serving.Add(1)
			defer serving.Done()
			return r.serve(term, lead, number)
		})
	})
	early = ctx.Err() == nil
	stop()
	serving.Wait() // an elector that fails in a term may leave that behind
	return early, err
}

// serve is one term of the elector's.
func (r *runner) serve(ctx, lead context.Context, number int64) error {
	if number <= 0 {
		return fmt.Errorf("scheduler: the elector began term %d; terms begin with 1 and rise", number)
	}
	t := newTerm(ctx, number, r.lapsed)
	c := &r.candidacy
	c.begun(t)
	r.mail.wake()
	select {
	case <-ctx.Done():
	case <-lead.Done():
	}
	r.mail.wake() // the core hears of it before anything else
	r.roles.end(t, ErrDeposed)
	<-t.done
	c.finished(t)
	r.mail.wake()
	return nil
}

func (c *candidacy) begun(t *term) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.newest = t
}

func (c *candidacy) finished(t *term) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.newest == t {
		c.newest = nil
	}
}

// heed puts what there is to be told of terms before the other events. The loop asks before each step, so that a process that
// was frozen starts nothing by a term that is over.
func (r *runner) heed(events []core.Event) []core.Event {
	if r.cfg.Elector == nil {
		return events
	}
	c := &r.candidacy
	c.mu.Lock()
	newest := c.newest
	c.mu.Unlock()
	var news []core.Event
	if t := c.told; t != nil && (t != newest || t.over()) {
		news = append(news, core.Deposed{Term: t.number, Why: t.why()})
		c.told = nil
		if t == newest {
			newest = nil
		}
	}
	if c.told == nil && newest != nil && !newest.over() {
		news = append(news, core.Elected{Term: newest.number})
		c.told = newest
	}
	return append(news, events...)
}

// leaveElection ends the candidacy and the roles for good, and waits until the elector has let go of this replica.
func (r *runner) leaveElection() {
	r.stand(false)
	r.endRoles()
	if r.candidacy.gone == nil {
		return
	}
	select {
	case <-r.candidacy.gone:
	case <-time.After(r.cfg.Lease / 2):
		r.log.Warn("the elector does not return; it is left behind, and the next leader may come only after the elector's lease")
	}
}
