package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/ring"
)

// Members is what a scheduler needs to know of its cluster; membership.Cluster
// and membership.Static are ones. It has only built-in types, so that neither
// package imports the other. All methods are safe for concurrent use.
type Members interface {
	// Self is this replica's human name.
	Self() string

	// Watch returns the sorted names of the members that own keys now, and a
	// channel that is closed once a newer list exists.
	Watch() (owners []string, changed <-chan struct{})

	// Announce tells the others this replica's state (serving, draining or unfit), its ring layout, a reason for
	// people, and facts for the others: under "zones" the version of its zone data; under "store" the identity of the
	// store that it works with, from when it knows one, under "fence" the highest fence that it has seen there, for
	// those who are new, and "rolled-back" where it saw that store go back behind it. All of them take 145 bytes at
	// most, with 3 for each. Each announcement replaces the one before; they are made one at a time, and ctx ends as
	// soon as a newer one is there, to which Announce then makes room.
	Announce(ctx context.Context, state, layout, reason string, facts map[string]string) error

	// Facts returns what the others announced, by member name.
	Facts() map[string]map[string]string
}

// Booted is a further power of Members: the boot id of this process, so that
// a member, a session and a log line tell of one process.
type Booted interface{ Boot() string }

// Namespaced is a further power of Members: the namespace that they meet in. New refuses another one than the Config's: such
// replicas would share one ring, and each namespace would run its own part of it.
type Namespaced interface{ Namespace() string }

// Explained is a further power of Members: why this replica owns nothing. Reason is asked by Ready, and never blocks.
type Explained interface{ Reason() string }

// Hinter is a further power of Members: to tell one member to sweep now, since something lies there for it. A replica
// that stops hints those who own now what was its own, so that they take up at once what it gave back, and not at
// their next sweep. A hint may be lost, late, doubled or a lie; it only makes a sweep come sooner, and more than ten
// a second have no effect.
type Hinter interface {
	// Hint tells a member by its name, and waits until that is sent or ctx ends. Several may be under way at once.
	Hint(ctx context.Context, member string) error

	// Hints has a token when this replica was hinted. It has room for one, so that those which nobody took yet
	// are one, and is never closed. One Scheduler takes them.
	Hints() <-chan struct{}
}

// Missing is a further power of Members: who is missing. Jobs with a Posture need it.
type Missing interface {
	// Missing returns the sorted names of members that vanished without leaving within jobs.MissingFor, as far as this process
	// has seen: they crashed, or cannot be reached. A name that lives again, as any process, is back. It never blocks. It is asked
	// when the owners change, and once a Sweep.
	Missing() []string
}

// Elector elects one of the replicas that ask it; membership/etcdelector has one. Its term rises with each leader.
type Elector interface {
	// Lead has this replica elected until ctx ends, again and again: each time it is, it calls lead with a context that ends when the term
	// is over, or when its end cannot be ruled out, which is before another replica is elected; and with the term, which is above
	// that of each leader before. It waits for lead to return before it resigns or is elected again; a lead that returns early
	// resigns. Calls of lead never overlap. When ctx ends it resigns and returns nil; another error says what to mend.
	Lead(ctx context.Context, lead func(ctx context.Context, term int64) error) error
}

// Middleware wraps every handler, the first one outermost.
type Middleware = func(jobs.Handler) jobs.Handler

