package core

import (
	"container/heap"
	"math"
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
	t := &timer{f: f}
	c.set(t, d)
	return t
}

// set sets a timer that is not set.
func (c *Core) set(t *timer, d time.Duration) {
	c.seq++
	t.at, t.seq = c.now.Mono+d, c.seq
	if d > 0 && t.at < c.now.Mono { // so long that it is never
		t.at = math.MaxInt64
	}
	heap.Push(&c.timers, t)
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
