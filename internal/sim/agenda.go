package sim

import (
	"container/heap"
	"time"
)

// event is something that happens at an instant of true time. One of a replica
// happens only to the process that it was meant for, and waits while that is frozen.
type event struct {
	at  time.Duration
	due time.Duration // when it would have happened, had its replica not been frozen
	seq int64
	f   func()

	replica *Replica
	life    int
}

// agenda is a heap of events by (at, due, seq): what piled up while a replica
// was frozen comes in the order in which it would have come.
type agenda []event

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	if a[i].at != a[j].at {
		return a[i].at < a[j].at
	}
	if a[i].due != a[j].due {
		return a[i].due < a[j].due
	}
	return a[i].seq < a[j].seq
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(event)) }
func (a *agenda) Pop() any {
	old := *a
	last := old[len(old)-1]
	old[len(old)-1] = event{}
	*a = old[:len(old)-1]
	return last
}

func (w *World) push(e event) {
	w.seq++
	e.seq = w.seq
	heap.Push(&w.agenda, e)
}

// At does f at an instant since the world's beginning; now, if that is past.
func (w *World) At(at time.Duration, f func()) {
	at = max(at, w.now)
	w.push(event{at: at, due: at, f: f})
}

// After does f once d has passed.
func (w *World) After(d time.Duration, f func()) { w.At(w.now+d, f) }

// after does f in the replica's present process once d has passed.
func (r *Replica) after(d time.Duration, f func()) {
	at := r.w.now + max(d, 0)
	r.w.push(event{at: at, due: at, f: f, replica: r, life: r.life})
}
