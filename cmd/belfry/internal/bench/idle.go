package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/fleet"
	"github.com/belfry-go/belfry/cmd/belfry/internal/storeurl"
	"github.com/belfry-go/belfry/internal/procs"
	"github.com/belfry-go/belfry/jobs"
)

// IdleOptions are how long to measure.
type IdleOptions struct {
	Seconds int // of each load, 1 to 1200: well within the half hour before anything is due
}

func (o IdleOptions) validate() error {
	return between("seconds", o.Seconds, 1, 1200)
}

const idleJobs = 100 // each due hourly

// load is what the replicas hold, and the cost of idling should not grow with.
type load struct{ keys, partitions int }

// idle is one measurement.
type idle struct {
	settle, measure time.Duration // after the replicas agree, and then
	usage           time.Duration // how often they report
	loads           []load
	timing          fleet.Timing
	log             io.Writer
}

// Idle measures what three replicas cost that have nothing to do, and tells log how far it is. It starts this
// program again, with the arguments "bench idler NAME", which must lead to Idler. When it returns, those processes
// have ended and the files are gone.
func Idle(ctx context.Context, o IdleOptions, log io.Writer) (IdleReport, error) {
	if err := o.validate(); err != nil {
		return IdleReport{}, err
	}
	return idle{
		settle: 10 * time.Second, measure: time.Duration(o.Seconds) * time.Second, usage: time.Second,
		loads: []load{{10_000, 4096}, {10, 4096}, {10_000, 65_536}},
		// What scheduler.Config takes by default, but for Drain: there is nothing to wait for.
		timing: fleet.Timing{Lease: 10 * time.Second, Grace: time.Second, Sweep: time.Second, Drain: 5 * time.Second},
		log:    log,
	}.run(ctx)
}

func (i idle) run(ctx context.Context) (IdleReport, error) {
	r := IdleReport{Replicas: replicas, Jobs: idleJobs, Store: "sqlite", Profile: "fast", Seconds: i.measure.Seconds(),
		LeaseMS: millis(i.timing.Lease), GraceMS: millis(i.timing.Grace), SweepMS: millis(i.timing.Sweep)}
	err := withNoise(&r.Timer, func() error {
		for _, l := range i.loads {
			rows, err := i.under(ctx, l)
			if err != nil {
				return err
			}
			r.Rows = append(r.Rows, rows...)
		}
		return nil
	})
	return r, err
}

// under measures each replica under one load.
func (i idle) under(ctx context.Context, l load) (rows []IdleRow, err error) {
	fmt.Fprintf(i.log, "%d jobs of %d keys, %d partitions: idle for %v\n", idleJobs, l.keys, l.partitions, i.settle+i.measure)
	s := fleet.Spec{Concurrency: 4, Partitions: l.partitions, Usage: i.usage, Timing: i.timing}
	err = withFleet(ctx, s, "idler", func(f *fleet.Fleet) error {
		if err := start(ctx, f, newIdlePlan(l.keys, time.Now())); err != nil {
			return err
		}
		if err := agree(ctx, f); err != nil {
			return err
		}
		if err := wait(ctx, f, i.settle, ignore); err != nil {
			return err
		}
		rows, err = i.watch(ctx, f, l)
		return err
	})
	return rows, err
}

// watch is what each replica uses from its next report on, for as long as is to be measured.
func (i idle) watch(ctx context.Context, f *fleet.Fleet, l load) ([]IdleRow, error) {
	first, last := map[string]fleet.Event{}, map[string]fleet.Event{}
	err := f.Await(ctx, func(e fleet.Event) {
		if e.Kind != fleet.Usage {
			return
		}
		if _, ok := first[e.Replica]; !ok {
			first[e.Replica] = e
		}
		last[e.Replica] = e
	}, func() bool {
		for name, e := range last {
			if e.At.Sub(first[name].At) < i.measure {
				return false
			}
		}
		return len(last) == replicas
	})
	if err != nil {
		return nil, err
	}
	var rows []IdleRow
	for name, e := range last {
		b := first[name]
		cpu, err := cores(b, e)
		if err != nil {
			return nil, err
		}
		rows = append(rows, IdleRow{Keys: l.keys, Partitions: l.partitions, Replica: name,
			CPU: thousandths(100 * cpu), Calls: perSecond(b, e, float64(e.Calls-b.Calls))})
	}
	slices.SortFunc(rows, func(a, b IdleRow) int { return strings.Compare(a.Replica, b.Replica) })
	return rows, nil
}

// cores is how much of a core a process used between two reports.
func cores(from, to fleet.Event) (float64, error) {
	if to.CPU == 0 {
		return 0, fmt.Errorf("bench: process %q: this system does not tell what CPU time a process has used", to.Replica)
	}
	return (to.CPU - from.CPU).Seconds() / to.At.Sub(from.At).Seconds(), nil
}

// perSecond spreads n over the time between two reports.
func perSecond(from, to fleet.Event, n float64) float64 {
	return thousandths(n / to.At.Sub(from.At).Seconds())
}

// thousandths leaves out the digits that say nothing.
func thousandths(f float64) float64 { return math.Round(1000*f) / 1000 }

// idlePlan is what the parent tells idle replicas.
type idlePlan struct {
	Keys  int           // of each job
	Phase time.Duration // of the hour, when all jobs are due
}

// newIdlePlan makes the jobs due half an hour from now.
func newIdlePlan(keys int, now time.Time) idlePlan {
	due := now.Add(30 * time.Minute).Truncate(time.Second)
	return idlePlan{Keys: keys, Phase: due.Sub(due.Truncate(time.Hour))}
}

// Idler runs one idle replica in a child process.
func Idler(ctx context.Context, parent *procs.Parent) error {
	return fleet.Replica(ctx, parent, declareIdle)
}

func declareIdle(_ fleet.Spec, _ *storeurl.Client, plan []byte, _ func(fleet.Event)) ([]jobs.Job, error) {
	var p idlePlan
	if err := json.Unmarshal(plan, &p); err != nil {
		return nil, fmt.Errorf("bench: plan: %w", err)
	}
	keys := make([]string, p.Keys)
	for i := range keys {
		keys[i] = fmt.Sprintf("key-%08d", i)
	}
	source := jobs.KeyList(keys...)
	list := make([]jobs.Job, idleJobs)
	for i := range list {
		list[i] = jobs.Job{Name: fmt.Sprintf("job-%03d", i+1), Schedule: jobs.Every(time.Hour).Phase(p.Phase), Keys: source,
			Run: func(context.Context, jobs.Occurrence) error { return nil }}
	}
	return list, nil
}
