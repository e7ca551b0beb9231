package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/fleet"
	"github.com/belfry-go/belfry/jobs"
)

// moreEntries is how many are added one by one.
const moreEntries = 1000

func (p timersPlan) measure(ctx context.Context, tell func(doing string)) (TimersReport, error) {
	r := TimersReport{Entries: p.Entries, Workers: runtime.GOMAXPROCS(0), Seconds: p.Measure.Seconds()}
	if fleet.CPU() == 0 {
		return r, errors.New("bench: this system does not tell what CPU time a process has used")
	}
	for _, step := range []struct {
		doing string
		run   func(context.Context, *TimersReport) error
	}{
		{"%d entries, each due hourly at its own second", p.hourly},
		{"%d entries, none of them due, and one each second", p.idle},
		{"%d entries due in one second", p.burst},
	} {
		tell(fmt.Sprintf(step.doing, p.Entries))
		if err := step.run(ctx, &r); err != nil {
			return r, err
		}
	}
	return r, nil
}

// hourly has each second of the hour its share of the entries.
func (p timersPlan) hourly(ctx context.Context, r *TimersReport) error {
	const seconds = 3600
	schedules := make([]jobs.Schedule, seconds)
	for i := range schedules {
		schedules[i] = jobs.Cron(fmt.Sprintf("%d %d * * * *", i%60, i/60))
	}
	before := heap()
	l := newLoop(p.Entries+moreEntries, schedules...)
	begin, cpu := time.Now(), fleet.CPU()
	for i := range p.Entries {
		l.add(i%seconds, begin)
	}
	r.Add, r.AddCPU = millis(time.Since(begin)), millis(fleet.CPU()-cpu)
	r.Bytes = thousandths(float64(heap()-before) / float64(p.Entries))

	var micros []float64
	for i := range moreEntries {
		begin := time.Now()
		l.add(i*7%seconds, begin)
		micros = append(micros, float64(time.Since(begin).Nanoseconds())/1000)
	}
	r.OneMore = stats(micros)

	percent, err := p.watch(ctx, l)
	r.HourlyCPU, r.HourlyLate = percent, summarise(l.late)
	return err
}

// idle has one run each second, and all other entries later than is measured.
func (p timersPlan) idle(ctx context.Context, r *TimersReport) error {
	now := time.Now()
	l := newLoop(p.Entries, jobs.Every(time.Second), jobs.At(now.Add(time.Hour).Truncate(time.Second)))
	l.add(0, now)
	for range p.Entries - 1 {
		l.add(1, now)
	}
	percent, err := p.watch(ctx, l)
	r.IdleCPU = percent
	return err
}

// watch runs a loop and returns what this process uses meanwhile, in percent of a core.
func (p timersPlan) watch(ctx context.Context, l *loop) (percent float64, err error) {
	debug.FreeOSMemory() // what was there before is not the loop's to clear away
	err = l.during(ctx, func(ctx context.Context) error {
		if err := pause(ctx, p.Settle); err != nil {
			return err
		}
		from := fleet.Event{At: time.Now(), CPU: fleet.CPU()}
		if err := pause(ctx, p.Measure); err != nil {
			return err
		}
		used, err := cores(from, fleet.Event{At: time.Now(), CPU: fleet.CPU()})
		percent = thousandths(100 * used)
		return err
	})
	return percent, err
}

// burst has all entries due in one second.
func (p timersPlan) burst(ctx context.Context, r *TimersReport) error {
	begin := time.Now()
	soon := time.Second + time.Duration(5*r.Add*float64(time.Millisecond)) // they have to be there by then
	due := begin.Add(soon).Truncate(time.Second).Add(time.Second).UTC()
	l := newLoop(p.Entries, jobs.Cron(due.Format("5 4 15 * * *")))
	for range p.Entries {
		l.add(0, begin)
	}
	debug.FreeOSMemory()
	if !time.Now().Before(due) {
		return fmt.Errorf("bench: adding %d entries took longer than the %v there were; let less run beside it", p.Entries, due.Sub(begin))
	}
	var before time.Duration
	err := l.during(ctx, func(ctx context.Context) error {
		before = fleet.CPU()
		// All is over when the loop has come to wait again, after the workers got all; what it takes is bounded by what
		// nobody would call soon.
		return pause(ctx, time.Until(due)+2*time.Second)
	})
	r.BurstCPU, r.BurstLate = millis(fleet.CPU()-before), summarise(l.late)
	if err == nil && r.BurstLate.N != p.Entries {
		err = fmt.Errorf("bench: %d entries were due and %d reached a worker", p.Entries, r.BurstLate.N)
	}
	return err
}

// during runs the loop while do runs.
func (l *loop) during(ctx context.Context, do func(context.Context) error) error {
	running, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.run(running)
	}()
	err := do(ctx)
	stop()
	<-done
	return err
}

// pause lets d go by.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// heap is how many bytes are in use.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
