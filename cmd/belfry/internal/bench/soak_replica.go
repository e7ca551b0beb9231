package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-metrics"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/belfry-go/belfry/cmd/belfry/internal/fleet"
	"github.com/belfry-go/belfry/cmd/belfry/internal/storeurl"
	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/internal/procs"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/membership"
	"github.com/belfry-go/belfry/scheduler"
	"github.com/belfry-go/belfry/scheduler/promhooks"
)

// What a replica of a soak reports beside Joined, Owners and Started; Doc has the rest.
const (
	soakReady   = "ready"   // it takes its share; told once
	soakEnded   = "ended"   // an occurrence ended, and its record was answered: a soakEvent
	soakSampled = "sampled" // soakFigures
	soakClosed  = "closed"  // the last soakFigures, with all closed
)

// soakEvent is an attempt that started, or a run that ended.
type soakEvent struct {
	Job, Key string
	Due      int64 // Unix seconds
	Fence    int64
	Late     time.Duration // of what ended at its first attempt
}

// soakFigures are what a process holds.
type soakFigures struct {
	Goroutines, FDs             int
	Heap, RSS                   int64  // bytes; the heap after a collection
	Series                      int    // of metrics
	Queue                       int    // broadcasts that wait in gossip, when it last looked
	GoroutinesBefore, FDsBefore int    // closed: before anything was opened
	Stacks                      string // closed, where there are more goroutines than before
}

// Soaker runs one replica of a soak in a child process.
func Soaker(ctx context.Context, parent *procs.Parent) error {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // handlers that panic fill a log, and are meant
	r := &soaker{parent: parent}
	if err := parent.Receive(&r.spec); err != nil {
		return err
	}
	before := held()
	err := r.run(ctx)
	last := settledFigures(before)
	last.GoroutinesBefore, last.FDsBefore = before.Goroutines, before.FDs
	r.report(soakClosed, last)
	return err
}

// soaker is one replica of a soak.
type soaker struct {
	parent *procs.Parent
	spec   fleet.Spec
	queue  gossipQueue
	series *prometheus.Registry
}

// report tells the parent. One that does not listen any more is about to end this process, or has died.
func (r *soaker) report(kind string, doc any) {
	text, err := json.Marshal(doc)
	if err != nil {
		return // no type here can fail
	}
	_ = r.parent.Report(fleet.Event{Kind: kind, At: time.Now(), Doc: text})
}

func (r *soaker) run(ctx context.Context) (err error) {
	if err := r.queue.listen(); err != nil {
		return err
	}
	cluster, err := r.spec.Join(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Close()) }()
	_ = r.parent.Report(fleet.Event{Kind: fleet.Joined, Addr: cluster.Addr()})
	var plan soakPlan
	if err := r.parent.Receive(&plan); err != nil {
		return ended(err)
	}
	u, err := storeurl.Parse(r.spec.Store)
	if err != nil {
		return err
	}
	client, err := storeurl.Connect(ctx, u)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	store, err := client.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return r.schedule(ctx, plan, cluster, store)
}

// schedule runs the jobs until the parent lets go.
func (r *soaker) schedule(ctx context.Context, plan soakPlan, cluster *membership.Cluster, store storeurl.Store) error {
	r.series = prometheus.NewRegistry()
	counted, err := promhooks.New(r.series)
	if err != nil {
		return err
	}
	t := r.spec.Timing
	s, err := scheduler.New(scheduler.Config{
		Namespace: r.spec.Namespace, Members: cluster, Store: store, Concurrency: r.spec.Concurrency,
		Lease: t.Lease, Grace: t.Grace, Sweep: t.Sweep, Drain: t.Drain,
		MissedAfter: soakMissed, Horizon: soakHorizon, Retention: soakRetention,
		Hooks: []scheduler.Hooks{counted, {Finished: r.finished}},
	})
	if err != nil {
		return err
	}
	beside, stop := context.WithCancel(ctx)
	var others sync.WaitGroup
	others.Go(func() { r.ready(beside, s) })
	others.Go(func() { r.sample(beside, plan.Sample) })
	editing := make(chan error, 1)
	go func() { editing <- r.edit(s, plan) }()
	err = s.Run(ctx)
	stop()
	others.Wait()
	return errors.Join(err, <-editing)
}

