package timetable

// instants are those at which something is due: a heap, and a hash to find one by its time.
type instants struct {
	heap  pages[place] // 4-ary, the earliest first
	lists pages[list]
	free  int32 // the first of the free lists, chained by next

	// A linear hash: it grows by one slot at a time, so that no call has to hash everything anew.
	slots pages[int32] // the first list in each, chained by next
	mask  uint32       // the number of slots, rounded up to a power of two, less 1
}

// place is where an instant is in the heap.
type place struct {
	at      int64
	instant int32 // of its list
}

// list is what is due at an instant. Its number is never 0.
type list struct {
	first, last ID
	place       int32
	next        int32 // in the slot, or free
}

func (t *instants) list(i int32) *list { return t.lists.at(i) }

func (t *instants) first() (at int64, ok bool) {
	if t.heap.n == 0 {
		return 0, false
	}
	return t.heap.at(0).at, true
}

// find is the list of an instant, a new one where there is none.
func (t *instants) find(at int64) int32 {
	if t.slots.n > 0 {
		for i := *t.slots.at(t.slot(at)); i != 0; i = t.list(i).next {
			if t.at(i) == at {
				return i
			}
		}
	}
	if t.heap.n >= t.slots.n {
		t.split()
	}
	i := t.free
	if i == 0 {
		i = t.lists.grow()
	} else {
		t.free = t.list(i).next
	}
	slot := t.slots.at(t.slot(at))
	*t.list(i) = list{place: t.heap.push(), next: *slot}
	*slot = i
	t.up(place{at, i}, t.list(i).place)
	return i
}

// remove takes an instant out at which nothing is due any more.
func (t *instants) remove(i int32) {
	link := t.slots.at(t.slot(t.at(i)))
	for *link != i {
		link = &t.list(*link).next
	}
	*link = t.list(i).next

	hole := t.list(i).place
	last := t.heap.pop()
	if last.instant != i {
		t.up(last, t.down(last, hole))
	}
	*t.list(i) = list{next: t.free}
	t.free = i
}

func (t *instants) at(i int32) int64 { return t.heap.at(t.list(i).place).at }

// slot is the one of an instant.
func (t *instants) slot(at int64) int32 {
	s := hash(at) & t.mask
	if s >= uint32(t.slots.n) {
		s &= t.mask >> 1 // not split off yet
	}
	return int32(s)
}

// split adds a slot, and moves there what belongs to it, all from the one slot that stood for both.
func (t *instants) split() {
	s := uint32(t.slots.push())
	if s > t.mask {
		t.mask = t.mask<<1 | 1
	}
	if s == 0 {
		return
	}
	stay, move := t.slots.at(int32(s&(t.mask>>1))), t.slots.at(int32(s))
	i := *stay
	*stay, *move = 0, 0
	for i != 0 {
		l := t.list(i)
		into := stay
		if hash(t.at(i))&t.mask == s {
			into = move
		}
		i, l.next, *into = l.next, *into, i
	}
}

// up puts p into the heap at a hole, or above.
func (t *instants) up(p place, hole int32) {
	for hole > 0 {
		parent := (hole - 1) / 4
		above := *t.heap.at(parent)
		if above.at <= p.at {
			break
		}
		t.put(above, hole)
		hole = parent
	}
	t.put(p, hole)
}

// down moves a hole down to where p could be.
func (t *instants) down(p place, hole int32) int32 {
	for {
		least, best := int32(-1), p
		for c := 4*hole + 1; c <= 4*hole+4 && c < t.heap.n; c++ {
			if child := *t.heap.at(c); child.at < best.at {
				least, best = c, child
			}
		}
		if least < 0 {
			return hole
		}
		t.put(best, hole)
		hole = least
	}
}

func (t *instants) put(p place, at int32) {
	*t.heap.at(at) = p
	t.list(p.instant).place = at
}

// hash spreads instants, which are often multiples of something (the finaliser of SplitMix64).
func hash(at int64) uint32 {
	h := uint64(at)
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return uint32(h ^ h>>31)
}
