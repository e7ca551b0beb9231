package schedulertest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/scheduler"
)

func nameOf(replica int) string { return fmt.Sprintf("replica-%d", replica) }

// process is one replica from its start to its end.
type process struct {
	cluster   *Cluster
	name      string
	scheduler *scheduler.Scheduler
	seat      *seat
	stop      context.CancelFunc // as SIGTERM does
	ended     chan struct{}      // closed when Run has returned, after err is set
	err       error

	life    context.Context // ends by a crash
	die     context.CancelFunc
	crashed atomic.Bool
}

// launch starts a process.
func (c *Cluster) launch(replica int) {
	c.t.Helper()
	p := &process{cluster: c, name: nameOf(replica), ended: make(chan struct{})}
	p.life, p.die = context.WithCancel(context.WithoutCancel(c.context()))
	p.seat = c.network.join(p.name, fmt.Sprintf("%s-%d", p.name, len(c.started)))
	config := p.config(c.config)
	if c.options.ElectorOf != nil {
		config.Elector = c.options.ElectorOf(replica)
	}
	s, err := scheduler.New(config)
	if err != nil {
		c.t.Fatal(err)
	}
	if err := s.Add(c.options.JobsOf(replica)...); err != nil {
		c.t.Fatal(err)
	}
	if c.options.RolesOf != nil {
		for name, f := range c.options.RolesOf(replica) {
			if err := s.OnLeader(name, f); err != nil {
				c.t.Fatal(err)
			}
		}
	}
	p.scheduler = s
	ctx, stop := context.WithCancel(context.WithoutCancel(c.context())) // the end of the test is end's to deal with
	p.stop = stop
	c.replicas[replica] = p
	c.started = append(c.started, p)
	go func() {
		defer close(p.ended)
		p.err = s.Run(ctx)
	}()
}

// config is the replica's own: what leaves the process passes a gate that a crash closes.
func (p *process) config(c scheduler.Config) scheduler.Config {
	c.Members = p.seat
	c.Store = &door{Memory: p.cluster.store, p: p}
	c.Logger = slog.New(gate{c.Logger.Handler(), p})
	c.Middleware = append([]scheduler.Middleware{p.watch}, c.Middleware...)
	hooks := []scheduler.Hooks{{Finished: p.finished}}
	for _, h := range c.Hooks {
		hooks = append(hooks, p.gated(h))
	}
	c.Hooks = hooks
	return c
}

var errCrashed = errors.New("schedulertest: the replica has crashed")

// kill is a crash. What the process still does, nobody sees.
func (p *process) kill() {
	p.crashed.Store(true)
	p.die()
	p.seat.vanish()
	p.stop() // so that its goroutines end
}

// attempt is a handler at work.
type attempt struct{ id string }

// watch is the outermost middleware: it knows what is at work, and ends it by a crash.
func (p *process) watch(next jobs.Handler) jobs.Handler {
	return func(ctx context.Context, o jobs.Occurrence) error {
		if p.crashed.Load() {
			return errCrashed
		}
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(p.life, func() { cancel(errCrashed) })()
		c, a := p.cluster, &attempt{id: o.ID()}
		c.handlers.Add(1)
		defer c.handlers.Done()
		c.begin(p, a, o)
		defer c.returned(a)
		return next(ctx, o)
	}
}

func (c *Cluster) begin(p *process, a *attempt, o jobs.Occurrence) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.working[a] = struct{}{}
	if o.Fence == 0 {
		c.beginLocalLocked(p, o)
	}
}

func (c *Cluster) returned(a *attempt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.working, a)
}
