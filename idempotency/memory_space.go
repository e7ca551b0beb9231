package idempotency

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
)

// space is one namespace's rows, with the indexes that the calls read.
type space struct {
	partitions int
	sessions   []*session // by id
	entries    map[string]*entry
	seen       map[jobHash]int64 // when a definition was first seen, by the counter
	rows       map[ref]*row
	dues       []*dueRows // the same rows by due, ascending
	waiting    map[*row]struct{}
	exclusive  map[jobKey]*row // running exclusively
	keyed      map[jobDue]*keyedDue
	open       []*keyedDue // those that are not closed, by (due, job)
	closed     []*keyedDue // those that are, by (due, job)
	ranges     []*Range    // by (From, To, Job), then as recorded
}

type (
	jobHash struct{ job, hash string }
	jobKey  struct{ job, key string }
	jobDue  struct {
		job string
		due int64 // Unix seconds
	}
	ref struct {
		job, key, request string
		due               int64 // Unix seconds
	}
)

// holder is who wrote or claimed a row last, and with which call.
type holder struct{ session, nonce int64 }

// row is a run's row.
type row struct {
	Run
	by        holder
	exclusive bool // where Running
}

func (r *row) heldBy(h holder) bool { return r.State == Running && r.by == h }

// dueRows are the rows of one due. They are put in order when somebody reads
// them: in a night of many keys all are written to one due first.
type dueRows struct {
	due     int64 // Unix seconds
	rows    []*row
	ordered bool
}

func (d *dueRows) inOrder() []*row {
	if !d.ordered {
		slices.SortFunc(d.rows, byDue)
		d.ordered = true
	}
	return d.rows
}

// keyedDue is an open or closed due of a job with keys.
type keyedDue struct {
	job         string
	due, opened time.Time
	catchUp     bool // as its decision said
	closed      bool
	passes      []*Pass // by session; none where closed
}

func newSpace(partitions int) *space {
	return &space{
		partitions: partitions,
		entries:    make(map[string]*entry),
		seen:       make(map[jobHash]int64),
		rows:       make(map[ref]*row),
		waiting:    make(map[*row]struct{}),
		exclusive:  make(map[jobKey]*row),
		keyed:      make(map[jobDue]*keyedDue),
	}
}

// call is one call of a live session, under the store's lock.
type call struct {
	*space
	m   *Memory
	by  *session
	now time.Time
}

// with runs f under the store's lock if the session is live. All calls that
// demand a live session come through here.
func (m *Memory) with(ctx context.Context, s Session, f func(*call) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()

	sp := m.spaces[s.Namespace]
	if sp == nil {
		return ErrSessionDead
	}
	c := &call{space: sp, m: m, by: sp.session(s.ID), now: instant(m.now())}
	if c.by == nil || !c.by.live(c.now) {
		return ErrSessionDead
	}
	return f(c)
}

// draw returns a number that this store has never returned before, and higher
// than all of them.
func (m *Memory) draw() int64 {
	m.last++
	return m.last
}

func (sp *space) session(id int64) *session {
	i, ok := slices.BinarySearchFunc(sp.sessions, id, func(s *session, id int64) int { return cmp.Compare(s.id, id) })
	if !ok {
		return nil
	}
	return sp.sessions[i]
}

func (sp *space) row(id ID) *row { return sp.rows[refOf(id)] }

// insert adds a row that is not there yet, for run or apply to give it a state.
func (sp *space) insert(id ID, by holder) *row {
	id.Due = instant(id.Due)
	x := &row{Run: Run{ID: id}}
	ref := refOf(id)
	sp.rows[ref] = x
	i, ok := slices.BinarySearchFunc(sp.dues, ref.due, func(d *dueRows, due int64) int { return cmp.Compare(d.due, due) })
	if !ok {
		sp.dues = slices.Insert(sp.dues, i, &dueRows{due: ref.due})
	}
	sp.dues[i].rows = append(sp.dues[i].rows, x)
	sp.dues[i].ordered = false
	sp.name(x, by)
	return x
}

