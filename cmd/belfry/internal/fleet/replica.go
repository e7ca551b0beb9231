package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/storeurl"
	"github.com/belfry-go/belfry/internal/procs"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/membership"
	"github.com/belfry-go/belfry/ring"
	"github.com/belfry-go/belfry/scheduler"
)

// openWithin bounds the opening of the store.
const openWithin = 30 * time.Second

// Declare makes a replica's jobs of the plan that the parent gave to Fleet.Go, as JSON. The jobs may use the client
// while they run, and report from their handlers.
type Declare func(s Spec, c *storeurl.Client, plan []byte, report func(Event)) ([]jobs.Job, error)

// Replica runs one replica, in a child process: it joins the gossip, reports where, waits for the plan, and then
// runs its jobs until its parent lets go or ctx ends.
func Replica(ctx context.Context, parent *procs.Parent, declare Declare) (err error) {
	var spec Spec
	if err := parent.Receive(&spec); err != nil {
		return err
	}
	report := func(e Event) {
		// A parent that does not listen any more is about to end this process, or has died.
		_ = parent.Report(e)
	}
	cluster, err := spec.Join(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Close()) }()
	report(Event{Kind: Joined, Addr: cluster.Addr()})

	var plan json.RawMessage
	if err := parent.Receive(&plan); err != nil {
		return released(err)
	}
	opening, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
	client, err := spec.connect(opening)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	store, err := client.Open(opening)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	var calls atomic.Int64
	s, err := scheduler.New(scheduler.Config{
		Namespace: spec.Namespace, Members: cluster, Store: store, Concurrency: spec.Concurrency,
		Ring:  &ring.Options{Partitions: spec.Partitions},
		Lease: spec.Timing.Lease, Grace: spec.Timing.Grace, Sweep: spec.Timing.Sweep, Drain: spec.Timing.Drain,
		Hooks: []scheduler.Hooks{hooks(report, &calls)},
	})
	if err != nil {
		return err
	}
	list, err := declare(spec, client, plan, report)
	if err != nil {
		return fmt.Errorf("fleet: replica %q: %w", spec.Name, err)
	}
	if err := s.Add(list...); err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	go watchOwners(watching, cluster, report)
	go watchMemory(watching, report)
	if spec.Usage > 0 {
		go watchUsage(watching, spec.Usage, &calls, report)
	}
	defer hurries(s)()
	return s.Run(ctx)
}

// hurries makes an interrupt, which the parent alone sends, end the drain that runs or comes. It returns what ends the watch.
func hurries(s *scheduler.Scheduler) (end func()) {
	signals, ended := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, os.Interrupt)
	go func() {
		select {
		case <-signals:
			s.Hurry()
		case <-ended:
		}
	}()
	return func() {
		signal.Stop(signals)
		close(ended)
	}
}

// released makes the parent's letting go before the start an end in order.
func released(err error) error {
	if errors.Is(err, procs.ErrReleased) {
		return nil
	}
	return err
}

func hooks(report func(Event), calls *atomic.Int64) scheduler.Hooks {
	return scheduler.Hooks{
		Refused: func(_ context.Context, r scheduler.Refused) {
			report(Event{Kind: Refused, Cause: r.Cause})
		},
		TakenUp: func(context.Context, scheduler.TakenUp) {
			report(Event{Kind: TakenUp})
		},
		Called: func(context.Context, scheduler.Call) { calls.Add(1) },
	}
}

func watchOwners(ctx context.Context, c *membership.Cluster, report func(Event)) {
	for {
		names, changed := c.Watch()
		report(Event{Kind: Owners, At: time.Now(), Names: names})
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// watchMemory reports the peak of this process's memory whenever it has grown by a megabyte.
func watchMemory(ctx context.Context, report func(Event)) {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	var told int64
	for {
		if now := peak(); now > told+1<<20 {
			told = now
			report(Event{Kind: Memory, Bytes: now})
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
