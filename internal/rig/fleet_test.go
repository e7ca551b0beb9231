//go:build unix

package rig

import (
	"context"
	crand "crypto/rand"
	"database/sql"
	"flag"
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

	"github.com/belfry-go/belfry/internal/faultproxy"
	"github.com/belfry-go/belfry/internal/procs"
)

// within bounds a test: it is for what hangs, not for what is slow.
const within = 8 * time.Minute

// fleet is replicas as child processes; the test's goroutine owns it.
type fleet struct {
	*testing.T
	ctx   context.Context
	dir   string
	seed  uint64
	rng   *rand.Rand
	base  spec
	place place
	store *handle                      // to read
	ways  map[string]*faultproxy.Proxy // to a server of its own, by the process's name
	book  book
	since time.Time // every later due has to be decided

	died, paused, cut map[int]bool // processes that a fault hit
	rough             []stretch    // troubles of the store, or the ways to it
	lan               *lan         // that the processes are on; nil: loopback
	zoneinfo          string       // ZONEINFO of the processes that start; "": as the test's

	troubled sync.WaitGroup // by what is to end by itself
	readers  sync.WaitGroup
	all      []*proc // ever started
	mu       sync.Mutex
	live     map[string]*proc
	changed  chan struct{} // closed and made anew at every change of a process
}

// proc is one process.
type proc struct {
	*procs.Child
	name  string
	from  int // lines of the ledger that were there before
	state state
	meant bool // its end is part of the story; for the test's goroutine
	ended bool
}

// newFleet makes one without replicas, on SQLite. Its folder is kept where the test fails.
func newFleet(t *testing.T, base spec) *fleet {
	t.Helper()
	skipSlow(t)
	return newFleetOn(t, sqliteDriver, false, base)
}

// newFleetOn makes one on any driver, and alone on its server where that is demanded.
func newFleetOn(t *testing.T, d *driver, alone bool, base spec) *fleet {
	t.Helper()
	return newFleetAt(t, d.newPlace(t, alone), base) // the place is made before the fleet's end is planned, and so gone after it
}

// newFleetAt makes one whose store is at any place.
func newFleetAt(t *testing.T, at place, base spec) *fleet {
	t.Helper()
	n := *seed
	if n == 0 {
		n = rand.Uint64()
	}
	dir, err := os.MkdirTemp("", "belfry-rig-")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(times(1))*within)
	base.Store = at.site("")
	base.Ledger, base.SeedFile = filepath.Join(dir, "ledger"), filepath.Join(dir, "seeds")
	base.Secret = make([]byte, 32) // the port of a process that died may be another fleet's by now
	_, _ = crand.Read(base.Secret)
	if base.Lease == 0 {
		base.Lease, base.Sweep = lease(), 200*time.Millisecond
	}
	if base.MissedAfter == 0 {
		base.MissedAfter = within // however long the machine lets the replicas wait, what was due is to run
	}
	if base.Concurrency == 0 {
		base.Concurrency = 8
	}
	f := &fleet{T: t, ctx: ctx, dir: dir, seed: n, rng: rand.New(rand.NewPCG(n, 0)), base: base, place: at,
		book: book{path: base.Ledger}, died: map[int]bool{}, paused: map[int]bool{}, cut: map[int]bool{},
		ways: map[string]*faultproxy.Proxy{}, live: map[string]*proc{}, changed: make(chan struct{})}
	t.Cleanup(func() {
		f.endAll()
		cancel()
		if t.Failed() || *keep {
			f.place.keep(t, dir)
			t.Logf("seed %d; ledger, store and logs are kept in %s; repeat with\n\tgo test ./internal/rig -count 1 -run '^%s$'%s -rig.seed %d",
				n, dir, strings.ReplaceAll(t.Name(), "/", "$/^"), flags(), n)
			return
		}
		os.RemoveAll(dir)
	})
	if f.store, err = f.base.Store.open(ctx); err != nil {
		t.Fatal(err)
	}
	f.base.Works = slices.Clone(base.Works)
	for i := range f.base.Works {
		f.base.Works[i].InTx = base.Works[i].InTx && f.store.effect != nil
	}
	f.place.ask(t, func(db *sql.DB) error {
		_, err := db.ExecContext(ctx, makeEffects)
		return err
	})
	return f
}

// flags are those of the rig that were set, but for the seed.
func flags() (list string) {
	flag.Visit(func(x *flag.Flag) {
		if strings.HasPrefix(x.Name, "rig.") && x.Name != "rig.seed" {
			list += fmt.Sprintf(" -%s=%s", x.Name, x.Value)
		}
	})
	return list
}

