// Package timetable keeps which of a million entries is due next.
//
// Entries of one instant share a place in a heap of instants, and hang there as a list in the order they were set. Schedules
// name whole seconds, so there are few instants: a million entries due at midnight cost one step of the heap and a walk along the list.
// Where each has an instant of its own it is a heap of as many.
//
// All of it lies in pages without pointers, which the garbage collector need not look into and which never move: no call
// copies what is there already, however much that is. Memory is that of the most entries there ever were, 48 bytes
// each where all instants differ and 12 where few do; what was removed is used again.
//
// It knows no clock and no unit of time: the caller counts instants in whatever unit, and says what now is.
package timetable

import "fmt"

// ID is an entry of a Table, from Add until Remove. IDs are small numbers, not above the most entries there ever were at once,
// so that what a caller keeps of each fits a slice. 0 is none.
type ID int32

// Due is an entry whose instant has come.
type Due struct {
	At int64 // as it was set
	ID ID
}

// entry is in the list of its instant, or out: popped, or free.
type entry struct {
	next, prev ID    // 0 at the ends; what is free is chained by next, and its prev is freed
	instant    int32 // 0: out
}

const freed ID = -1

// Table is a set of entries with an instant each. The zero Table is empty and ready. It holds up to 2^31-2 entries. It is not safe for concurrent
// use, and must not be copied after its first.
//
// What it does depends on the calls alone: equal calls, equal results.
type Table struct {
	entries  pages[entry] // by ID
	free     ID           // the first of the free ones
	instants instants
}

// Add makes an entry that is due at an instant, last among those of the same.
func (t *Table) Add(at int64) ID {
	id := t.free
	if id == 0 {
		id = ID(t.entries.grow())
	} else {
		t.free = t.entries.at(int32(id)).next
	}
	t.link(id, at)
	return id
}

// Set makes an entry due at an instant, last among those of the same, whether it has been due elsewhere or was popped.
func (t *Table) Set(id ID, at int64) {
	t.unlink(id)
	t.link(id, at)
}

// Remove ends an entry, popped or not. Its ID may be that of a later one.
func (t *Table) Remove(id ID) {
	t.unlink(id)
	*t.entries.at(int32(id)) = entry{next: t.free, prev: freed}
	t.free = id
}

// First is the earliest instant of all; false where nothing is due ever.
func (t *Table) First() (at int64, ok bool) { return t.instants.first() }

// Pop fills dues with what is due at now or before, by instant and within one in the order set, and returns how many there are.
// Those are due no more, until Set. Where it fills all of dues there may be others.
func (t *Table) Pop(now int64, dues []Due) int {
	n := 0
	for n < len(dues) {
		at, ok := t.instants.first()
		if !ok || at > now {
			break
		}
		i := t.instants.heap.at(0).instant
		list := t.instants.list(i)
		for ; n < len(dues) && list.first != 0; n++ {
			id := list.first
			e := t.entries.at(int32(id))
			dues[n] = Due{At: at, ID: id}
			list.first = e.next
			e.instant = 0
		}
		if list.first != 0 {
			t.entries.at(int32(list.first)).prev = 0
		} else {
			t.instants.remove(i)
		}
	}
	return n
}

// link hangs an entry that is out behind the others of its instant.
func (t *Table) link(id ID, at int64) {
	i := t.instants.find(at)
	list := t.instants.list(i)
	*t.entries.at(int32(id)) = entry{prev: list.last, instant: i}
	if list.first == 0 {
		list.first = id
	} else {
		t.entries.at(int32(list.last)).next = id
	}
	list.last = id
}

// unlink takes an entry out, if it is not.
func (t *Table) unlink(id ID) {
	if id <= 0 || int32(id) >= t.entries.n || t.entries.at(int32(id)).prev == freed {
		panic(fmt.Sprintf("timetable: entry %d is not there; it was removed, or never added", id))
	}
	e := t.entries.at(int32(id))
	if e.instant == 0 {
		return
	}
	list := t.instants.list(e.instant)
	if e.prev == 0 {
		list.first = e.next
	} else {
		t.entries.at(int32(e.prev)).next = e.next
	}
	if e.next == 0 {
		list.last = e.prev
	} else {
		t.entries.at(int32(e.next)).prev = e.prev
	}
	if list.first == 0 {
		t.instants.remove(e.instant)
	}
	e.instant = 0
}
