package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/belfry-go/belfry/internal/procs"
)

// TimersOptions are what to measure.
type TimersOptions struct {
	Entries int // 1000 to 10,000,000
	Seconds int // of what is measured over time, 1 to 600
}

func (o TimersOptions) validate() error {
	return errors.Join(between("entries", o.Entries, 1000, 10_000_000), between("seconds", o.Seconds, 1, 600))
}

// timersPlan is what the parent tells the child that measures.
type timersPlan struct {
	Entries         int
	Settle, Measure time.Duration
}

// timersNews is what the child says: how far it is, and at last one of the others.
type timersNews struct {
	Doing  string
	Failed string
	Report *TimersReport
}

// Timers measures the structure that tells what is due next, and tells log how far it is. It starts this program again, with
// the arguments "bench timekeeper NAME", which must lead to Timekeeper: so the processor time is that of the timers alone. When
// it returns, that process has ended.
func Timers(ctx context.Context, o TimersOptions, log io.Writer) (TimersReport, error) {
	if err := o.validate(); err != nil {
		return TimersReport{}, err
	}
	return timersPlan{Entries: o.Entries, Settle: time.Second, Measure: time.Duration(o.Seconds) * time.Second}.run(ctx, log)
}

func (p timersPlan) run(ctx context.Context, log io.Writer) (r TimersReport, err error) {
	var noise Stats
	err = withNoise(&noise, func() error {
		child, err := procs.Start(nil, "bench", "timekeeper", "timers")
		if err != nil {
			return fmt.Errorf("bench: %w", err)
		}
		defer child.Kill()
		defer context.AfterFunc(ctx, child.Kill)()
		if err := child.Send(p); err != nil {
			return fmt.Errorf("bench: %w", err)
		}
		r, err = listenTo(child, log)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	})
	r.Timer = noise
	return r, err
}

// listenTo hears the child out, to its end.
func listenTo(child *procs.Child, log io.Writer) (r TimersReport, err error) {
	err = errors.New("bench: the process that measures ended before it was done")
	for {
		var n timersNews
		if end := child.Receive(&n); end != nil {
			return r, errors.Join(err, child.Err())
		}
		switch {
		case n.Failed != "":
			err = errors.New(n.Failed)
		case n.Report != nil:
			r, err = *n.Report, nil
		default:
			fmt.Fprintln(log, n.Doing)
		}
	}
}

// Timekeeper measures, in a child process.
func Timekeeper(ctx context.Context, parent *procs.Parent) error {
	var p timersPlan
	if err := parent.Receive(&p); err != nil {
		return err
	}
	r, err := p.measure(ctx, func(doing string) { _ = parent.Report(timersNews{Doing: doing}) })
	if err != nil {
		return parent.Report(timersNews{Failed: err.Error()})
	}
	return parent.Report(timersNews{Report: &r})
}
