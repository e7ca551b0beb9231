package bench

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/belfry-go/belfry/internal/timetable"
	"github.com/belfry-go/belfry/jobs"
)

// dueBatch is how many dues reach a worker at once.
const dueBatch = 1024

// loop waits for what is due next, hands it to workers in batches, and computes when it is due again after that. One
// goroutine owns it.
type loop struct {
	table     timetable.Table
	schedules []jobs.Schedule
	of        []uint32 // which of them, by ID

	work  chan []timetable.Due
	free  chan []timetable.Due // empty batches; has room for all of them
	fired []timetable.ID       // in this round, to be set again

	began   int64 // what was due by then is late because nobody ran it, and not noted
	workers sync.WaitGroup
	mu      sync.Mutex
	late    []time.Duration // of each due that a worker got, once the workers have ended
}

// newLoop has room for so many entries, so that nothing is copied while it runs.
func newLoop(entries int, schedules ...jobs.Schedule) *loop {
	return &loop{schedules: schedules, of: make([]uint32, 1, entries+1), fired: make([]timetable.ID, 0, entries)}
}

// add adds an entry of a schedule.
func (l *loop) add(schedule int, now time.Time) {
	next, ok := l.schedules[schedule].Next(now)
	if !ok {
		return
	}
	l.table.Add(next.Unix()) // IDs are given in order where none was removed
	l.of = append(l.of, uint32(schedule))
}

// run runs until ctx ends and the workers have done what they got.
func (l *loop) run(ctx context.Context) {
	n := runtime.GOMAXPROCS(0)
	l.work = make(chan []timetable.Due, n)
	l.free = make(chan []timetable.Due, 3*n)
	for range cap(l.free) {
		l.free <- make([]timetable.Due, dueBatch)
	}
	l.began = time.Now().Unix()
	for range n {
		l.workers.Go(l.serve)
	}
	l.wait(ctx)
	close(l.work)
	l.workers.Wait()
}

func (l *loop) wait(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		l.fire(time.Now())
		if at, ok := l.table.First(); ok {
			timer.Reset(time.Until(time.Unix(at, 0)))
		}
	}
}

// fire hands out all that is due, and only then computes what comes next: nobody waits for that.
func (l *loop) fire(now time.Time) {
	l.fired = l.fired[:0]
	for n := dueBatch; n == dueBatch; {
		batch := <-l.free
		n = l.table.Pop(now.Unix(), batch[:dueBatch])
		for _, d := range batch[:n] {
			l.fired = append(l.fired, d.ID)
		}
		l.work <- batch[:n]
	}
	for _, id := range l.fired {
		if next, ok := l.schedules[l.of[id]].Next(now); ok {
			l.table.Set(id, next.Unix())
		}
	}
}

// serve is a worker, whose handler notes how late it is.
func (l *loop) serve() {
	late := make([]time.Duration, 0, cap(l.of)) // to grow it meanwhile would make others late
	for batch := range l.work {
		for _, d := range batch {
			if d.At > l.began {
				late = append(late, time.Since(time.Unix(d.At, 0)))
			}
		}
		l.free <- batch
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.late = append(l.late, late...)
}
