package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/fleet"
)

// Options are how long to measure.
type Options struct {
	Seconds int // of lateness, 1 to 3600
	Rounds  int // of each way to lose an owner, 1 to 100
}

func (o Options) validate() error {
	return errors.Join(between("seconds", o.Seconds, 1, 3600), between("rounds", o.Rounds, 1, 100))
}

// bench is one measurement. One goroutine runs it.
type bench struct {
	o     Options
	fleet *fleet.Fleet
	log   io.Writer
}

// Latency measures, and tells log how far it is. It starts this program again, with the arguments "bench replica
// NAME", which must lead to Replica. When it returns, those processes have ended and the files are gone.
func Latency(ctx context.Context, o Options, log io.Writer) (r Report, err error) {
	if err := o.validate(); err != nil {
		return Report{}, err
	}
	timing := fleet.Brisk(replicas)
	r = Report{Replicas: replicas, Store: "sqlite", Profile: "fast", LeaseMS: millis(timing.Lease), GraceMS: millis(timing.Grace), SweepMS: millis(timing.Sweep)}
	err = withNoise(&r.Timer, func() error {
		return withFleet(ctx, fleet.Spec{Concurrency: 4, Timing: timing}, "replica", func(f *fleet.Fleet) error {
			b := &bench{o: o, fleet: f, log: log}
			return b.measure(ctx, &r)
		})
	})
	return r, err
}

func (b *bench) measure(ctx context.Context, r *Report) error {
	fmt.Fprintf(b.log, "starting %d replicas\n", replicas)
	if err := start(ctx, b.fleet, struct{}{}); err != nil {
		return err
	}
	if err := b.calm(ctx); err != nil {
		return err
	}
	fmt.Fprintf(b.log, "lateness, for %d s\n", b.o.Seconds)
	late, err := b.lateness(ctx)
	if err != nil {
		return err
	}
	r.Lateness = summarise(late)
	return measure(ctx, b.o.Rounds, b.log,
		event{"an owner is killed", &r.Killed, b.killed},
		event{"an owner is killed while it works", &r.TakenUp, b.takenUp},
		event{"an owner is stopped", &r.Stopped, b.stopped})
}

// calm waits until all replicas live and agree, and the next tick has run.
func (b *bench) calm(ctx context.Context) error {
	if err := agree(ctx, b.fleet); err != nil {
		return err
	}
	_, err := b.next(ctx, func(e fleet.Event) bool { return e.Job == tickJob })
	return err
}

// next waits for the next start of a handler that match accepts.
func (b *bench) next(ctx context.Context, match func(fleet.Event) bool) (fleet.Event, error) {
	return b.event(ctx, func(e fleet.Event) bool { return e.Kind == fleet.Started && match(e) })
}

func (b *bench) event(ctx context.Context, match func(fleet.Event) bool) (found fleet.Event, err error) {
	seen := false
	err = b.fleet.Await(ctx, func(e fleet.Event) {
		if match(e) {
			found, seen = e, true
		}
	}, func() bool { return seen })
	return found, err
}

// lateness is from the due to the handler's start of each tick.
func (b *bench) lateness(ctx context.Context) ([]time.Duration, error) {
	var late []time.Duration
	for range b.o.Seconds {
		e, err := b.next(ctx, func(e fleet.Event) bool { return e.Job == tickJob })
		if err != nil {
			return nil, err
		}
		late = append(late, e.At.Sub(e.Due))
	}
	return late, nil
}

// killed is from the owner's SIGKILL, at any moment of a second, to the start of a tick elsewhere.
func (b *bench) killed(ctx context.Context) (time.Duration, error) {
	e, err := b.next(ctx, func(e fleet.Event) bool { return e.Job == tickJob })
	if err != nil {
		return 0, err
	}
	if err := wait(ctx, b.fleet, rand.N(time.Second), ignore); err != nil {
		return 0, err
	}
	return b.kill(ctx, e.Replica, func(n fleet.Event) bool { return n.Job == tickJob })
}

// takenUp is from the SIGKILL of a replica that works to the start of the same work elsewhere.
func (b *bench) takenUp(ctx context.Context) (time.Duration, error) {
	e, err := b.next(ctx, func(e fleet.Event) bool { return e.Job == workJob })
	if err != nil {
		return 0, err
	}
	return b.kill(ctx, e.Replica, func(n fleet.Event) bool { return n.Job == workJob && n.Due.Equal(e.Due) })
}

func (b *bench) kill(ctx context.Context, name string, match func(fleet.Event) bool) (time.Duration, error) {
	at := time.Now()
	pid := b.fleet.Kill(name)
	n, err := b.next(ctx, func(n fleet.Event) bool { return n.Pid != pid && n.At.After(at) && match(n) })
	if err != nil {
		return 0, err
	}
	return n.At.Sub(at), b.again(ctx, name)
}

// stopped is how late the first tick that is due after the word to stop starts elsewhere.
func (b *bench) stopped(ctx context.Context) (time.Duration, error) {
	e, err := b.next(ctx, func(e fleet.Event) bool { return e.Job == tickJob })
	if err != nil {
		return 0, err
	}
	if err := wait(ctx, b.fleet, rand.N(time.Second), ignore); err != nil {
		return 0, err
	}
	at := time.Now()
	b.fleet.Release(e.Replica)
	var first fleet.Event
	gone := false
	err = b.fleet.Await(ctx, func(n fleet.Event) {
		if n.Kind == fleet.Started && n.Job == tickJob && n.Pid != e.Pid && n.Due.After(at) && first.Pid == 0 {
			first = n
		}
		gone = gone || n.Kind == fleet.Exited && n.Pid == e.Pid
	}, func() bool { return gone && first.Pid != 0 })
	if err != nil {
		return 0, err
	}
	return first.At.Sub(first.Due), b.again(ctx, e.Replica)
}

// again starts a replica that is gone, and waits for calm.
func (b *bench) again(ctx context.Context, name string) error {
	if _, err := b.fleet.Start(name); err != nil {
		return err
	}
	return b.calm(ctx)
}
