//go:build unix

package etcdrig

import (
	"context"
	crand "crypto/rand"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/sqlite"
	"github.com/belfry-go/belfry/internal/etcdservers"
	"github.com/belfry-go/belfry/internal/faultproxy"
	"github.com/belfry-go/belfry/internal/procs"
)

// within bounds the wait for one thing to happen: it is for what hangs, not for what is slow.
const within = 2 * time.Minute

// fleet is replicas as child processes; the test's goroutine owns it.
type fleet struct {
	*testing.T
	ctx   context.Context
	dir   string
	seed  uint64
	rng   *rand.Rand
	base  spec
	etcd  *etcdservers.Servers           // nil: the store elects
	seen  *history                       // of etcd; nil likewise
	wires map[string][]*faultproxy.Proxy // a replica's to etcd
	store *sqlite.Store                  // to read
	book  book
	since int64 // in seconds since 1970; every later due has to be done

	took    map[string][]time.Duration // from a fault to the next leader, by the kind of the fault
	died    map[int]bool               // processes that were killed
	stopped map[int]bool               // processes that stood still
	asked   map[int]bool               // processes that were told to end
	left    map[int64]bool             // terms whose leader was told to
	revoked map[int64]bool             // terms whose lease was revoked

	readers sync.WaitGroup
	live    map[string]*proc
	all     []*proc // ever started
}

// proc is one process.
type proc struct {
	*procs.Child
	name string
}

// ended reports whether the process has.
func (p *proc) ended() bool {
	select {
	case <-p.Done():
		return true
	default:
		return false
	}
}

// newFleet makes one of three replicas that are ready, and lead by that many etcd servers; by none, the store elects. Its folder is kept where the test fails.
func newFleet(t *testing.T, servers int) *fleet {
	t.Helper()
	n := *seed
	if n == 0 {
		n = rand.Uint64()
	}
	dir, err := os.MkdirTemp("", "belfry-etcdrig-")
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{T: t, ctx: t.Context(), dir: dir, seed: n, rng: rand.New(rand.NewPCG(n, 0)),
		base:  spec{Store: filepath.Join(dir, "store.db"), Ledger: filepath.Join(dir, "ledger"), Lease: lease()},
		wires: map[string][]*faultproxy.Proxy{}, book: book{path: filepath.Join(dir, "ledger")}, took: map[string][]time.Duration{},
		died: map[int]bool{}, stopped: map[int]bool{}, asked: map[int]bool{}, left: map[int64]bool{}, revoked: map[int64]bool{}, live: map[string]*proc{}}
	f.base.Secret = make([]byte, 32) // the port of a process that died may be another fleet's by now
	_, _ = crand.Read(f.base.Secret)
	if servers > 0 {
		f.etcd = etcdservers.Start(t, etcdservers.Config{Members: servers})
		f.seen = observe(t, f.etcd.Client(t))
	}
	t.Cleanup(f.endAll)
	if f.store, err = sqlite.Open(f.ctx, f.base.Store, nil); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b", "c"} {
		f.wire(name, servers)
		f.start(name)
	}
	f.ready()
	f.leader()
	f.since = time.Now().Unix()
	return f
}

// endAll kills what lives, and waits for all that ever lived.
func (f *fleet) endAll() {
	for _, p := range f.all {
		p.Kill()
	}
	f.readers.Wait()
	if f.store != nil {
		if err := f.store.Close(); err != nil {
			f.Error(err)
		}
	}
	if f.Failed() || *keep {
		f.Logf("seed %d; ledger, store and logs are kept in %s; repeat with\n\tgo test ./internal/etcdrig -count 1 -run '^%s$' -etcdrig.seed %d",
			f.seed, f.dir, f.Name(), f.seed)
		return
	}
	os.RemoveAll(f.dir)
}

// start starts a replica. It calls those that live.
func (f *fleet) start(name string) *proc {
	f.Helper()
	log, err := os.OpenFile(f.log(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		f.Fatal(err)
	}
	defer log.Close()
	s := f.base
	s.Name = name
	for _, w := range f.wires[name] {
		s.Etcd = append(s.Etcd, "http://"+w.Addr())
	}
	for _, l := range f.book.lines {
		if p := f.live[l.Replica]; l.Phase == gossips && p != nil && p.Pid() == l.Pid {
			s.Seeds = append(s.Seeds, l.Text)
		}
	}
	child, err := procs.Start(log, role)
	if err != nil {
		f.Fatal(err)
	}
	p := &proc{child, name}
	f.all = append(f.all, p)
	f.live[name] = p
	f.readers.Go(func() { _ = p.Receive(new(any)) }) // it says nothing, and this ends with it
	_ = p.Send(s)                                    // one that cannot be told has ended, and await says so
	f.await(name+" gossips", func() bool { return f.find(0, gossips, p.Pid()) != nil })
	return p
}

func (f *fleet) log(name string) string { return filepath.Join(f.dir, name+".log") }

// await waits until ok, which is called when the ledger was read. Nobody may end meanwhile but who is meant to.
func (f *fleet) await(what string, ok func() bool) {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.ctx, within)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond) // the ledger and the store do not tell when they change
	defer tick.Stop()
	for {
		gone := f.gone() // before the ledger is read: what a process wrote last is in it
		if err := f.book.refresh(); err != nil && !os.IsNotExist(err) {
			f.Fatal(err)
		}
		if ok() {
			return
		}
		if gone != nil {
			f.Fatalf("waiting for: %s: %s (process %d) ended by itself: %v\n%s", what, gone.name, gone.Pid(), gone.Err(), f.tail(gone.name))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			f.dump()
			f.Fatalf("waiting for: %s: %v", what, ctx.Err())
		}
	}
}