// Config says how a replica runs. The zero Config is one replica alone with a
// store in memory. Zero means the default; New refuses what makes no sense and
// names every problem at once.
type Config struct {
	// Namespace separates services that share a store, and is part of every
	// run's identity: [A-Za-z0-9._-]{1,64}. Required with a Store or Members;
	// default "local" without both. All replicas of a service use the same.
	Namespace string

	// Members says who is alive; one Scheduler uses it, since its states are the replica's. Nil: this replica is
	// alone, and logs that it is.
	Members Members

	// Store decides who wins; all replicas share it. Nil with Members: only
	// efficiency jobs can be added. Nil without Members: a store in memory,
	// which forgets all at exit. It stays the caller's to close, after Run.
	Store idempotency.Store

	// Elector elects the leader, for jobs of jobs.Leader and for OnLeader. Nil: the Store does, by a row that is bound to the
	// replicas' sessions, so that a new leader follows a Lease after one that died. All replicas have the same.
	Elector Elector

	// Ring is the layout of ownership, equal on all replicas. Nil: the default.
	Ring *ring.Options

	// Concurrency is how many handlers run at once on this replica. More runs a
	// backlog down faster and claims in larger batches. Default 4 x GOMAXPROCS.
	Concurrency int

	// Lease is how long a silent replica's runs stay its own: the bound on how late a crash is noticed by the store. It
	// is renewed five times in that time, and a call of the store may take Lease/5. Shorter fails over faster and
	// tolerates less of a slow store. Default 10 s, at least 1 s.
	Lease time.Duration

	// Grace is how long each ring successor waits for those before it to move
	// what they own. Default 1 s.
	Grace time.Duration

	// Sweep is how often a replica looks for what was left lying. Default 1 s.
	Sweep time.Duration

	// Drain is how long Run waits for running handlers once its context ended, unless Scheduler.Hurry is called; then they are canceled and what returns
	// is released, which takes up to 2 s + 2/5 of a Lease more. Default 25 s, <0: not at all.
	Drain time.Duration

	// MissedAfter is how late a due may be opened and never be missed. What becomes of older ones, Job.Missed says. With
	// Job.Spread it counts from the start, and of a job with keys from its last start. Default 1 min.
	MissedAfter time.Duration

	// Horizon is how old a due may be and still be claimed for the first time, and
	// the most that a job's Missed.MaxAge can be. Default 24 h.
	Horizon time.Duration

	// Retention is how long ended runs are kept; above Horizon. Default 7 days.
	Retention time.Duration

	// Logger gets what an operator acts on at Info and above, each run at
	// Debug. Nil: slog.Default().
	Logger *slog.Logger

	// Hooks observe. They run beside the scheduler and never delay it.
	Hooks []Hooks

	// Middleware wraps every handler.
	Middleware []Middleware
}

// tolerance is how far ahead of the store's clock a due may be claimed.
const tolerance = 100 * time.Millisecond

func (c Config) withDefaults() Config {
	if c.Namespace == "" && c.Store == nil && c.Members == nil {
		c.Namespace = "local"
	}
	if c.Concurrency == 0 {
		c.Concurrency = 4 * runtime.GOMAXPROCS(0)
	}
	for _, d := range []struct {
		v *time.Duration
		d time.Duration
	}{
		{&c.Lease, 10 * time.Second}, {&c.Grace, time.Second}, {&c.Sweep, time.Second},
		{&c.Drain, 25 * time.Second}, {&c.MissedAfter, time.Minute},
		{&c.Horizon, 24 * time.Hour}, {&c.Retention, 7 * 24 * time.Hour},
	} {
		if *d.v == 0 {
			*d.v = d.d
		}
	}
	c.Drain = max(c.Drain, 0)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

func (c Config) validate() error {
	var errs []error
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf("scheduler: "+format, a...)) }
	if c.Namespace == "" {
		bad("Namespace is empty; set it to the service's name, equal on all its replicas")
	} else if err := jobs.ValidateName(c.Namespace); err != nil {
		bad("Namespace: %w", err)
	} else if m, ok := c.Members.(Namespaced); ok && m.Namespace() != c.Namespace {
		bad("Namespace is %q, and that of Members is %q; give both the same, as on all replicas of the service", c.Namespace, m.Namespace())
	}
	for i, m := range c.Middleware {
		if m == nil {
			bad("Middleware[%d] is nil; leave it out", i)
		}
	}
	if c.Concurrency < 0 {
		bad("Concurrency is %d; set it above 0, or to 0 for the default", c.Concurrency)
	}
	if c.Lease < time.Second {
		bad("Lease is %v; set it to 1s or more", c.Lease)
	}
	for _, f := range []struct {
		name string
		d    time.Duration
	}{{"Grace", c.Grace}, {"Sweep", c.Sweep}, {"MissedAfter", c.MissedAfter}, {"Horizon", c.Horizon}} {
		if f.d <= 0 {
			bad("%s is %v; set it above 0, or to 0 for the default", f.name, f.d)
		}
	}
	if c.Grace > c.Lease || c.Sweep > c.Lease {
		bad("Grace %v and Sweep %v must not be above Lease %v; what a dead replica left would lie for longer than its lease", c.Grace, c.Sweep, c.Lease)
	}
	if c.Horizon < c.MissedAfter {
		bad("Horizon %v is below MissedAfter %v; a due that always runs must be claimable", c.Horizon, c.MissedAfter)
	}
	if c.Retention <= c.Horizon {
		bad("Retention %v is not above Horizon %v; a late replica could run a forgotten due again", c.Retention, c.Horizon)
	}
	return errors.Join(errs...)
}
