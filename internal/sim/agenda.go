package sim

import (
	"runtime/debug"
	"time"

	"github.com/belfry-go/belfry/internal/core"
)

// moment is when something happens, in the order of happening: by the instant of true time, then by when it would have
// happened had its replica not been frozen, so that what piled up meanwhile comes in the order in which it would have come, then by when it was planned.
type moment struct {
	at, due time.Duration
	seq     int64
}

func (m moment) before(o moment) bool {
	if m.at != o.at {
		return m.at < o.at
	}
	if m.due != o.due {
		return m.due < o.due
	}
	return m.seq < o.seq
}

// event is something that happens: f, or a call's moment in the store, or a word to a replica. One of a replica happens only
// to the process that it was meant for, and waits while that is frozen; but a call that was sent happens whatever becomes of its sender.
type event struct {
	f    func()
	call *core.Call
	word core.Event

	replica *Replica
	life    int
	reply   time.Duration // how long after the call its sender hears of it; below zero: never
}

// agenda is what is to happen: a heap of moments, four children each. The events lie apart from it, where they need not be moved.
type agenda struct {
	heap   []entry
	events []event
	free   []int32 // places in events
}

type entry struct {
	moment
	event int32
}

func (a *agenda) push(m moment, e event) {
	var place int32
	if n := len(a.free); n > 0 {
		place, a.free = a.free[n-1], a.free[:n-1]
		a.events[place] = e
	} else {
		place, a.events = int32(len(a.events)), append(a.events, e)
	}
	a.heap = append(a.heap, entry{})
	a.up(len(a.heap)-1, entry{m, place})
}

// first is the moment of what happens next.
func (a *agenda) first() (moment, bool) {
	if len(a.heap) == 0 {
		return moment{}, false
	}
	return a.heap[0].moment, true
}

// pop takes out what happens next.
func (a *agenda) pop() event {
	place, n := a.heap[0].event, len(a.heap)-1
	last := a.heap[n]
	if a.heap = a.heap[:n]; n > 0 {
		a.down(last)
	}
	e := a.events[place]
	a.events[place] = event{}
	a.free = append(a.free, place)
	return e
}

// up puts x at hole, or above.
func (a *agenda) up(hole int, x entry) {
	for hole > 0 {
		above := (hole - 1) / 4
		if !x.before(a.heap[above].moment) {
			break
		}
		a.heap[hole], hole = a.heap[above], above
	}
	a.heap[hole] = x
}

// down puts x at the top, or below.
func (a *agenda) down(x entry) {
	h, hole := a.heap, 0
	for {
		least := 4*hole + 1
		if least >= len(h) {
			break
		}
		for child := least + 1; child < min(4*hole+5, len(h)); child++ {
			if h[child].before(h[least].moment) {
				least = child
			}
		}
		if !h[least].before(x.moment) {
			break
		}
		h[hole], hole = h[least], least
	}
	h[hole] = x
}

// plan puts an event on the agenda; what is planned for the past happens now.
func (w *World) plan(at time.Duration, e event) {
	at = max(at, w.now)
	w.agenda.push(w.moment(at), e)
}

func (w *World) moment(at time.Duration) moment {
	w.seq++
	return moment{at, at, w.seq}
}

// At does f at an instant since the world's beginning; now, if that is past.
func (w *World) At(at time.Duration, f func()) { w.plan(at, event{f: f}) }

// After does f once d has passed.
func (w *World) After(d time.Duration, f func()) { w.At(w.now+d, f) }

// after does f in the replica's present process once d has passed.
func (r *Replica) after(d time.Duration, f func()) {
	r.w.plan(r.w.now+d, event{f: f, replica: r, life: r.life})
}

// Run lets time pass until an instant, or until a law is broken: then it
// returns the violation.
func (w *World) Run(until time.Duration) error {
	w.play(until)
	if w.Err() == nil {
		w.now = max(w.now, until)
	}
	return w.Err()
}

// play does what happens up to an instant. A panic of the product ends the world.
func (w *World) play(until time.Duration) {
	defer func() {
		if p := recover(); p != nil {
			w.fail("panic: %v\n%s", p, debug.Stack())
		}
	}()
	for w.Err() == nil {
		next, more := w.agenda.first()
		woken := w.firstAlarm(next, more)
		if woken != nil {
			next, more = woken.wakeAt(), true
		}
		if !more || next.at > until {
			return
		}
		w.now = next.at
		if woken != nil {
			w.Stats.Events++
			woken.step()
			continue
		}
		w.do(next, w.agenda.pop())
	}
}

func (w *World) do(m moment, e event) {
	if r := e.replica; r != nil && e.call == nil {
		if r.life != e.life {
			return
		}
		if r.frozen > w.now {
			m.at = r.frozen
			w.agenda.push(m, e)
			return
		}
	}
	w.Stats.Events++
	switch {
	case e.call != nil:
		e.replica.happen(e)
	case e.word != nil:
		e.replica.tell(e.word)
	default:
		e.f()
	}
}

// firstAlarm is the replica that wakes before anything else happens; nil: none does.
func (w *World) firstAlarm(next moment, more bool) (first *Replica) {
	for _, r := range w.replicas {
		if !r.armed {
			continue
		}
		if at := r.wakeAt(); !more || at.before(next) {
			first, next, more = r, at, true
		}
	}
	return first
}

// wakeAt is when the replica's alarm goes.
func (r *Replica) wakeAt() moment {
	m := r.alarm
	m.at = max(m.at, r.frozen)
	return m
}
