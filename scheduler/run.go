package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/belfry-go/belfry/internal/core"
)

// runner is one Run: the loop that owns the core, and the goroutines that act for it.
type runner struct {
	s    *Scheduler
	cfg  Config
	core *core.Core
	mail *mailbox
	log  *slog.Logger

	base  context.Context // of calls and handlers; it outlives the end of Run's own
	end   context.CancelFunc
	start time.Time // origin of the monotonic clock

	ours     sync.WaitGroup // calls, ring, pulls, waits for roles
	told     chan struct{}  // closed when the last announcement was told, or given up
	users    sync.WaitGroup // handlers, key sources, roles, the elector and hints, which may not come back
	cancels  map[int64]context.CancelCauseFunc
	streams  map[int64]*stream
	states   chan core.Announce // the latest announcement; has room for one, closed after the loop
	observer *observer
	load     Load // as it was told last

	stopped *core.Stopped
	failed  error
	state   core.Announce
	session bool // one has our jobs, or there is no store
	inRing  bool

	trusted   atomic.Pointer[core.Instant] // until when our session is, as of the last step; nil: there is none
	roles     *roles
	leading   leading
	candidacy candidacy
}

func newRunner(s *Scheduler) *runner {
	c := s.cfg
	boot := uuid.NewString()
	if b, ok := c.Members.(Booted); ok {
		boot = b.Boot()
	}
	cc := core.Config{
		Namespace: c.Namespace, Replica: c.Members.Self(), Boot: boot,
		Partitions: s.partitions, Concurrency: c.Concurrency,
		Lease: c.Lease, Grace: c.Grace, Sweep: c.Sweep, Drain: c.Drain,
		MissedAfter: c.MissedAfter, Horizon: c.Horizon, Retention: c.Retention, Tolerance: tolerance,
		Store: c.Store != nil, Elector: c.Elector != nil,
		Rand: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
	}
	return &runner{
		s: s, cfg: c, mail: s.mail, session: c.Store == nil, roles: &s.roles,
		log:     c.Logger.With("namespace", c.Namespace, "replica", c.Members.Self()),
		core:    core.New(cc),
		cancels: map[int64]context.CancelCauseFunc{}, streams: map[int64]*stream{},
		states: make(chan core.Announce, 1), told: make(chan struct{}),
		candidacy: candidacy{pauses: newPauses()},
	}
}

func (r *runner) run(ctx context.Context) error {
	r.base, r.end = context.WithCancel(context.WithoutCancel(ctx))
	r.start = time.Now()
	r.roles.prepare(r)
	r.observer = newObserver(r.base, r.cfg.Hooks, r.log)
	r.tellZones()
	r.hearFences() // before a session is opened
	r.ours.Go(r.watchRing)
	r.ours.Go(r.watchZones)
	if m, ok := r.cfg.Members.(Hinter); ok {
		r.ours.Go(func() { r.hearHints(m.Hints()) })
	}
	go r.announce()
	r.loop(ctx)
	r.leaveElection()
	r.finishUsers()
	close(r.states)
	<-r.told
	r.end()
	r.ours.Wait()
	r.observer.close()
	return r.result()
}

// loop owns the core. Everything else talks to it through the mailbox.
func (r *runner) loop(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	done := ctx.Done()
	for r.stopped == nil && r.failed == nil {
		select {
		case <-done:
			done = nil
			why := whyEnded(ctx)
			r.log.Info("draining", "within", r.cfg.Drain, "why", why)
			r.mail.post(core.Stop{Why: why})
		case <-r.mail.notify:
		case <-timer.C:
		}
		events := r.mail.take()
		r.forget(events)
		for _, a := range r.core.Step(r.now(), r.heed(events)...) {
			r.perform(a)
		}
		r.trusted.Store(r.core.Trusted())
		r.observeLoad()
		r.warnLeaderless()
		timer.Reset(r.core.Wake() - r.now().Mono)
	}
}

// whyEnded says why Run is to end, for those who see this replica drain: the context's cause if it has one, such as a signal.
func whyEnded(ctx context.Context) string {
	if cause := context.Cause(ctx); cause != ctx.Err() {
		return cause.Error()
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return "the deadline of the program's context passed"
	}
	return "the program's context ended"
}

func (r *runner) now() core.Instant {
	t := time.Now()
	return core.Instant{Mono: t.Sub(r.start), Wall: t.Round(0).UTC()}
}

// forget drops what belonged to handlers that have returned, and notes what the runner itself has to know.
func (r *runner) forget(events []core.Event) {
	for _, e := range events {
		switch e := e.(type) {
		case core.Ended:
			delete(r.cancels, e.Handle)
		case core.Streamed:
			if e.End {
				r.closeStream(e.Stream)
			}
		case core.JobsChanged:
			r.needLeader(e)
		case core.RingChanged:
			r.inRing = e.Ring != nil && len(e.Ring.Owned(r.cfg.Members.Self())) > 0
			r.report()
		}
	}
}

func (r *runner) perform(a core.Action) {
	switch a := a.(type) {
	case *core.Call:
		r.ours.Go(func() { r.call(a) })
	case core.Start:
		r.startHandler(a)
	case core.Cancel:
		if cancel := r.cancels[a.Handle]; cancel != nil {
			cancel(a.Cause)
		}
	case core.OpenStream:
		r.openStream(a)
	case core.Pull:
		if s := r.streams[a.Stream]; s != nil {
			s.pulls <- a.Max
		}
	case core.CloseStream:
		r.closeStream(a.Stream)
	case core.Announce:
		if r.failed == nil { // else Run returns why
			r.logState(r.state.State, a)
		}
		r.state = a
		r.report()
		r.tell(a)
	case core.Hint:
		r.hint(a)
	case core.Stand:
		r.stand(a.On)
	case core.Lead:
		r.lead(a.Term)
	case core.Failed:
		r.failed = a.Err
	case core.Stopped:
		r.stopped = &a
	default:
		r.observe(a)
	}
}

// call makes one call of the store, and brings its answer back.
func (r *runner) call(c *core.Call) {
	ctx, cancel := context.WithTimeout(r.base, c.Within)
	defer cancel()
	began := time.Now()
	reply := c.Do(ctx, r.cfg.Store)
	r.observer.called(Call{Name: c.Name, Took: time.Since(began), Err: reply.Err()})
	r.mail.post(reply)
}

// finishUsers gives key sources that were just told to end a moment to do so, and the last hints to be sent. A
// handler that was cut off is not waited for.
func (r *runner) finishUsers() {
	for id := range r.streams {
		r.closeStream(id)
	}
	for _, cancel := range r.cancels {
		cancel(context.Canceled)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.users.Wait()
	}()
	select {
	case <-done:
	case <-time.After(time.Second):
		r.log.Warn("a handler, a KeySource, a role, the elector or a hint did not return when its context ended; it is left behind")
	}
}

func (r *runner) result() error {
	switch {
	case r.failed != nil:
		return fmt.Errorf("scheduler: namespace %q: %w", r.cfg.Namespace, r.failed)
	case len(r.stopped.Cut) > 0:
		return fmt.Errorf("scheduler: stopped with %d runs cut off, which other replicas repeat, or record as abandoned where they must not be: %s", len(r.stopped.Cut), names(r.stopped.Cut))
	}
	r.log.Info("stopped")
	return nil
}

// names lists the first few.
func names(ids []string) string {
	const most = 10
	if len(ids) > most {
		return strings.Join(ids[:most], ", ") + ", …"
	}
	return strings.Join(ids, ", ")
}
