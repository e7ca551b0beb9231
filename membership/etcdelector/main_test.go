package etcdelector

import (
	"bytes"
	"context"
	"flag"
	"log/slog"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"github.com/belfry-go/belfry/internal/etcdservers"
	"github.com/belfry-go/belfry/internal/faultproxy"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		f.Value.Set("8") // these tests wait for leases to end, and leave the processors alone
	}
	goleak.VerifyTestMain(etcdservers.Main(m))
}

// patience bounds the wait for what must happen; no test asserts how long anything takes.
const patience = time.Minute

// log keeps what an elector logs.
type log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// bench is one test's electors on one cluster of etcd.
type bench struct {
	*testing.T
	servers *etcdservers.Servers
	log     log
}

// newBench is one on the shared server.
func newBench(t *testing.T) *bench { return newBenchOn(t, etcdservers.Shared(t)) }

func newBenchOn(t *testing.T, s *etcdservers.Servers) *bench { return &bench{T: t, servers: s} }

// options are for an election of the test's own in which nothing ends by itself, however slow the machine is.
func (b *bench) options(name string) *Options {
	return &Options{
		Prefix: b.Name(), Name: name, Lease: time.Hour, Retry: 10 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(&b.log, nil)),
	}
}

// short are options for tests in which a lease or a trust ends: six seconds and five. Calls of etcd may take two and a half.
func (b *bench) short(name string) *Options {
	o := b.options(name)
	o.Lease, o.Trust, o.Renew = 6*time.Second, 5*time.Second, 2500*time.Millisecond
	return o
}

func (b *bench) elector(c *clientv3.Client, o *Options) *Elector {
	b.Helper()
	e, err := New(c, o)
	if err != nil {
		b.Fatal(err)
	}
	return e
}

// call is a call of lead.
type call struct {
	ctx    context.Context
	term   int64
	answer chan error // has room for one: what lead returns
}

// lead is a Lead under way.
type lead struct {
	*bench
	name  string
	calls chan call // roomy enough never to block
	end   context.CancelCauseFunc
	done  chan error // has room for what Lead returned
}

// lead has an elector's Lead called, whose lead returns when it is answered or its context has ended.
func (b *bench) lead(e *Elector) *lead {
	ctx, end := context.WithCancelCause(context.Background())
	l := &lead{bench: b, name: e.options.Name, calls: make(chan call, 100), end: end, done: make(chan error, 1)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.done <- e.Lead(ctx, func(ctx context.Context, term int64) error {
			c := call{ctx, term, make(chan error, 1)}
			l.calls <- c
			select {
			case err := <-c.answer:
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	b.Cleanup(func() { end(nil); <-ended })
	return l
}

// stand has a new replica stand, on a client of its own.
func (b *bench) stand(name string) *lead {
	b.Helper()
	return b.lead(b.elector(b.servers.Client(b), b.options(name)))
}

// elected waits until the replica leads.
func (l *lead) elected() call {
	l.Helper()
	return receive(l.T, l.calls, l.name+" to be elected")
}

// leave ends the replica, and wants nil of its Lead.
func (l *lead) leave() {
	l.Helper()
	l.end(nil)
	if err := receive(l.T, l.done, l.name+"'s Lead to return"); err != nil {
		l.Errorf("%s: Lead returned %v, want nil", l.name, err)
	}
}

// over waits for the end of a term, and wants its cause.
func (b *bench) over(c call, want error) {
	b.Helper()
	receive(b.T, c.ctx.Done(), "the term to end")
	if why := context.Cause(c.ctx); why != want {
		b.Errorf("term %d ended with %v, want %v", c.term, why, want)
	}
}

func receive[V any](t *testing.T, from <-chan V, what string) V {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("waited %v for %s", patience, what)
		panic("unreachable")
	}
}

// until asks, with a pause between, until ok.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(patience)
	for tick := time.Tick(5 * time.Millisecond); !ok(); {
		select {
		case <-tick:
		case <-deadline:
			t.Fatalf("waited %v for %s", patience, what)
		}
	}
}

// keys are those of the test's election, the oldest first.
func (b *bench) keys() []string {
	b.Helper()
	r, err := b.servers.Client(b).Get(context.Background(), b.Name()+"/leader/", clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
	if err != nil {
		b.Fatal(err)
	}
	var all []string
	for _, kv := range r.Kvs {
		all = append(all, string(kv.Key))
	}
	return all
}

// behind is a client whose connections go through a proxy.
func (b *bench) behind() (*clientv3.Client, *faultproxy.Proxy) {
	b.Helper()
	p, err := faultproxy.Listen(b.servers.Addr(0))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { p.Close() })
	return b.servers.Client(b, "http://"+p.Addr()), p
}

// cut has all that goes through a proxy vanish, or no longer does; connections that lost something start anew.
func cut(p *faultproxy.Proxy, on bool) {
	p.ToServer.Swallow(on)
	p.ToClient.Swallow(on)
	if !on {
		p.Reset()
	}
}