// run makes a row run under a session, with a new fence.
func (c *call) run(r *row, nonce int64, exclusive bool) {
	c.leave(r)
	c.name(r, holder{c.by.id, nonce})
	r.State, r.exclusive = Running, exclusive
	r.Fence, r.Session, r.Replica = c.m.draw(), c.by.id, c.by.Replica
	r.Wake, r.Started = time.Time{}, c.now
	c.index(r)
}

// apply ends a row that runs or never ran, or lets it wait, as f says.
func (sp *space) apply(r *row, f Finish, now time.Time) {
	sp.leave(r)
	r.Attempt, r.Reason, r.Text = f.Attempt, f.Reason, f.Text
	if f.Outcome == Wait {
		r.State, r.Wake = Waiting, instant(f.Wake)
	} else {
		r.State, r.Outcome, r.Finished = Ended, f.Outcome, now
	}
	sp.index(r)
}

// name notes who wrote or claimed the row last; a session that a row names is
// not removed.
func (sp *space) name(r *row, by holder) {
	if old := sp.session(r.by.session); old != nil {
		old.named--
	}
	r.by = by
	if s := sp.session(by.session); s != nil {
		s.named++
	}
}

// index enters the row where its state says it is to be found, and leave
// removes it from there. Both go around a change of state or holder.
func (sp *space) index(r *row) {
	switch r.State {
	case Waiting:
		sp.waiting[r] = struct{}{}
	case Running:
		sp.session(r.by.session).runs[r] = struct{}{}
		if r.exclusive {
			sp.exclusive[keyOf(r.ID)] = r
		}
	}
}

func (sp *space) leave(r *row) {
	switch r.State {
	case Waiting:
		delete(sp.waiting, r)
	case Running:
		delete(sp.session(r.by.session).runs, r)
		if r.exclusive {
			delete(sp.exclusive, keyOf(r.ID))
			r.exclusive = false
		}
	}
}

// busy reports whether another run of the row's job and key runs exclusively.
func (sp *space) busy(id ID) bool {
	x := sp.exclusive[keyOf(id)]
	return x != nil && refOf(x.ID) != refOf(id)
}

// openDue returns the due if it is open, else nil.
func (sp *space) openDue(job string, due time.Time) *keyedDue {
	d := sp.keyed[jobDue{job, due.Unix()}]
	if d == nil || d.closed {
		return nil
	}
	return d
}

func findDue(list []*keyedDue, d *keyedDue) (int, bool) {
	return slices.BinarySearchFunc(list, d, func(a, b *keyedDue) int {
		return cmp.Or(a.due.Compare(b.due), strings.Compare(a.job, b.job))
	})
}

func addDue(list []*keyedDue, d *keyedDue) []*keyedDue {
	i, _ := findDue(list, d)
	return slices.Insert(list, i, d)
}

// record adds a range, behind those that are equal.
func (sp *space) record(r Range) {
	r.From, r.To = instant(r.From), instant(r.To)
	i, _ := slices.BinarySearchFunc(sp.ranges, &r, func(a, b *Range) int {
		return cmp.Or(a.From.Compare(b.From), a.To.Compare(b.To), strings.Compare(a.Job, b.Job), -1)
	})
	sp.ranges = slices.Insert(sp.ranges, i, &r)
}

func refOf(id ID) ref { return ref{id.Job, id.Key, id.Request, id.Due.Unix()} }

func keyOf(id ID) jobKey { return jobKey{id.Job, id.Key} }

// byDue is the order of runs everywhere: oldest due first.
func byDue(a, b *row) int {
	return cmp.Or(a.ID.Due.Compare(b.ID.Due), strings.Compare(a.ID.Job, b.ID.Job),
		strings.Compare(a.ID.Key, b.ID.Key), strings.Compare(a.ID.Request, b.ID.Request))
}

// runs copies rows for the caller.
func runs(rows []*row) []Run {
	list := make([]Run, len(rows))
	for i, r := range rows {
		list[i] = r.Run
	}
	return list
}

// instant is how the store keeps an instant.
func instant(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Microsecond)
}
