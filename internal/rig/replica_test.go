//go:build unix

package rig

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"os/signal"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/internal/procs"
	"github.com/belfry-go/belfry/internal/storecut"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/membership"
	"github.com/belfry-go/belfry/scheduler"
)

const (
	namespace  = "rig"
	openWithin = 2 * time.Minute
)

// work is a kind of job.
type work struct {
	Name    string
	Every   time.Duration // whole seconds; 0: at At alone
	Phase   time.Duration // less than Every
	At      time.Time
	Copies  int // as many jobs, named Name-0000 …; 0: one, named Name
	Keys    int // 0: without keys
	Takes   time.Duration
	Timeout time.Duration // 0: the default
	Poison  string        // the key whose handler kills its process
	InTx    bool          // the effect is written in the transaction that completes the run, where the driver has such
}

func key(i int) string { return fmt.Sprintf("k%04d", i) }

func (w work) names() []string {
	if w.Copies == 0 {
		return []string{w.Name}
	}
	list := make([]string, w.Copies)
	for i := range list {
		list[i] = fmt.Sprintf("%s-%04d", w.Name, i)
	}
	return list
}

// spec is the first document that a replica is told. Orders follow.
type spec struct {
	Name, Ledger    string
	Store           site
	Seeds           []string
	SeedFile        string
	Bind, Advertise string // "": the defaults
	Secret          []byte // of the gossip
	Profile         membership.Profile
	Lease, Sweep    time.Duration
	MissedAfter     time.Duration
	Concurrency     int
	Works           []work
	Fault           *fault // armed from the start
}

// order is what a replica is told while it runs.
type order struct {
	Arm    *fault
	Onward bool // ends one wait of the trap
	Add    []work
	Store  string // storeCut or storeHealed; "": neither
	Memory int64  // a soft limit in bytes, negative: none any more; 0: as it is
}

// state is what a replica reports whenever it changes.
type state struct {
	Addr     string   // of its gossip
	Owners   []string // as it sees them
	NotReady string   // "": it is ready
	Members  []membership.Member

	// What it has seen since its start: the owners change, members come and go. Stalls are the times that it had to wait:
	// for a processor for longer than a stall, or for the store until it was not ready.
	Moves, Came, Gone, Stalls int
}

// member is a replica, in the child process.
type member struct {
	spec
	ledger *ledger
	trap   *trap
	handle *handle
	store  *storecut.Store
}

// replica runs one until its parent lets go or it gets SIGTERM.
func replica() (err error) {
	ctx, end := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer end()
	ctx, parent := procs.Attach(ctx, os.Stdin, os.Stdout)
	m := &member{}
	if err := parent.Receive(&m.spec); err != nil {
		return err
	}
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})))
	if m.ledger, err = openLedger(m.Ledger, m.Name); err != nil {
		return err
	}
	m.trap = &trap{ledger: m.ledger, ctx: ctx, onward: make(chan struct{}), fault: m.Fault, completed: map[int64]bool{}}
	gossip := membership.Config{Name: m.Name, Namespace: namespace, Seeds: m.Seeds, SeedFile: m.SeedFile, Bind: m.Bind, Advertise: m.Advertise, Profile: m.Profile,
		Secrets: [][]byte{m.Secret}}
	cluster, err := membership.Join(ctx, gossip)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Close()) }()
	if m.handle, err = openPatiently(ctx, m.Store); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.handle.close()) }()
	m.store = storecut.New(m.handle, nil)
	beat := &pulse{ledger: m.ledger, lease: m.Lease}
	defer beat.stop(false)
	s, err := scheduler.New(scheduler.Config{
		Namespace: namespace, Members: cluster, Store: &door{m.store, m.trap, beat}, Concurrency: m.Concurrency,
		Lease: m.Lease, Grace: time.Second, Sweep: m.Sweep, Drain: 5 * time.Second, MissedAfter: m.MissedAfter,
		Hooks: []scheduler.Hooks{m.hooks()},
	})
	if err != nil {
		return err
	}
	if err := s.Add(m.jobs(m.Works)...); err != nil {
		return err
	}
	go m.obey(parent, s)
	go m.report(ctx, parent, cluster, s)
	return s.Run(ctx)
}

