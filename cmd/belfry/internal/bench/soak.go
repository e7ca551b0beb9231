package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/belfry-go/belfry/idempotency/sqlite"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/membership"
	"github.com/belfry-go/belfry/scheduler"
)

// SoakOptions are how long to soak.
type SoakOptions struct {
	Minutes int // 1 to 1440
}

// soakPlan is a soak of whole dues. It begins at the first that comes.
type soakPlan struct {
	keys  int
	every time.Duration
	dues  int
}

const (
	soakJob     = "soak"
	soakTimeout = time.Second
	soakSettle  = time.Minute // what may still be at work when the last due has come
)

// Soak runs three replicas in this process, on a SQLite file of their own, with 10,000 occurrences a minute of which 5 %
// panic, 5 % hang and 5 % return an error, and tells log how far it is. Then it accounts for every one of them by the store's
// record. When it returns, all of it has ended.
func Soak(ctx context.Context, o SoakOptions, log io.Writer) (SoakReport, error) {
	if err := between("minutes", o.Minutes, 1, 1440); err != nil {
		return SoakReport{}, err
	}
	return soakPlan{keys: 1000, every: 6 * time.Second, dues: 10 * o.Minutes}.run(ctx, log)
}

func (p soakPlan) run(ctx context.Context, log io.Writer) (r SoakReport, err error) {
	dir, err := os.MkdirTemp("", "belfry-soak-")
	if err != nil {
		return r, fmt.Errorf("bench: temporary folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	before := runtime.NumGoroutine()
	err = withNoise(&r.Timer, func() error { return p.soak(ctx, filepath.Join(dir, "soak.db"), &r, log) })
	r.GoroutinesBefore, r.GoroutinesAfter = before, settled(before)
	return r, err
}

// settled waits until there are as few goroutines as before, and not for long: those of a database client end by themselves.
func settled(before int) (n int) {
	for range 50 {
		if n = runtime.NumGoroutine(); n <= before {
			break
		}
		<-time.After(100 * time.Millisecond)
	}
	return n
}

// soak runs the replicas, and then reads what they left in the store.
func (p soakPlan) soak(ctx context.Context, path string, r *SoakReport, log io.Writer) (err error) {
	store, err := sqlite.Open(ctx, path, nil)
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	w := newSoakWork(p, time.Now().Add(2*time.Second).Truncate(p.every).Add(p.every))
	r.Occurrences, r.Replicas, r.Seconds = p.keys*p.dues, replicas, (time.Duration(p.dues) * p.every).Seconds()

	running, stop := context.WithCancelCause(ctx)
	var fleet sync.WaitGroup
	failed := make(chan error, replicas) // each replica's end
	for i := range replicas {
		s, err := w.replica(i, store)
		if err != nil {
			stop(err)
			break
		}
		fleet.Go(func() { failed <- s.Run(running) })
	}
	work := w.watch(running, &r.Heap, log, store)
	stop(errSoaked)
	fleet.Wait()
	close(failed)
	for end := range failed {
		err = errors.Join(err, end)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.Join(err, work, w.account(context.WithoutCancel(ctx), store, r))
}

var errSoaked = errors.New("the soak is over")

// soakWork is the load: what each occurrence does, and what was seen of it.
type soakWork struct {
	soakPlan
	first, last time.Time // dues
	schedule    jobs.Schedule
	names       []string // keys

	mu     sync.Mutex
	starts map[soakRun]int
	late   []time.Duration
}

// soakRun names an occurrence in little memory.
type soakRun struct {
	key int32
	due int32 // the n-th
}

func newSoakWork(p soakPlan, first time.Time) *soakWork {
	w := &soakWork{soakPlan: p, first: first, last: first.Add(time.Duration(p.dues-1) * p.every)}
	w.schedule = jobs.Every(p.every).Phase(time.Duration(first.UnixNano()) % p.every).From(first).Until(w.last.Add(time.Second))
	for i := range p.keys {
		w.names = append(w.names, fmt.Sprintf("customer-%04d", i))
	}
	w.starts = make(map[soakRun]int, p.keys*p.dues)
	w.late = make([]time.Duration, 0, p.keys*p.dues)
	return w
}

// replica is the i-th.
func (w *soakWork) replica(i int, store *sqlite.Store) (*scheduler.Scheduler, error) {
	var others []string
	for n := range replicas {
		others = append(others, nth("replica", n))
	}
	s, err := scheduler.New(scheduler.Config{
		Namespace: "soak", Members: membership.NewStatic(nth("replica", i), others...), Store: store,
		Concurrency: 64, Logger: slog.New(slog.DiscardHandler),
		Hooks: []scheduler.Hooks{{Finished: w.finished}},
	})
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	return s, s.Add(jobs.Job{
		Name: soakJob, Schedule: w.schedule, Keys: jobs.KeyList(w.names...), Run: w.handle,
		Overlap: jobs.OverlapAllow, // a run that hangs and is tried again may outlast the next due
		Timeout: soakTimeout, Retry: jobs.Retry{Attempts: 2, First: 100 * time.Millisecond, Max: 200 * time.Millisecond},
	})
}

func (w *soakWork) finished(_ context.Context, f scheduler.Finished) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f.Attempt == 1 && len(w.late) < cap(w.late) {
		w.late = append(w.late, f.Late)
	}
}

// handle does what the occurrence's fate says.
func (w *soakWork) handle(ctx context.Context, o jobs.Occurrence) error {
	w.started(o)
	f := fateOf(o.Key, o.Due)
	if o.Attempt > 1 && f.recovers {
		return nil
	}
	switch f.ill {
	case panics:
		panic("soak: " + o.Key)
	case hangs:
		<-ctx.Done()
		if f.deaf {
			<-time.After(3 * soakTimeout / 2)
		}
		return context.Cause(ctx)
	case fails:
		return errors.New("soak: " + o.Key)
	}
	return nil
}

func (w *soakWork) started(o jobs.Occurrence) {
	i, _ := slices.BinarySearch(w.names, o.Key)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.starts[soakRun{int32(i), int32(o.Due.Sub(w.first) / w.every)}]++
}

// watch samples the heap until all has ended, or nothing can end any more.
func (w *soakWork) watch(ctx context.Context, heap *SoakHeap, log io.Writer, store *sqlite.Store) error {
	var samples []float64
	for end := w.last.Add(soakSettle); ; {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(w.every / 2):
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		samples = append(samples, float64(m.HeapAlloc)/(1<<20))
		heap.set(samples)
		now := time.Now()
		if len(samples)%10 == 0 {
			fmt.Fprintf(log, "%v of %v: %.1f MB of heap, %d goroutines\n", now.Sub(w.first).Round(time.Second),
				w.last.Sub(w.first).Round(time.Second), samples[len(samples)-1], runtime.NumGoroutine())
		}
		if now.Before(w.last) {
			continue
		}
		over, err := w.over(ctx, store)
		if over || err != nil || now.After(end) {
			return err
		}
	}
}
