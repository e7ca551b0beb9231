package core

import (
	"container/heap"
	"time"
)

// timer is something to do at an instant. Timers of one instant fire in the order they were set.
type timer struct {
	at    time.Duration
	seq   int64
	index int // in timers; -1: fired or stopped
	f     func()
}

type timers []*timer

func (t timers) Len() int { return len(t) }
func (t timers) Less(i, j int) bool {
	return t[i].at < t[j].at || t[i].at == t[j].at && t[i].seq < t[j].seq
}
func (t timers) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].index, t[j].index = i, j
}
func (t *timers) Push(x any) {
	n := x.(*timer)
	n.index = len(*t)
	*t = append(*t, n)
}
func (t *timers) Pop() any {
	old := *t
	last := old[len(old)-1]
	old[len(old)-1] = nil
	last.index = -1
	*t = old[:len(old)-1]
	return last
}

// after does f once d has passed, unless the timer is stopped. What f is about
// may be over by then; f looks.
func (c *Core) after(d time.Duration, f func()) *timer {
	c.seq++
	t := &timer{at: c.now.Mono + d, seq: c.seq, f: f}
	heap.Push(&c.timers, t)
	return t
}

// stopTimer makes a timer never fire. Nil or fired is fine.
func (c *Core) stopTimer(t *timer) {
	if t != nil && t.index >= 0 {
		heap.Remove(&c.timers, t.index)
	}
}

func (c *Core) fireTimers() {
	for len(c.timers) > 0 && c.timers[0].at <= c.now.Mono {
		heap.Pop(&c.timers).(*timer).f()
	}
}

// dues is a heap of jobs by the instant at which they have to be looked at; jobs that never are stay out.
type dues []*job

func (d dues) Len() int { return len(d) }
func (d dues) Less(i, j int) bool {
	return d[i].next.Before(d[j].next) || d[i].next.Equal(d[j].next) && d[i].Name < d[j].Name
}
func (d dues) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].index, d[j].index = i, j
}
func (d *dues) Push(x any) {
	j := x.(*job)
	j.index = len(*d)
	*d = append(*d, j)
}
func (d *dues) Pop() any {
	old := *d
	j := old[len(old)-1]
	old[len(old)-1] = nil
	j.index = -1
	*d = old[:len(old)-1]
	return j
}

// set puts j at next; zero takes it out.
func (d *dues) set(j *job, next time.Time) {
	j.next = next
	switch {
	case next.IsZero() && j.index >= 0:
		heap.Remove(d, j.index)
	case next.IsZero():
	case j.index >= 0:
		heap.Fix(d, j.index)
	default:
		heap.Push(d, j)
	}
}