// obey does what the parent orders, until it lets go.
func (m *member) obey(parent *procs.Parent, s *scheduler.Scheduler) {
	for {
		var o order
		if err := parent.Receive(&o); err != nil {
			return
		}
		if o.Arm != nil {
			m.trap.arm(*o.Arm)
		}
		if err := s.Add(m.jobs(o.Add)...); err != nil {
			panic(err) // the rig's own mistake
		}
		if o.Store != "" {
			m.store.Cut(o.Store == storeCut)
			m.ledger.write(line{Phase: o.Store})
		}
		switch {
		case o.Memory < 0:
			debug.SetMemoryLimit(math.MaxInt64)
		case o.Memory > 0:
			debug.SetMemoryLimit(o.Memory)
		}
		if o.Onward {
			select {
			case m.trap.onward <- struct{}{}:
			case <-m.trap.ctx.Done():
			}
		}
	}
}

// stall is what a replica on a machine with time for it never has to wait. Others take a member that stands still a
// little longer for dead, and are right.
const stall = 500 * time.Millisecond

// brief is what a replica may wait that renews its session five times a lease, and loses nothing by it.
const brief = 150 * time.Millisecond

// report tells the parent what changed, and the ledger when it had to wait.
func (m *member) report(ctx context.Context, parent *procs.Parent, c *membership.Cluster, s *scheduler.Scheduler) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var told state
	now := state{Addr: c.Addr()}
	owners, changed := c.Watch()
	ticked := time.Now()
	for {
		now.Owners, now.NotReady = owners, ""
		if err := s.Ready(); err != nil {
			now.NotReady = err.Error()
		}
		if told.NotReady == "" && told.Addr != "" && (strings.Contains(now.NotReady, "the store fails") || strings.Contains(now.NotReady, "session was lost")) {
			now.Stalls++
		}
		members := c.Members()
		now.Came += lacking(now.Members, members)
		now.Gone += lacking(members, now.Members)
		now.Members = members
		if !reflect.DeepEqual(now, told) {
			told = now
			_ = parent.Report(now) // a parent that does not listen is about to end this process
		}
		select {
		case <-tick.C:
			late := time.Since(ticked)
			if late > stall {
				now.Stalls++
			}
			if late > brief {
				m.ledger.write(line{Phase: waited})
			}
			ticked = time.Now()
		case <-changed:
			now.Moves++
			owners, changed = c.Watch()
		case <-ctx.Done():
			return
		}
	}
}

// lacking counts the members of b that a lacks.
func lacking(a, b []membership.Member) (n int) {
	for _, m := range b {
		if !slices.ContainsFunc(a, func(x membership.Member) bool { return x.Boot == m.Boot }) {
			n++
		}
	}
	return n
}

func (m *member) hooks() scheduler.Hooks {
	var last int64
	return scheduler.Hooks{
		Finished: func(_ context.Context, f scheduler.Finished) {
			if f.Outcome == idempotency.Done {
				m.trap.hit("K7", ofOccurrence("", "", f.Occurrence))
			}
		},
		Refused: func(_ context.Context, r scheduler.Refused) {
			m.ledger.write(ofOccurrence(refused, r.Cause, r.Occurrence))
		},
		Stuck:  func(_ context.Context, o jobs.Occurrence) { m.ledger.write(ofOccurrence(stuck, "", o)) },
		Hedged: func(_ context.Context, o jobs.Occurrence) { m.ledger.write(ofOccurrence(hedged, "", o)) },
		Renewed: func(_ context.Context, r scheduler.Renewed) {
			if r.Session != last {
				last = r.Session
				m.ledger.write(line{Phase: session})
			}
		},
	}
}

