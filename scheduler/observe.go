package scheduler

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/internal/core"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/ring"
)

// observer calls the hooks, in order, from one goroutine of its own. It never
// makes anybody wait: what finds no room is dropped and counted.
type observer struct {
	ctx     context.Context
	hooks   []Hooks
	log     *slog.Logger
	dropped atomic.Int64

	// queue has room for maxObserved; close closes it, after which nothing may be observed.
	queue chan func(Hooks)
	done  chan struct{} // closed when the goroutine has ended
}

// maxObserved is how many observations may wait, closeWithin how long close waits for them.
const (
	maxObserved = 8192
	closeWithin = time.Second
)

func newObserver(ctx context.Context, hooks []Hooks, log *slog.Logger) *observer {
	o := &observer{ctx: ctx, hooks: hooks, log: log, queue: make(chan func(Hooks), maxObserved), done: make(chan struct{})}
	go o.run()
	return o
}

func (o *observer) run() {
	defer close(o.done)
	for f := range o.queue {
		for _, h := range o.hooks {
			o.call(f, h)
		}
		if n := o.dropped.Swap(0); n > 0 {
			o.log.Warn("hooks are too slow; observations were dropped", "dropped", n)
		}
	}
}

// call keeps a hook's panic from ending the process.
func (o *observer) call(f func(Hooks), h Hooks) {
	defer func() {
		if v := recover(); v != nil {
			o.log.Error("a hook panicked", "panic", v)
		}
	}()
	f(h)
}

func (o *observer) close() {
	close(o.queue)
	select {
	case <-o.done:
	case <-time.After(closeWithin):
		o.log.Warn("a hook does not return; it is left behind")
	}
}

// put reports whether there was room.
func (o *observer) put(f func(Hooks)) bool {
	if len(o.hooks) == 0 {
		return true
	}
	select {
	case o.queue <- f:
		return true
	default:
		o.dropped.Add(1)
		return false
	}
}

// notify queues one value for one hook, if that is set, and reports whether there was room.
func notify[T any](o *observer, hook func(Hooks) func(context.Context, T), v T) bool {
	return o.put(func(h Hooks) {
		if f := hook(h); f != nil {
			f(o.ctx, v)
		}
	})
}

func (o *observer) started(occ jobs.Occurrence) {
	notify(o, func(h Hooks) func(context.Context, jobs.Occurrence) { return h.Started }, occ)
}

func (o *observer) called(c Call) {
	notify(o, func(h Hooks) func(context.Context, Call) { return h.Called }, c)
}

// moved tells the rings as they follow each other; nil is one that nobody owns anything of.
func (o *observer) moved(before, now *ring.Ring) {
	var m Moved
	if now != nil {
		m.Members = now.Members()
	}
	if before != nil && now != nil {
		m.Moves = ring.Plan(before, now)
	}
	notify(o, func(h Hooks) func(context.Context, Moved) { return h.Moved }, m)
}

// observeLoad tells how many handlers are at work, if that has changed since it was told; where there was no room,
// after the next step again.
func (r *runner) observeLoad() {
	l := Load{Running: len(r.cancels), Workers: r.cfg.Concurrency}
	if l != r.load && notify(r.observer, func(h Hooks) func(context.Context, Load) { return h.Load }, l) {
		r.load = l
	}
}

// observe logs what the core saw, and tells the hooks.
func (r *runner) observe(a core.Action) {
	o := r.observer
	switch a := a.(type) {
	case core.Finished:
		r.logFinished(a)
		notify(o, func(h Hooks) func(context.Context, Finished) { return h.Finished }, Finished(a))
	case core.Refused:
		r.debug("refused", a.Occurrence, "cause", a.Cause)
		notify(o, func(h Hooks) func(context.Context, Refused) { return h.Refused }, Refused(a))
	case core.Decided:
		r.logDecided(a)
		notify(o, func(h Hooks) func(context.Context, Decided) { return h.Decided }, Decided(a))
	case core.TakenUp:
		r.log.Info("took a run up whose replica is gone", about(a.Occurrence, "crashes", a.Crashes)...)
		notify(o, func(h Hooks) func(context.Context, TakenUp) { return h.TakenUp }, TakenUp(a))
	case core.Hedged:
		r.debug("claimed a run that its owner did not move", a.Occurrence)
		notify(o, func(h Hooks) func(context.Context, jobs.Occurrence) { return h.Hedged }, a.Occurrence)
	case core.Stuck:
		r.log.Warn("a handler ignores its ended context; its worker stays taken", about(a.Occurrence, "cause", a.Cause)...)
		notify(o, func(h Hooks) func(context.Context, jobs.Occurrence) { return h.Stuck }, a.Occurrence)
	case core.Renewed:
		r.ours.Go(r.hearFences) // in time for the next one
		if a.Opened {
			r.log.Info("session opened", "session", a.Session, "offset", a.Offset)
		}
		notify(o, func(h Hooks) func(context.Context, Renewed) { return h.Renewed }, Renewed{Session: a.Session, Offset: a.Offset})
	case core.Declared:
		r.session = true
		r.report()
	case core.Lost:
		r.session = false
		r.report()
		r.log.Warn("session lost; its handlers are canceled and a new one is opened", "session", a.Session, "why", a.Why)
	case core.Led:
		r.observeLeader(a)
	case core.Orphaned:
		r.logOrphan(a)
		notify(o, func(h Hooks) func(context.Context, idempotency.Orphan) { return h.Orphaned }, idempotency.Orphan(a))
	case core.Skewed:
		r.logSkew(a)
	case core.NoMoreDues:
		r.log.Warn("the schedule has no further due; the job runs no more unless its schedule is changed", "job", a.Job, "schedule", a.Schedule)
	case core.WallStepped:
		r.log.Info("this host's clock was set, or the host was suspended; efficiency jobs go on from what it says now", "by", a.By)
	case core.SteppedBack:
		r.log.Warn("the store's clock stepped back; jobs wait until it has caught up", "by", a.By)
	case core.Problem:
		if a.Job == "" {
			r.log.Error("a problem that somebody has to mend", "err", a.Err)
			return
		}
		r.log.Error("a problem that somebody has to mend", "job", a.Job, "due", a.Due, "err", a.Err)
	}
}

