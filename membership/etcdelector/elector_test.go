package etcdelector

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/belfry-go/belfry/internal/etcdservers"
)

// clock is a pair of clocks that a test sets forward, on top of the real ones.
type clock struct {
	mu         sync.Mutex
	mono, wall time.Duration
}

func (c *clock) now() instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := now()
	return instant{mono: i.mono + c.mono, wall: i.wall.Add(c.wall)}
}

func (c *clock) set(mono, wall time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mono, c.wall = mono, wall
}

// TestFrozen is LD-04: a process that was frozen, or whose machine was suspended, which stops the monotonic clock, finds its term over when it
// asks, before any timer has fired; so do contexts derived from the term's.
func TestFrozen(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, at := range []struct{ mono, wall time.Duration }{{time.Hour, time.Hour}, {0, time.Hour}, {time.Hour, 0}, {time.Hour, -time.Hour}} {
		var c clock
		o := b.options("a")
		e := b.elector(b.servers.Client(b), o)
		e.now = c.now
		l := b.lead(e)
		call := l.elected()
		derived, cancel := context.WithCancel(call.ctx)
		if err := call.ctx.Err(); err != nil {
			t.Fatalf("the term has ended at once: %v", err)
		}
		c.set(at.mono, at.wall)
		if call.ctx.Err() == nil || derived.Err() == nil || context.Cause(derived) != errTrust {
			t.Errorf("%v later: the term says %v, a context derived from it %v with cause %v", at, call.ctx.Err(), derived.Err(), context.Cause(derived))
		}
		c.set(0, 0)
		if call.ctx.Err() == nil {
			t.Errorf("a term that was over lives again")
		}
		cancel()
		l.leave()
	}
}

// TestSuspended: a term that is over by the clocks ends also where nobody asks for it.
func TestSuspended(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var c clock
	o := b.options("a")
	o.Renew = time.Second
	e := b.elector(b.servers.Client(b), o)
	e.now = c.now
	call := b.lead(e).elected()
	c.set(0, time.Hour)
	b.over(call, errTrust)
}

// slow is a client's leases, whose renewals are answered when half an hour has passed by a test's clocks.
type slow struct {
	clientv3.Lease
	clock *clock
	calls *atomic.Int32
}

func (l slow) KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error) {
	l.calls.Add(1)
	r, err := l.Lease.KeepAliveOnce(ctx, id)
	if l.clock != nil {
		l.clock.set(30*time.Minute, 30*time.Minute)
	}
	return r, err
}

// TestSent: the trust counts from the sending of a renewal, not from its answer.
func TestSent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var c clock
	client := b.servers.Client(b)
	client.Lease = slow{client.Lease, &c, new(atomic.Int32)}
	o := b.options("a")
	e := b.elector(client, o)
	e.now = c.now
	call := b.lead(e).elected() // 42 min of trust
	if left := call.ctx.(*term).trust.left(); left > 12*time.Minute {
		t.Errorf("%v of trust left when the answer took 30 min of 42", left)
	}
}

// TestSilent: while nothing answers a leader does not renew again and again, which the client would do without a pause, but asks by reads first.
func TestSilent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	client, proxy := b.behind()
	var calls atomic.Int32
	client.Lease = slow{client.Lease, nil, &calls}
	o := b.options("a")
	o.Renew = time.Second
	b.lead(b.elector(client, o)).elected()
	failed := func(n int) func() bool {
		return func() bool { return strings.Count(b.log.String(), "leadership was not renewed") > n }
	}
	proxy.Refuse(true)
	proxy.Reset()
	until(t, "a renewal to fail", failed(0))
	before := calls.Load()
	until(t, "more to fail", failed(2))
	if more := calls.Load() - before; more > 0 {
		t.Errorf("%d renewals were sent while nothing answers", more)
	}
}

// TestRenewed: renewals extend the trust.
func TestRenewed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	o := b.options("a")
	o.Renew = time.Second
	tr := b.lead(b.elector(b.servers.Client(b), o)).elected().ctx.(*term).trust
	first := tr.latest()
	until(t, "a renewal", func() bool { return tr.latest() > first })
}

// latest is when the last renewal that was confirmed was sent.
func (t *trust) latest() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sent.mono
}

// TestTrust: the trust counts from the sending of what was confirmed, and is not extended once it is over.
func TestTrust(t *testing.T) {
	t.Parallel()
	var at instant
	pass := func(d time.Duration) { at.mono += d; at.wall = at.wall.Add(d) }
	tr := trust{now: func() instant { return at }}
	want := func(left time.Duration) {
		t.Helper()
		if got := tr.left(); got != left {
			t.Errorf("%v left, want %v", got, left)
		}
	}
	want(0)
	sent := at
	pass(time.Second)
	tr.confirm(sent, 3*time.Second)
	want(2 * time.Second)
	sent = at
	pass(time.Second)
	tr.confirm(sent, 3*time.Second)
	want(2 * time.Second)
	sent = at
	pass(2 * time.Second)
	tr.confirm(sent, 3*time.Second) // its answer was seen when all was over: a frozen process
	want(0)
	pass(-2 * time.Second)
	want(0)
}