func (m *member) jobs(works []work) []jobs.Job {
	var list []jobs.Job
	for _, w := range works {
		for _, name := range w.names() {
			j := jobs.Job{Name: name, Schedule: jobs.At(w.At), Timeout: w.Timeout, Run: m.handler(w),
				Retry: jobs.Retry{Attempts: 20, First: 100 * time.Millisecond}}
			if w.Every > 0 {
				j.Schedule = jobs.Every(w.Every).Phase(w.Phase)
			}
			if w.Keys > 0 {
				keys := make([]string, w.Keys)
				for i := range keys {
					keys[i] = key(i)
				}
				j.Keys = jobs.KeyList(keys...)
			}
			list = append(list, j)
		}
	}
	return list
}

var errThrown = errors.New("rig: thrown")

// handler takes its time, half of it before its effect. It gives up when its context ends before that, as a good
// handler does; after it, the work is done, and it says so however late.
func (m *member) handler(w work) jobs.Handler {
	return func(ctx context.Context, o jobs.Occurrence) error {
		m.ledger.write(ofOccurrence(started, "", o))
		switch m.trap.hit("K3", ofOccurrence("", "", o)) {
		case crash:
			go func() { panic(errThrown) }()
			select {}
		case throw:
			panic(errThrown)
		case hang:
			m.trap.wait()
			m.ledger.write(ofOccurrence(returned, cause(ctx), o))
			return nil
		}
		if w.Poison != "" && w.Poison == o.Key {
			m.trap.ledger.write(ofOccurrence(faulted, "poison "+kill, o))
			m.trap.strike(&fault{Act: kill})
		}
		pass(ctx, w.Takes/2)
		if ctx.Err() != nil {
			m.ledger.write(ofOccurrence(returned, cause(ctx), o))
			return context.Cause(ctx)
		}
		if w.InTx && m.handle.effect != nil {
			return m.inTx(ctx, o)
		}
		m.ledger.write(ofOccurrence(effect, "", o))
		if m.trap.hit("K4", ofOccurrence("", "", o)) == stop {
			<-ctx.Done() // the session is lost, and that has to be told to us
		}
		pass(ctx, w.Takes/2)
		m.ledger.write(ofOccurrence(returned, cause(ctx), o))
		return nil
	}
}

// inTx is the rest of a handler whose effect is written in the transaction that completes its run. A process is killed
// in the middle of it, but stopped before it: a transaction that is left open holds others up, and ends. After that only
// the store can refuse the effect: the handler does not look at its context.
func (m *member) inTx(ctx context.Context, o jobs.Occurrence) error {
	run := ofOccurrence("", "", o)
	if m.trap.hitBy(stop, "K4", run) == stop {
		<-ctx.Done()
		m.ledger.write(ofOccurrence(returned, cause(ctx), o))
		var end context.CancelFunc
		ctx, end = context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer end()
	}
	m.trap.calls.RLock()
	err := m.handle.effect(ctx, o, func() {
		m.ledger.write(ofOccurrence(applied, "", o))
		m.trap.hitBy(kill, "K4", run)
		m.trap.flight("K5", []line{run})
	})
	m.trap.calls.RUnlock()
	switch {
	case err == nil:
		m.trap.complete(o.Fence)
		m.ledger.write(ofOccurrence(committed, "done", o))
		m.trap.hitBy(kill, "K6", run)
	case !errors.Is(err, jobs.ErrOvertaken):
		m.ledger.write(ofOccurrence(gaveUp, err.Error(), o))
	}
	m.ledger.write(ofOccurrence(returned, cause(ctx), o))
	return err
}

// pass lets d pass, or less when the context ends.
func pass(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

func cause(ctx context.Context) string {
	if err := context.Cause(ctx); err != nil {
		return err.Error()
	}
	return ""
}
