package schedulertest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/scheduler"
)

// Options say what cluster a test wants. nil is the zero Options.
type Options struct {
	// Replicas is how many replicas start. 0: 3. They are counted from 0, and their names are "replica-0" and so on.
	Replicas int

	// Start is when the cluster starts: dues after it run. Zero: when a bubble's clock starts, at midnight of
	// 2000-01-01, UTC. Not before that.
	Start time.Time

	// JobsOf returns the jobs with which a replica starts, in the bubble, each time that it does; after a Stop or a Crash they may
	// be others, as in a deploy. nil: those given to Test, for all.
	JobsOf func(replica int) []jobs.Job

	// RolesOf returns the roles of the leader, by name, with which a replica starts, as JobsOf does the jobs: see
	// scheduler.Scheduler.OnLeader. Their contexts end by a crash too. nil: none.
	RolesOf func(replica int) map[string]Role

	// ElectorOf returns the elector with which a replica starts, as JobsOf does the jobs: such as its part in a membership/electortest.Static by which the test
	// decides who leads. That has channels, so make it in here too, at the first call. nil: Config.Elector, and if
	// that is nil too the store elects.
	ElectorOf func(replica int) scheduler.Elector

	// Config is that of every replica. Members and Store are left nil, since the test brings its own. Hooks and Middleware are
	// called by all replicas, at the same time too. What is zero has these defaults here:
	//
	//   - Namespace "test"; Concurrency 8; Logger: the test's log, at Info and above
	//   - Sweep 10 s, Grace 3 sweeps and Lease 12 sweeps, so that a day costs little. What a crashed replica had at work is taken
	//     up a Lease later, and what waits for another attempt starts up to a Sweep late. What a day costs
	//     depends on these: for a test of months set Sweep to 10 minutes
	//   - Retention 100 years, so that Runs tells all
	Config scheduler.Config
}

// Role is what OnLeader adds to a scheduler.
type Role = func(ctx context.Context, term int64) error

// Defaults of Options.
const (
	defaultReplicas    = 3
	defaultConcurrency = 8
	defaultSweep       = 10 * time.Second
	sweepsPerGrace     = 3
	sweepsPerLease     = 12
	defaultRetention   = 100 * 365 * 24 * time.Hour
)

// Test runs f in a synctest bubble with a cluster whose replicas have the jobs and are ready. It ends what f left
// running, also where f fails: handlers' contexts end, and Test waits for them. A handler that does not return then fails the
// test. What makes no sense, such as a job that Scheduler.Add refuses, is a t.Fatal that says what to do.
func Test(t *testing.T, o *Options, list []jobs.Job, f func(t *testing.T, c *Cluster)) {
	t.Helper()
	if o == nil {
		o = &Options{}
	}
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		c := newCluster(t, *o, list)
		defer c.end()
		c.startAll()
		f(t, c)
	})
}

// Cluster is the replicas of one test. Its methods are for the function given to Test, and not for other goroutines. An
// index of a replica that is not there, and the like, is a t.Fatal.
type Cluster struct {
	t        *testing.T
	options  Options
	config   scheduler.Config
	network  *network
	store    *idempotency.Memory
	replicas []*process // by index; nil: it is not running
	started  []*process // all that ever were

	handlers sync.WaitGroup
	mu       sync.Mutex
	working  map[*attempt]struct{}
	local    map[localKey]*Run // of efficiency jobs
}

func newCluster(t *testing.T, o Options, list []jobs.Job) *Cluster {
	t.Helper()
	var errs []error
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf("schedulertest: "+format, a...)) }
	if o.Replicas < 0 {
		bad("Options.Replicas is %d; set it above 0, or to 0 for %d", o.Replicas, defaultReplicas)
	}
	if now := time.Now(); !o.Start.IsZero() && o.Start.Before(now) {
		bad("Options.Start is %v; a bubble's clock starts at %v and never goes back, so set it later", o.Start, now)
	}
	if o.Config.Members != nil || o.Config.Store != nil {
		bad("Options.Config has Members or a Store; leave both nil, since the test brings its own")
	}
	if o.JobsOf != nil && list != nil {
		bad("there are jobs for Test and Options.JobsOf too; pass nil for the jobs, or leave JobsOf nil")
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if o.Replicas == 0 {
		o.Replicas = defaultReplicas
	}
	if o.JobsOf == nil {
		o.JobsOf = func(int) []jobs.Job { return list }
	}
	return &Cluster{
		t: t, options: o, config: withDefaults(t, o.Config),
		network: newNetwork(), store: idempotency.NewMemory(nil),
		replicas: make([]*process, o.Replicas), working: map[*attempt]struct{}{}, local: map[localKey]*Run{},
	}
}

func withDefaults(t *testing.T, c scheduler.Config) scheduler.Config {
	if c.Namespace == "" {
		c.Namespace = "test"
	}
	if c.Concurrency == 0 {
		c.Concurrency = defaultConcurrency
	}
	if c.Sweep == 0 {
		c.Sweep = defaultSweep
		if c.Lease > 0 {
			c.Sweep = min(c.Sweep, c.Lease/sweepsPerLease)
		}
	}
	if c.Grace == 0 {
		c.Grace = sweepsPerGrace * c.Sweep
		if c.Lease > 0 {
			c.Grace = min(c.Grace, c.Lease)
		}
	}
	if c.Lease == 0 {
		c.Lease = max(sweepsPerLease*c.Sweep, c.Grace)
	}
	if c.Retention == 0 {
		c.Retention = defaultRetention
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	return c
}

func (c *Cluster) startAll() {
	c.t.Helper()
	if start := c.options.Start; !start.IsZero() {
		time.Sleep(time.Until(start))
	}
	for i := range c.replicas {
		c.launch(i)
	}
	for i := range c.replicas {
		c.awaitReady(i)
	}
}

// handlersWithin is how long, by the bubble's clock, handlers may take to return at the end.
const handlersWithin = 24 * time.Hour

// end ends what still runs, and waits for all that was started.
func (c *Cluster) end() {
	for _, p := range c.replicas {
		if p != nil {
			p.kill()
		}
	}
	for _, p := range c.started {
		<-p.ended
	}
	returned := make(chan struct{})
	go func() {
		c.handlers.Wait()
		close(returned)
	}()
	select {
	case <-returned:
	case <-time.After(handlersWithin):
		c.t.Errorf("schedulertest: the contexts of these runs have ended, and their handlers do not return, so that the test cannot end; let a handler return when its context ends: %s",
			strings.Join(c.atWork(), ", "))
	}
}

// Client returns a client of the cluster's store, for controls such as Trigger and Pause. They take effect on the replicas within two sweeps.
func (c *Cluster) Client() *scheduler.Client {
	c.t.Helper()
	client, err := scheduler.NewClient(c.config.Namespace, c.store)
	if err != nil {
		c.t.Fatal(err)
	}
	return client
}

// Context of the test; it ends with it.
func (c *Cluster) context() context.Context { return c.t.Context() }