// edit gives the scheduler the jobs, and takes each further plan as an edition of the one that is edited, until the parent
// lets go.
func (r *soaker) edit(s *scheduler.Scheduler, plan soakPlan) error {
	for has := false; ; {
		var err error
		if has {
			err = errors.Join(s.Remove(soakEditedJob), s.Add(plan.edited(r.handle)))
		} else if !plan.First.IsZero() {
			err, has = s.Add(append(plan.jobs(r.handle), plan.edited(r.handle))...), true
		}
		if err != nil {
			return err
		}
		if err := r.parent.Receive(&plan); err != nil {
			return ended(err)
		}
	}
}

// ready tells the parent when this replica takes its share.
func (r *soaker) ready(ctx context.Context, s *scheduler.Scheduler) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for s.Ready() != nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
	r.report(soakReady, nil)
}

// ended makes the parent's letting go an end in order.
func ended(err error) error {
	if errors.Is(err, procs.ErrReleased) {
		return nil
	}
	return err
}

func (r *soaker) handle(ctx context.Context, o jobs.Occurrence) error {
	r.report(fleet.Started, soakEvent{Job: o.Job, Key: o.Key, Due: o.Due.Unix(), Fence: o.Fence})
	return fateOf(o.Key, o.Due).handle(ctx, o)
}

func (r *soaker) finished(_ context.Context, f scheduler.Finished) {
	if f.Outcome == idempotency.Done || f.Outcome == idempotency.Failed {
		r.report(soakEnded, soakEvent{Job: f.Job, Key: f.Key, Due: f.Due.Unix(), Fence: f.Fence, Late: f.Late})
	}
}

// sample reports what this process holds, every so often.
func (r *soaker) sample(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			f := held()
			f.Queue = int(r.queue.last.Load())
			families, err := r.series.Gather()
			for _, m := range families {
				f.Series += len(m.GetMetric())
			}
			if err != nil {
				f.Series = -1
			}
			r.report(soakSampled, f)
		case <-ctx.Done():
			return
		}
	}
}

// held is what this process holds now; what the system does not tell is 0.
func held() (f soakFigures) {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	f.Heap, f.Goroutines = int64(m.HeapAlloc), runtime.NumGoroutine()
	if open, err := os.ReadDir("/proc/self/fd"); err == nil { // Linux
		f.FDs = len(open) - 1 // but for the one that read it
	}
	f.RSS = fleet.Resident()
	return f
}

// settledFigures waits until no more is held than before, and not for long: what is closed ends by itself.
func settledFigures(before soakFigures) soakFigures {
	f := held()
	for range 20 {
		if f.Goroutines <= before.Goroutines && f.FDs <= before.FDs {
			return f
		}
		<-time.After(100 * time.Millisecond)
		f = held()
	}
	if f.Goroutines > before.Goroutines {
		var text bytes.Buffer
		if err := pprof.Lookup("goroutine").WriteTo(&text, 1); err == nil {
			f.Stacks = text.String()
		}
	}
	return f
}

// gossipQueue hears from memberlist's own metrics how many broadcasts wait.
type gossipQueue struct {
	metrics.BlackholeSink
	last atomic.Int64
}

func (q *gossipQueue) listen() error {
	c := metrics.DefaultConfig("")
	c.EnableRuntimeMetrics, c.EnableHostname = false, false
	_, err := metrics.NewGlobal(c, q)
	return err
}

// AddSampleWithLabels takes the length of the queue, which memberlist looks at each half minute.
func (q *gossipQueue) AddSampleWithLabels(key []string, value float32, _ []metrics.Label) {
	if strings.HasSuffix(strings.Join(key, "."), "memberlist.queue.broadcasts") {
		q.last.Store(int64(value))
	}
}
