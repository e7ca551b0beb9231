package core

import (
	"cmp"
	"slices"
	"time"

	"github.com/belfry-go/belfry/internal/timetable"
)

// dues are jobs by the instant at which they have to be looked at; jobs that never are stay out. It counts in microseconds: in
// nanoseconds the years until 9999 do not fit.
type dues struct {
	table timetable.Table
	jobs  []*job // by their index
	due   []*job // what take returned last
}

// set puts j at next; zero takes it out.
func (d *dues) set(j *job, next time.Time) {
	j.next = next
	switch {
	case !next.IsZero() && j.index > 0:
		d.table.Set(j.index, ceilMicro(next))
	case !next.IsZero():
		j.index = d.table.Add(ceilMicro(next))
		d.jobs = append(d.jobs, make([]*job, max(0, int(j.index)+1-len(d.jobs)))...)
		d.jobs[j.index] = j
	case j.index > 0:
		d.table.Remove(j.index)
		d.jobs[j.index], j.index = nil, 0
	}
}

// first is the earliest instant of all; false where there is none.
func (d *dues) first() (time.Time, bool) {
	at, ok := d.table.First()
	return time.UnixMicro(at), ok
}

// take takes out the jobs whose instant has come by now, in Unix microseconds, and they stay out until they are set again. They are ordered by it, and
// then by name, since the order in which they were set depends on what others answered when. The list is good until the next call that finds some.
func (d *dues) take(now int64) []*job {
	if at, ok := d.table.First(); !ok || at > now { // as nearly always
		return nil
	}
	clear(d.due)
	d.due = d.due[:0]
	var batch [64]timetable.Due
	for n := len(batch); n == len(batch); {
		n = d.table.Pop(now, batch[:])
		for _, due := range batch[:n] {
			d.due = append(d.due, d.jobs[due.ID])
		}
	}
	slices.SortFunc(d.due, func(a, b *job) int {
		return cmp.Or(a.next.Compare(b.next), cmp.Compare(a.Name, b.Name))
	})
	return d.due
}

// ceilMicro is never early: what is due within a microsecond is due at its end.
func ceilMicro(t time.Time) int64 {
	micro := t.UnixMicro()
	if time.UnixMicro(micro).Before(t) {
		micro++
	}
	return micro
}