// gone finds a process that has ended and was not told to.
func (f *fleet) gone() *proc {
	for _, p := range f.live {
		if p.ended() && !f.asked[p.Pid()] {
			return p
		}
	}
	return nil
}

// dump shows each process's last condition, and the end of the ledger.
func (f *fleet) dump() {
	for name, p := range f.live {
		f.Logf("%s (process %d): %q", name, p.Pid(), f.condition(p))
	}
	for _, l := range f.book.lines[max(0, len(f.book.lines)-20):] {
		f.Logf("%+v", l)
	}
}

func (f *fleet) tail(name string) string {
	text, err := os.ReadFile(f.log(name))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}

// find finds a process's first line of a phase behind the first so many.
func (f *fleet) find(from int, phase string, pid int) *line {
	return f.first(from, func(l line) bool { return l.Phase == phase && l.Pid == pid })
}

// first finds the first line behind the first so many.
func (f *fleet) first(from int, is func(line) bool) *line {
	if i := slices.IndexFunc(f.book.lines[from:], is); i >= 0 {
		return &f.book.lines[from+i]
	}
	return nil
}

func (f *fleet) condition(p *proc) string {
	for _, l := range slices.Backward(f.book.lines) {
		if l.Phase == condition && l.Pid == p.Pid() {
			return l.Text
		}
	}
	return ""
}

// ready waits until all three are ready and agree that they own.
func (f *fleet) ready() {
	f.Helper()
	f.await("all ready and agreed", func() bool {
		for _, p := range f.live {
			if f.condition(p) != "a b c" {
				return false
			}
		}
		return len(f.live) == 3
	})
}

// leader waits for one that leads, and returns it and its term.
func (f *fleet) leader() (p *proc, term int64) {
	f.Helper()
	f.await("a leader", func() bool {
		for _, l := range slices.Backward(f.book.lines) {
			if l.Phase == leftRole || l.Phase == over {
				return false
			}
			if l.Phase == inRole {
				p, term = f.live[l.Replica], l.Term
				return p != nil && p.Pid() == l.Pid
			}
		}
		return false
	})
	return p, term
}

// signal sends one to a process.
func (f *fleet) signal(p *proc, s syscall.Signal) {
	f.Helper()
	if err := syscall.Kill(p.Pid(), s); err != nil {
		f.Fatalf("signal %v to %s (process %d): %v; %v", s, p.name, p.Pid(), err, f.tail(p.name))
	}
}

// dead waits for a process that was killed to be gone.
func (f *fleet) dead(p *proc) {
	f.Helper()
	f.died[p.Pid()] = true
	delete(f.live, p.name)
	<-p.Done()
	if got := fmt.Sprint(p.Err()); got != "signal: killed" {
		f.Fatalf("%s (process %d) ended by itself: %s\n%s", p.name, p.Pid(), got, f.tail(p.name))
	}
}

// leave tells processes to end in order, and waits until they have.
func (f *fleet) leave(list ...*proc) {
	f.Helper()
	for _, p := range list {
		f.asked[p.Pid()] = true
		f.signal(p, syscall.SIGTERM)
	}
	for _, p := range list {
		f.await(p.name+" drains", p.ended)
		delete(f.live, p.name)
		if err := p.Err(); err != nil {
			f.Errorf("%s (process %d) drained and ended with %v\n%s", p.name, p.Pid(), err, f.tail(p.name))
		}
	}
}

// rows reads the store's history of dues, these two included.
func (f *fleet) rows(from, to int64) (list []idempotency.Run) {
	f.Helper()
	filter := idempotency.Filter{Namespace: namespace, Job: job, From: time.Unix(from, 0), To: time.Unix(to+1, 0)}
	for r, err := range f.store.List(f.ctx, filter) {
		if err != nil {
			f.Fatal(err)
		}
		list = append(list, r)
	}
	return list
}

// ended reports whether the run of a due has come to its end.
func (f *fleet) ended(due int64) bool {
	return slices.ContainsFunc(f.rows(due, due), func(r idempotency.Run) bool { return r.State == idempotency.Ended })
}

// unrun reports whether there is a stretch of dues that did not run.
func (f *fleet) unrun() bool {
	f.Helper()
	for _, err := range f.store.Ranges(f.ctx, namespace, job) {
		if err != nil {
			f.Fatal(err)
		}
		return true
	}
	return false
}

// settle waits until every due up to now has come to its end, stops the fleet and judges all that happened.
func (f *fleet) settle() {
	f.Helper()
	limit := time.Now().Unix()
	f.await("every due to come to its end", func() bool {
		ended := 0
		for _, r := range f.rows(f.since+1, limit) {
			if r.State == idempotency.Ended {
				ended++
			}
		}
		return int64(ended) == limit-f.since || f.unrun()
	})
	var living []*proc
	for _, p := range f.live {
		living = append(living, p)
	}
	f.leave(living...)
	if err := f.book.refresh(); err != nil {
		f.Fatal(err)
	}
	j := &judge{lines: f.book.lines, died: f.died, stopped: f.stopped, left: f.left, revoked: f.revoked}
	if f.seen != nil {
		j.elected, j.events = true, f.seen.all()
	}
	bad := j.judge(f.rows(f.since+1, limit), f.since, limit)
	for _, text := range bad[:min(len(bad), 20)] {
		f.Error(text)
	}
	f.Logf("seed %d: %d breaches; %s", f.seed, len(bad), j.tally())
	for kind, took := range f.took {
		slices.Sort(took)
		f.Logf("%s: after %v (median of %d), at most %v", kind, took[len(took)/2].Round(time.Millisecond), len(took),
			took[len(took)-1].Round(time.Millisecond))
	}
}
