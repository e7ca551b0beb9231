package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/belfry-go/belfry/internal/procs"
)

// Fleet is the parent's side: replicas by name, each a process. One goroutine owns it and calls its methods; Close
// ends it.
type Fleet struct {
	// Hurry, once it is closed, makes the replicas that Close stops not wait for their handlers. Nil: they may take their time.
	Hurry <-chan struct{}

	command []string // of this program: what makes it a replica
	dir     string   // of log files
	base    Spec     // with neither Name nor Seeds
	plan    any      // nil before Go

	live    map[string]*replica
	events  chan Event
	closing chan struct{}  // closed by Close: nobody reads events any more
	readers sync.WaitGroup // one for each process ever started
}

type replica struct {
	child  *procs.Child
	addr   string   // "" before it has joined
	owners []string // as it sees them; nil before it has said
}

// New returns a fleet without replicas. command are the arguments that make this program call Replica; each
// process's name is put behind them. base is what all replicas are told. Their logs go to dir.
func New(dir string, base Spec, command ...string) *Fleet {
	return &Fleet{command: command, dir: dir, base: base, live: map[string]*replica{},
		events: make(chan Event, 1024), closing: make(chan struct{})}
}

// Start starts the replica of that name, which calls some of those that live, and runs the plan if Go has told it.
func (f *Fleet) Start(name string) (pid int, err error) {
	log, err := os.OpenFile(f.log(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, fmt.Errorf("fleet: replica %q: %w", name, err)
	}
	defer log.Close()
	child, err := procs.Start(log, append(slices.Clone(f.command), name)...)
	if err != nil {
		return 0, fmt.Errorf("fleet: replica %q: %w", name, err)
	}
	spec := f.base
	spec.Name, spec.Seeds = name, f.seeds()
	f.live[name] = &replica{child: child}
	f.readers.Go(func() { f.read(name, child) })
	// A replica that cannot be told has ended, and its log says why: Exited follows.
	_ = child.Send(spec)
	if f.plan != nil {
		_ = child.Send(f.plan)
	}
	return child.Pid(), nil
}

func (f *Fleet) log(name string) string { return filepath.Join(f.dir, name+".log") }

// seeds are addresses of living replicas: enough that one still lives when it is called.
func (f *Fleet) seeds() []string {
	const most = 3
	var list []string
	for _, r := range f.live {
		if r.addr != "" && len(list) < most {
			list = append(list, r.addr)
		}
	}
	return list
}

// read turns what a process says into events, the last one its end.
func (f *Fleet) read(name string, child *procs.Child) {
	for {
		var e Event
		err := child.Receive(&e)
		if err != nil {
			e = Event{Kind: Exited, Err: child.Err()}
		}
		e.Replica, e.Pid = name, child.Pid()
		select {
		case f.events <- e:
		case <-f.closing:
		}
		if err != nil {
			return
		}
	}
}

// Events are what the replicas report. Each one read is to be given to Note.
func (f *Fleet) Events() <-chan Event { return f.events }

// Note keeps what an event says of the fleet. It returns an error when a replica ended that was not told to.
func (f *Fleet) Note(e Event) error {
	r := f.live[e.Replica]
	if r == nil || r.child.Pid() != e.Pid {
		return nil // of a process that was killed or stopped
	}
	switch e.Kind {
	case Joined:
		r.addr = e.Addr
	case Owners:
		r.owners = e.Names
	case Exited:
		delete(f.live, e.Replica)
		return f.died(e)
	}
	return nil
}

// died is the error of a replica that ended by itself.
func (f *Fleet) died(e Event) error {
	return fmt.Errorf("fleet: replica %q (process %d) ended by itself: %v%s", e.Replica, e.Pid, e.Err, f.lastWords(e.Replica))
}

// lastWords is the end of a replica's log, to be put behind an error.
func (f *Fleet) lastWords(name string) string {
	text, err := os.ReadFile(f.log(name))
	if err != nil {
		text = []byte(err.Error())
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return "; the end of its log:\n  " + strings.Join(lines[max(0, len(lines)-5):], "\n  ")
}

// Joined reports whether all living replicas have joined the gossip.
func (f *Fleet) Joined() bool {
	for _, r := range f.live {
		if r.addr == "" {
			return false
		}
	}
	return true
}

// Go tells all replicas the plan, and those that start later too.
func (f *Fleet) Go(plan any) error {
	f.plan = plan
	var errs []error
	for _, r := range f.live {
		errs = append(errs, r.child.Send(plan))
	}
	return errors.Join(errs...)
}

// Tell sends a document to a living replica. One that cannot be told has ended: Exited follows.
func (f *Fleet) Tell(name string, doc any) { _ = f.live[name].child.Send(doc) }

// Live are the names of the living replicas, sorted.
func (f *Fleet) Live() []string { return slices.Sorted(maps.Keys(f.live)) }

// Pid is the process of a living replica, else 0.
func (f *Fleet) Pid(name string) int {
	if r := f.live[name]; r != nil {
		return r.child.Pid()
	}
	return 0
}

// Agreed is the owners, if all living replicas see the same ones and these are just the living; else nil.
func (f *Fleet) Agreed() []string {
	names := f.Live()
	for _, r := range f.live {
		if !slices.Equal(r.owners, names) {
			return nil
		}
	}
	return names
}

// Kill ends a living replica by SIGKILL and returns the process it was.
func (f *Fleet) Kill(name string) int {
	r := f.live[name]
	delete(f.live, name)
	r.child.Kill()
	return r.child.Pid()
}

// Release lets a living replica go, which it takes as the word to drain, and returns at once.
func (f *Fleet) Release(name string) {
	r := f.live[name]
	delete(f.live, name)
	f.readers.Go(func() { _ = r.child.Stop(f.patience()) })
}

// patience is how long a replica may take to end: to drain, to leave gossip, to close the store.
func (f *Fleet) patience() time.Duration { return f.base.Timing.Drain + 5*time.Second }

// Close stops all replicas and waits for every process. It returns what those that lived ended with.
func (f *Fleet) Close() error {
	close(f.closing)
	errs := make(chan error, len(f.live))
	for name, r := range f.live {
		go func() {
			select {
			case <-f.Hurry:
				r.child.Interrupt()
			case <-r.child.Done():
			}
		}()
		go func() {
			if err := r.child.Stop(f.patience()); err != nil {
				errs <- fmt.Errorf("fleet: replica %q: stop: %w%s", name, err, f.lastWords(name))
				return
			}
			errs <- nil
		}()
	}
	var all error
	for range f.live {
		all = errors.Join(all, <-errs)
	}
	clear(f.live)
	f.readers.Wait()
	return all
}

// Await notes events until done is true, and hands each to see.
func (f *Fleet) Await(ctx context.Context, see func(Event), done func() bool) error {
	for !done() {
		select {
		case e := <-f.events:
			see(e)
			if err := f.Note(e); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
