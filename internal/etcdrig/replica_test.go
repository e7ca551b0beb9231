//go:build unix

package etcdrig

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/belfry-go/belfry/idempotency/sqlite"
	"github.com/belfry-go/belfry/internal/procs"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/membership"
	"github.com/belfry-go/belfry/membership/etcdelector"
	"github.com/belfry-go/belfry/scheduler"
)

const (
	namespace  = "etcdrig"
	election   = namespace + "/leader/" // the keys of the election begin so
	signature  = namespace + "/signed"  // the key that each leader writes its term to
	job        = "global"               // due each second
	takes      = 300 * time.Millisecond
	windUp     = 30 * time.Millisecond // of a role whose term is over
	signWithin = 300 * time.Millisecond
	openWithin = 30 * time.Second
)

// spec is the first document that a replica is told. Orders follow.
type spec struct {
	Name, Store, Ledger string
	Seeds               []string
	Secret              []byte   // of the gossip
	Etcd                []string // its addresses; none: the store elects
	Lease               time.Duration
}

// order is what a replica is told while it runs.
type order struct {
	Arm  fault
	Hold bool // runs wait, when their effect is applied, for an order without it
}

// member is a replica, in the child process.
type member struct {
	spec
	ledger *ledger
	trap   *trap
	gate   gate
	etcd   *clientv3.Client // nil: the store elects
	work   sync.WaitGroup
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
	m.trap = &trap{ledger: m.ledger}
	cluster, err := membership.Join(ctx, membership.Config{Name: m.Name, Namespace: namespace, Seeds: m.Seeds, Secrets: [][]byte{m.Secret}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Close()) }()
	opening, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
	store, err := sqlite.Open(opening, m.Store, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	elector, err := m.elector()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.leave()) }()
	s, err := scheduler.New(scheduler.Config{
		Namespace: namespace, Members: cluster, Store: &door{store, m.trap}, Elector: elector, Concurrency: 8,
		Lease: m.Lease, Sweep: 200 * time.Millisecond, Drain: 5 * time.Second, Hooks: []scheduler.Hooks{m.hooks()},
	})
	if err != nil {
		return err
	}
	err = errors.Join(s.OnLeader("role", m.role), s.Add(jobs.Job{Name: job, Schedule: jobs.Every(time.Second),
		Placement: jobs.Leader, Overlap: jobs.OverlapAllow, Run: m.handle}))
	if err != nil {
		return err
	}
	m.ledger.write(line{Phase: gossips, Text: cluster.Addr()})
	go m.obey(parent)
	go m.report(ctx, cluster, s)
	return s.Run(ctx)
}

// elector is etcd's, with a witness; nil where the store elects.
func (m *member) elector() (scheduler.Elector, error) {
	if len(m.Etcd) == 0 {
		return nil, nil
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: m.Etcd, Logger: zap.NewNop(), DialTimeout: time.Second})
	if err != nil {
		return nil, err
	}
	m.etcd = client
	e, err := etcdelector.New(client, &etcdelector.Options{Prefix: namespace, Name: m.Name, Lease: m.Lease})
	return &witness{e, m}, err
}

func (m *member) leave() error {
	m.work.Wait()
	if m.etcd == nil {
		return nil
	}
	return m.etcd.Close()
}

// obey does what the parent orders, until it lets go.
func (m *member) obey(parent *procs.Parent) {
	for {
		var o order
		if err := parent.Receive(&o); err != nil {
			return
		}
		m.trap.arm(o.Arm)
		m.gate.set(o.Hold)
	}
}

// report writes down whether this replica is ready, and whom it sees, when that changes.
func (m *member) report(ctx context.Context, c *membership.Cluster, s *scheduler.Scheduler) {
	told := ""
	for ; ctx.Err() == nil; pass(ctx, pace()) {
		owners, _ := c.Watch()
		now := strings.Join(owners, " ")
		if err := s.Ready(); err != nil {
			now = "not ready: " + err.Error()
		}
		if now != told {
			told = now
			m.ledger.write(line{Phase: condition, Text: now})
		}
	}
}

func (m *member) hooks() scheduler.Hooks {
	var last int64
	return scheduler.Hooks{
		Renewed: func(_ context.Context, r scheduler.Renewed) {
			if r.Session != last {
				last = r.Session
				m.ledger.write(line{Phase: session})
			}
		},
		Refused: func(_ context.Context, r scheduler.Refused) {
			m.ledger.write(line{Phase: refused, Text: r.Cause, Due: r.Due.Unix(), Fence: r.Fence})
		},
	}
}

// handle is the job's handler. It gives up when its context ends before its effect, as a good handler does; after
// it the work is done, and it says so however late.
func (m *member) handle(ctx context.Context, o jobs.Occurrence) error {
	of := func(phase string) line { return line{Phase: phase, Term: o.Term, Due: o.Due.Unix(), Fence: o.Fence} }
	m.ledger.write(of(started))
	pass(ctx, takes/2)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	m.ledger.write(of(effect))
	m.trap.hit(handler, o.Due.Unix())
	m.gate.pass(ctx, func() { m.ledger.write(of(held)) })
	pass(ctx, takes/2)
	return nil
}

// role is a role of the leader.
func (m *member) role(ctx context.Context, term int64) error {
	m.watch(ctx, inRole, term, nil)
	pass(context.Background(), windUp)
	m.ledger.write(line{Phase: leftRole, Term: term})
	return nil
}

// watch writes down that the context of a term is not over, until it is, or done is closed. It returns why it is.
func (m *member) watch(ctx context.Context, phase string, term int64, done <-chan struct{}) string {
	for {
		if phase == m.believes() {
			m.trap.hit(looking, 0)
		}
		at := mono() // before the look: then it was not over, if it is not now
		if ctx.Err() != nil {
			return context.Cause(ctx).Error()
		}
		m.ledger.write(line{Phase: phase, Term: term, At: at})
		t := time.NewTimer(pace())
		select {
		case <-t.C:
		case <-ctx.Done():
		case <-done:
			t.Stop()
			return "given up"
		}
	}
}

// believes is the phase of lines that tell what the term is to this process: where the store elects, only a role knows.
func (s spec) believes() string {
	if len(s.Etcd) == 0 {
		return inRole
	}
	return trusted
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