// TestGranted: where etcd grants more than asked the trust is longer by as much, and the margin stays.
func TestGranted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	client := b.servers.Client(b)
	client.Lease = tampered{Lease: client.Lease, more: 3600}
	o := b.options("a")
	c := b.lead(b.elector(client, o)).elected()
	if left := c.ctx.(*term).trust.left(); left <= o.Lease {
		t.Errorf("%v of trust left; an hour more than Lease was granted", left)
	}
	client.Lease = tampered{Lease: client.Lease, more: -3601}
	if err := b.elector(client, o).Lead(t.Context(), never); !errors.Is(err, errShort) {
		t.Errorf("Lead returned %v where less than Lease was granted", err)
	}
}

func never(context.Context, int64) error { panic("elected") }

// TestPanic: a lead that panics resigns, and the panic goes on to Lead's caller.
func TestPanic(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	o := b.options("a")
	func() {
		defer func() {
			if got := recover(); got != "elected" {
				t.Errorf("recovered %v", got)
			}
		}()
		t.Errorf("Lead returned %v", b.elector(b.servers.Client(b), o).Lead(t.Context(), never))
	}()
	b.stand("b").elected()
}

// clinger is a Lead whose lead returns when it is let, whether its context has ended or not.
type clinger struct {
	terms   chan context.Context // has room for one
	end     context.CancelFunc
	release chan struct{} // lead returns once it is closed
	done    chan error    // has room for what Lead returned
}

func cling(t *testing.T, e *Elector) *clinger {
	ctx, end := context.WithCancel(context.Background())
	c := &clinger{make(chan context.Context, 1), end, make(chan struct{}), make(chan error, 1)}
	go func() {
		c.done <- e.Lead(ctx, func(ctx context.Context, _ int64) error { c.terms <- ctx; <-c.release; return nil })
	}()
	return c
}

// leave lets lead return, and wants nil of Lead.
func (c *clinger) leave(t *testing.T) {
	t.Helper()
	c.end()
	close(c.release)
	if err := receive(t, c.done, "a's Lead to return"); err != nil {
		t.Errorf("Lead returned %v", err)
	}
}

// TestClings: a lead that does not return though its context has ended is waited for, but by the next leader not longer than
// what is left of the trust, and the margin.
func TestClings(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, over := range []bool{false, true} {
		var c clock
		o := b.options("a")
		o.Trust = o.Lease - time.Second // the next is not elected by the end of the lease
		e := b.elector(b.servers.Client(b), o)
		e.now = c.now
		first := cling(t, e)
		term := receive(t, first.terms, "a to be elected")
		second := b.stand("b")
		b.queue(2)
		if over {
			c.set(0, time.Hour)
		} else {
			c.set(0, o.Trust-time.Second)
			first.end()
		}
		if term.Err() == nil {
			t.Error("the term has not ended")
		}
		second.elected()
		select {
		case err := <-first.done:
			t.Errorf("Lead returned %v while lead runs", err)
		default:
		}
		first.leave(t)
		second.leave()
	}
}

// TestMargin: where the trust is over long before the lease a lead has the margin to stop in: nobody else is elected before it has returned.
func TestMargin(t *testing.T) {
	t.Parallel()
	for name, trust := range map[string]time.Duration{"a clock is set forward": 42 * time.Minute, "reads fail": 4 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			client := b.servers.Client(b)
			var fail atomic.Value
			client.KV = unread{client.KV, &fail}
			var c clock
			o := b.options("a")
			o.Trust, o.Renew = trust, trust/2
			e := b.elector(client, o)
			e.now = c.now
			first := cling(t, e)
			term := receive(t, first.terms, "a to be elected")
			second := b.stand("b")
			b.queue(2)
			if trust < time.Minute {
				fail.Store(errors.New("read refused"))
			} else {
				c.set(0, 50*time.Minute)
				_ = term.Err() // looks at it
			}
			receive(t, term.Done(), "the term to end")
			if why := context.Cause(term); why != errTrust {
				t.Errorf("the term ended with %v", why)
			}
			select {
			case next := <-second.calls:
				t.Error("b is elected while a's lead stops, within the margin")
				second.calls <- next
			case <-time.After(200 * time.Millisecond): // without a margin b is elected in less, as a rule
			}
			first.leave(t)
			second.elected()
		})
	}
}