// lasts bounds a story that is longer than others.
func (f *fleet) lasts(d time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	f.Cleanup(cancel)
	f.ctx = ctx
}

func skipSlow(t *testing.T) {
	t.Helper()
	if slow && *rounds == 0 && os.Getenv("BELFRY_LONG") != "1" {
		t.Skip("skipped with the race detector: it slows processes several times, and the faults are for the processes; -rig.rounds 1 runs it")
	}
}

// endAll kills what lives, and waits for all that ever lived.
func (f *fleet) endAll() {
	for _, p := range f.all {
		p.Kill()
	}
	f.readers.Wait()
	if f.store != nil {
		if err := f.store.close(); err != nil {
			f.Error(err)
		}
	}
	for _, way := range f.ways {
		if err := way.Close(); err != nil {
			f.Error(err)
		}
	}
}

// start starts a replica and waits until it gossips.
func (f *fleet) start(name string, armed *fault) *proc {
	f.Helper()
	s := f.base
	s.Name, s.Fault = name, armed
	return f.launch(name, s)
}

// launch starts a process, known here by that name, and waits until it gossips.
func (f *fleet) launch(name string, s spec) *proc {
	f.Helper()
	p := f.spawn(name, s)
	f.await(name+" gossips", func() bool { return p.state.Addr != "" || p.ended })
	return p
}

// spawn starts a process. It calls those that live.
func (f *fleet) spawn(name string, s spec) *proc {
	f.Helper()
	exe, err := os.Executable()
	if err != nil {
		f.Fatal(err)
	}
	return f.spawnAs(exe, name, s, func(s spec) any { return s })
}

