package timetable

// pages is an array that grows and shrinks at its end, and never moves what it holds.
type pages[T any] struct {
	page []*[pageSize]T
	n    int32 // how long it is; pages once made are kept
}

// At some 16 bytes an element, a page is made and cleared within few microseconds.
const pageSize = 1 << 10

func (p *pages[T]) at(i int32) *T {
	u := uint32(i)
	return &p.page[u/pageSize][u%pageSize]
}

// push makes room for one more, and returns where: what is there is anything.
func (p *pages[T]) push() int32 {
	if int(p.n) == len(p.page)*pageSize {
		p.page = append(p.page, new([pageSize]T))
	}
	p.n++
	return p.n - 1
}

// grow is push where 0 means none, and so is never used.
func (p *pages[T]) grow() int32 {
	if p.n == 0 {
		p.push()
	}
	return p.push()
}

// pop removes the last one and returns it.
func (p *pages[T]) pop() T {
	p.n--
	return *p.at(p.n)
}