// TestMany: several electors of one client, on prefixes of which one begins the other and of strange bytes, elect one each; a replica that Lead is asked for
// twice says so.
func TestMany(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	client := b.servers.Client(b)
	var last *Elector
	for _, prefix := range []string{"x/a/b", "x/a", "x/\xff\x00é", "x/\xff"} {
		o := b.options("x")
		o.Prefix = prefix
		last = b.elector(client, o)
		b.lead(last).elected()
	}
	if err := last.Lead(t.Context(), never); err == nil || !strings.Contains(err.Error(), "under way") {
		t.Errorf("a second Lead returned %v", err)
	}
}

// TestClosed: a client that is closed under a Lead ends it with an error that says so.
func TestClosed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	client := b.servers.Client(b)
	l := b.lead(b.elector(client, b.options("a")))
	c := l.elected()
	client.Close()
	receive(t, c.ctx.Done(), "the term to end")
	if err := receive(t, l.done, "Lead to return"); err == nil || !strings.Contains(err.Error(), "the client was closed") {
		t.Errorf("Lead returned %v", err)
	}
}

// TestPermission: a user who may not write the election's keys is told which.
func TestPermission(t *testing.T) {
	t.Parallel()
	b := newBenchOn(t, etcdservers.Start(t, etcdservers.Config{}))
	root := b.servers.Client(b)
	for _, ask := range []func() error{
		func() error { _, err := root.UserAdd(t.Context(), "root", "r"); return err },
		func() error { _, err := root.UserGrantRole(t.Context(), "root", "root"); return err },
		func() error { _, err := root.UserAdd(t.Context(), "belfry", "b"); return err },
		func() error { _, err := root.AuthEnable(t.Context()); return err },
	} {
		if err := ask(); err != nil {
			t.Fatal(err)
		}
	}
	user, err := clientv3.New(clientv3.Config{Endpoints: b.servers.Endpoints(), Username: "belfry", Password: "b", Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer user.Close()
	for _, c := range []struct {
		client *clientv3.Client
		want   string
	}{{user, `keys that begin with "TestPermission/leader/"`}, {root, "Username and Password"}} {
		if err := b.elector(c.client, b.options("a")).Lead(t.Context(), never); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Lead returned %v, want %s in it", err, c.want)
		}
	}
}

// TestOptions: what makes no sense is refused, all of it at once, with what to set.
func TestOptions(t *testing.T) {
	t.Parallel()
	client := clientv3.NewCtxClient(t.Context())
	for _, c := range []struct {
		options Options
		want    []string // of the error's lines; none: it is accepted
	}{
		{Options{Prefix: "belfry/x"}, nil},
		{Options{Prefix: "x", Lease: time.Second}, nil},
		{Options{Prefix: "x", Lease: 4 * time.Second, Trust: 3 * time.Second, Renew: 1500 * time.Millisecond, Retry: time.Second}, nil},
		{Options{}, []string{"Prefix is empty"}},
		{Options{Prefix: "x/"}, []string{"ends in a slash"}},
		{Options{Prefix: "x/leader"}, []string{`an element "leader"`}},
		{Options{Prefix: "leader/x"}, []string{`an element "leader"`}},
		{Options{Prefix: strings.Repeat("x", 513), Name: strings.Repeat("y", 256)}, []string{"at most 512", "at most 255"}},
		{Options{Prefix: "x", Lease: 1500 * time.Millisecond}, []string{"whole seconds"}},
		{Options{Prefix: "x", Lease: -time.Second}, []string{"whole seconds", "Trust", "Renew", "above 0"}},
		{Options{Prefix: "x", Lease: 2 * time.Second, Trust: 2 * time.Second}, []string{"Trust 2s is not below Lease 2s"}},
		{Options{Prefix: "x", Renew: 4 * time.Second}, []string{"Renew 4s is above half of Trust 7s"}},
		{Options{Prefix: "x", Retry: 2 * time.Second}, []string{"Retry 2s is not below Renew 2s"}},
		{Options{Prefix: "x", Renew: -1}, []string{"Retry", "above 0"}},
	} {
		_, err := New(client, &c.options)
		if (err != nil) != (len(c.want) > 0) {
			t.Errorf("%+v: %v", c.options, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: the error says %v, want %q in it", c.options, err, want)
			}
		}
	}
	if _, err := New(nil, &Options{Prefix: "x"}); err == nil {
		t.Error("a nil client is accepted")
	}
	if _, err := New(client, nil); err == nil {
		t.Error("no Prefix is accepted")
	}
	e, err := New(client, &Options{Prefix: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if e.Lead(t.Context(), nil) == nil {
		t.Error("a nil lead is accepted")
	}
}