// spawnAs is spawn of another build of this program, which may want to be told its spec in other words.
func (f *fleet) spawnAs(program, name string, s spec, words func(spec) any) *proc {
	f.Helper()
	log, err := os.OpenFile(f.log(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		f.Fatal(err)
	}
	defer log.Close()
	f.mu.Lock()
	for _, p := range f.live {
		if p.state.Addr != "" {
			s.Seeds = append(slices.Clone(s.Seeds), p.state.Addr)
		}
	}
	f.mu.Unlock()
	var via []string
	if f.lan != nil {
		via, s.Bind = f.lan.seat(name)
	}
	if f.zoneinfo != "" {
		via = append(via, "env", "ZONEINFO="+f.zoneinfo)
	}
	if f.place.server != nil {
		s.Store = f.place.site(f.way(name).Addr())
	}
	child, err := procs.StartProgram(program, via, log, role)
	if err != nil {
		f.Fatal(err)
	}
	p := &proc{Child: child, name: name, from: len(f.book.lines)}
	f.all = append(f.all, p)
	f.mu.Lock()
	f.live[name] = p
	f.mu.Unlock()
	f.readers.Go(func() { f.read(p) })
	_ = child.Send(words(s)) // one that cannot be told has ended, and who awaits it sees that
	return p
}

// way is a process's to a server that this fleet alone uses.
func (f *fleet) way(name string) *faultproxy.Proxy {
	f.Helper()
	if f.ways[name] == nil {
		p, err := faultproxy.Listen(f.place.db.Addr)
		if err != nil {
			f.Fatal(err)
		}
		f.ways[name] = p
	}
	return f.ways[name]
}

func (f *fleet) log(name string) string { return filepath.Join(f.dir, name+".log") }

// read keeps a process's state until its end.
func (f *fleet) read(p *proc) {
	for {
		var s state
		err := p.Receive(&s)
		if err != nil {
			<-p.Done()
		}
		f.mu.Lock()
		if err == nil {
			p.state = s
		} else {
			p.ended = true
			if f.live[p.name] == p {
				delete(f.live, p.name)
			}
		}
		close(f.changed)
		f.changed = make(chan struct{})
		f.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// await waits until ok, which is called with the fleet's lock held and the ledger read.
func (f *fleet) await(what string, ok func() bool) {
	f.Helper()
	tick := time.NewTicker(50 * time.Millisecond) // the ledger and the store do not tell when they change
	defer tick.Stop()
	for {
		f.refresh()
		done, changed := f.look(ok)
		if done {
			return
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-f.ctx.Done():
			f.dump()
			f.Fatalf("waiting for: %s: %v", what, f.ctx.Err())
		}
	}
}

// look calls ok with the lock held, which it gives back also where ok ends the test.
func (f *fleet) look(ok func() bool) (done bool, changed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return ok(), f.changed
}

func (f *fleet) refresh() {
	f.Helper()
	if err := f.book.refresh(); err != nil && !os.IsNotExist(err) {
		f.Fatal(err)
	}
}

func (f *fleet) dump() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, p := range f.live {
		f.Logf("%s (process %d): %+v", name, p.Pid(), p.state)
	}
}

// ready waits until all that live are, and agree that they own.
func (f *fleet) ready() {
	f.Helper()
	f.await("all ready and agreed", func() bool {
		for _, p := range f.live {
			if p.state.NotReady != "" || len(p.state.Owners) != len(f.live) {
				return false
			}
		}
		return true
	})
	if f.since.IsZero() {
		f.since = time.Now()
	}
}

// three starts as many replicas and waits until they are ready.
func (f *fleet) three() (a, b, c *proc) {
	f.Helper()
	all := f.several(3)
	return all[0], all[1], all[2]
}

// several starts replicas, named a, b, …, and waits until they are ready.
func (f *fleet) several(n int) []*proc {
	f.Helper()
	all := []*proc{f.start("a", nil)}
	for i := 1; i < n; i++ {
		s := f.base
		s.Name = string(rune('a' + i))
		all = append(all, f.spawn(s.Name, s))
	}
	f.await("all gossip", func() bool {
		return !slices.ContainsFunc(all, func(p *proc) bool { return p.state.Addr == "" && !p.ended })
	})
	f.ready()
	return all
}

// add gives all replicas further jobs, and those that start later too.
func (f *fleet) add(works ...work) {
	f.Helper()
	f.base.Works = append(slices.Clone(f.base.Works), works...)
	for _, name := range f.names() {
		f.order(f.proc(name), order{Add: works})
	}
}

// pass lets time pass: only a fault takes time, never a wait for something to happen.
func (f *fleet) pass(d time.Duration) {
	f.Helper()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-f.ctx.Done():
		f.Fatal(f.ctx.Err())
	}
}

// wrote finds the first line of a process in the ledger of a phase and a text.
func (f *fleet) wrote(p *proc, phase, text string) *line {
	for i := range f.book.lines {
		if l := &f.book.lines[i]; l.Pid == p.Pid() && l.Phase == phase && strings.Contains(l.Text, text) {
			return l
		}
	}
	return nil
}

// names are those that live, sorted.
func (f *fleet) names() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []string
	for name := range f.live {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

func (f *fleet) proc(name string) *proc {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.live[name]
}

// order tells a process something.
func (f *fleet) order(p *proc, o order) {
	f.Helper()
	if err := p.Send(o); err != nil {
		f.Fatal(err)
	}
}

// kill kills a process from outside and waits for its end.
func (f *fleet) kill(p *proc) {
	f.Helper()
	f.signal(p, syscall.SIGKILL)
	f.dead(p, fault{Act: random})
}

// signal sends one to a process.
func (f *fleet) signal(p *proc, s syscall.Signal) {
	f.Helper()
	if err := syscall.Kill(p.Pid(), s); err != nil {
		f.Fatalf("signal %v to %s (process %d): %v; %v", s, p.name, p.Pid(), err, f.tail(p.name))
	}
}

// dead waits for a process to end by a fault, and demands that it was this one.
func (f *fleet) dead(p *proc, x fault) {
	f.Helper()
	f.await(p.name+" dies", func() bool { return p.ended })
	f.refresh()
	wrote := slices.ContainsFunc(f.book.lines[p.from:], func(l line) bool { return l.Phase == faulted && l.Pid == p.Pid() })
	if wrote != (x.Act != random) || x.Act != crash && fmt.Sprint(p.Err()) != "signal: killed" {
		f.Fatalf("%s (process %d) ended by itself: %v\n%s", p.name, p.Pid(), p.Err(), f.tail(p.name))
	}
	p.meant, f.died[p.Pid()] = true, true
}

// end lets all replicas go, in order, and demands that they drain.
func (f *fleet) end() {
	f.Helper()
	var living []*proc
	for _, p := range f.all {
		if !p.meant {
			living = append(living, p)
			f.signal(p, syscall.SIGTERM)
		}
	}
	for _, p := range living {
		f.drained(p)
	}
}

// drained waits for a process to end in order, after SIGTERM.
func (f *fleet) drained(p *proc) {
	f.Helper()
	p.meant = true
	f.await(p.name+" drains", func() bool { return p.ended })
	if err := p.Err(); err != nil {
		f.Errorf("%s (process %d) drained and ended with %v\n%s", p.name, p.Pid(), err, f.tail(p.name))
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
