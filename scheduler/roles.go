package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/belfry-go/belfry/jobs"
)

// role is something long-lived that the leader does beside jobs: see OnLeader.
type role struct {
	name string
	f    func(ctx context.Context, term int64) error
	in   *term // in which it is called, or pauses before it is called again, or was left behind; nil: none. Under roles.mu
}

// roles are what the leader does beside jobs.
type roles struct {
	mu   sync.Mutex
	list []*role
	now  *term // in which they are to be called; nil: none

	// While Run runs.
	log      *slog.Logger
	spawn    func(func())  // starts a goroutine
	patience time.Duration // how long those of a term that has ended are waited for
}

// prepare readies the roles for a Run, before its loop.
func (r *roles) prepare(run *runner) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log, r.spawn, r.patience = run.log, run.users.Go, run.cfg.Lease/2
}

// add makes a role known, and begins it where this replica leads.
func (r *roles) add(name string, f func(context.Context, int64) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.ContainsFunc(r.list, func(x *role) bool { return x.name == name }) {
		return fmt.Errorf("scheduler: role %q of the leader was added already; give this one another name", name)
	}
	x := &role{name: name, f: f}
	r.list = append(r.list, x)
	r.callLocked(x)
	return nil
}

func (r *roles) any() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.list) > 0
}

// begin has the roles called in a term, unless that has ended already.
func (r *roles) begin(t *term) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.ended {
		return
	}
	r.now = t
	for _, x := range r.list {
		r.callLocked(x)
	}
}

// end ends a term, with the cause; t.done and t.quiet are closed later.
func (r *roles) end(t *term, cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.ended {
		return
	}
	t.ended = true
	if r.now == t {
		r.now = nil
	}
	t.cancel(cause)
	t.late = time.AfterFunc(r.patience, func() { r.leaveBehind(t) })
	r.settleLocked(t)
}

// settleLocked notes where all roles of a term that has ended have returned.
func (r *roles) settleLocked(t *term) {
	if !t.ended || t.calls > 0 {
		return
	}
	close(t.quiet)
	if t.late.Stop() { // else they were left behind, or are about to be
		close(t.done)
	}
}

func (r *roles) leaveBehind(t *term) {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(t.done)
	if t.calls > 0 {
		r.log.Error("roles of the leader did not return when their term was over; they are left behind, and another replica may lead meanwhile",
			"roles", names(r.playingLocked(t)), "term", t.number)
	}
}

// playingLocked names the roles whose call in a term has not returned.
func (r *roles) playingLocked(t *term) (names []string) {
	for _, x := range r.list {
		if x.in == t {
			names = append(names, x.name)
		}
	}
	return names
}

// callLocked has a role called, unless it still is.
func (r *roles) callLocked(x *role) {
	t := r.now
	if t == nil || x.in != nil {
		return
	}
	x.in = t
	t.calls++
	r.spawn(func() {
		r.play(x, t)
		r.mu.Lock()
		defer r.mu.Unlock()
		x.in = nil
		t.calls--
		r.settleLocked(t)
		if r.now != t {
			r.callLocked(x)
		}
	})
}

// play calls a role in a term, again and again unless it is done for that.
func (r *roles) play(x *role, t *term) {
	log := r.log.With("role", x.name, "term", t.number)
	ctx := jobs.WithLogger(t.ctx, log)
	pauses := newPauses()
	for t.ctx.Err() == nil {
		began := time.Now()
		err := sheltered(func() error { return x.f(ctx, t.number) })
		over := t.ctx.Err() != nil
		switch {
		case err == nil && !over:
			log.Info("a role of the leader is done for this term")
			return
		case over && !errors.Is(err, errPanic): // such as the context's own
			return
		}
		pause := pauses.after(time.Since(began))
		log.Error("a role of the leader failed; it is called again while the term lasts", "in", pause, "err", err)
		wait(t.ctx, pause)
	}
}

// Pauses between calls of what failed, before their jitter, which makes the last ones a minute at most.
const (
	firstPause = time.Second
	lastPause  = 40 * time.Second
)

// pauses grow, with jitter.
type pauses struct{ backoff.ExponentialBackOff }

func newPauses() *pauses {
	return &pauses{backoff.ExponentialBackOff{InitialInterval: firstPause, MaxInterval: lastPause, Multiplier: 2, RandomizationFactor: 0.5}}
}

// after is the pause after a call that took so long; one that went well for long makes it short again.
func (p *pauses) after(took time.Duration) time.Duration {
	if took > lastPause {
		p.Reset()
	}
	return p.NextBackOff()
}

// wait waits, until ctx ends at most.
func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

var errPanic = errors.New("panic")

// sheltered calls f in a goroutine of its own, so that a panic, and the end of the goroutine, are an error.
func sheltered(f func() error) error {
	done := make(chan error, 1)
	go func() {
		err := fmt.Errorf("%w: it ended its goroutine (runtime.Goexit) instead of returning", errPanic)
		defer func() {
			if v := recover(); v != nil {
				err = fmt.Errorf("%w: %v\n\n%s", errPanic, v, debug.Stack())
			}
			done <- err
		}()
		err = f()
	}()
	return <-done
}