// logSkew logs that the host's clock differs from the store's, and that it no longer does.
func (r *runner) logSkew(a core.Skewed) {
	if a.Fine {
		r.log.Info("this host's clock and the store's agree again", "offset", a.Offset)
		return
	}
	ahead := "this host's"
	if a.Offset > 0 {
		ahead = "the store's"
	}
	r.log.Warn("this host's clock differs from the store's: correctness jobs run on the store's time and are not affected, efficiency jobs run on this host's; keep both hosts in step by NTP",
		"by", a.Offset.Abs(), "ahead", ahead)
}

// logOrphan logs that nobody has the code of a job.
func (r *runner) logOrphan(a core.Orphaned) {
	if a.Retired {
		r.log.Warn("a job is retired, since no live replica has had its code for long: what was left of it is recorded as missed, skipped or failed", "job", a.Job, "for", a.For)
		return
	}
	r.log.Warn("no live replica has a job's code, so that it does not run; deploy it again, or let it be retired", "job", a.Job, "for", a.For)
}

// logState logs that this replica is out of the ring, and that it is back.
func (r *runner) logState(before string, now core.Announce) {
	switch {
	case now.State == core.Unfit:
		r.log.Error("unfit: others own this replica's keys until that is mended; where all are unfit, all own", "reason", now.Reason)
	case before == core.Unfit && now.State == core.Serving:
		r.log.Info("fit again")
	}
}

func (r *runner) logFinished(a core.Finished) {
	switch {
	case a.Outcome == idempotency.Failed:
		why := []any{"reason", a.Reason}
		if a.Err != nil { // none where it ended without its handler, such as abandoned
			why = append(why, "err", a.Err)
		}
		r.log.Error("run failed for good", about(a.Occurrence, why...)...)
	case a.Outcome == idempotency.Wait && a.Err != nil:
		r.debug("attempt failed; the run waits for another", a.Occurrence, "reason", a.Reason, "err", a.Err)
	case a.Outcome == idempotency.Done && a.Err != nil:
		r.log.Warn("a handler ended with an error after its run was completed; the run stays done", about(a.Occurrence, "err", a.Err)...)
	default:
		r.debug("run ended", a.Occurrence, "reason", a.Reason, "late", a.Late, "took", a.Took)
	}
}

func (r *runner) logDecided(a core.Decided) {
	if a.Missed > 0 {
		r.log.Warn("dues were missed", "job", a.Job, "missed", a.Missed, "run", len(a.Dues))
		return
	}
	r.log.Debug("opened", "job", a.Job, "dues", a.Dues, "paused", a.Paused, "too late", a.TooLate)
}

// debug logs something of one run, if anybody looks: there may be thousands a second.
func (r *runner) debug(msg string, o jobs.Occurrence, more ...any) {
	if r.log.Enabled(r.base, slog.LevelDebug) {
		r.log.Debug(msg, about(o, more...)...)
	}
}

// about is the attributes that name a run; the request only where a person asked for it, the term only where a leader claimed it.
func about(o jobs.Occurrence, more ...any) []any {
	a := []any{"job", o.Job, "key", o.Key, "due", o.Due}
	if o.Request != "" {
		a = append(a, "request", o.Request)
	}
	if o.Term > 0 {
		a = append(a, "term", o.Term)
	}
	return append(append(a, "fence", o.Fence, "attempt", o.Attempt), more...)
}
