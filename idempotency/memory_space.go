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
	offered    []*entry // those that are ever due, by (Next, Job)
	census     census
	seen       map[jobHash]int64 // when a definition was first seen, by the counter
	rows       map[ref]*row
	dues       []*dueRows // the same rows by due, ascending
	waiting    map[jobKey][]*row
	exclusive  map[jobKey]*row // running exclusively
	keyed      map[jobDue]*keyedDue
	open       []*keyedDue   // those that are not closed, by (due, job)
	closed     []*keyedDue   // those that are, by (due, job)
	ranges     []*Range      // by (From, To, Job), then as recorded
	horizon    time.Duration // of the session that was opened last
	counted    time.Time     // when Retire did, last
	pruned     time.Time     // the latest due whose record Prune has removed
	leading    *leading      // nil: nobody has ever led

	commands []*Command // by (At, Request)
	requests map[string]*Command
	controls int64 // see Lag
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
	job     string
	due     time.Time
	opened  time.Time // zero: never, since a person skipped it before
	catchUp bool      // as its decision said
	byHand  bool      // a person asked for it
	closed  time.Time // zero: it is open
	keys    int64     // where closed
	passes  []*Pass   // by session; none where closed
}

func newSpace(partitions int) *space {
	return &space{
		partitions: partitions,
		entries:    make(map[string]*entry),
		seen:       make(map[jobHash]int64),
		rows:       make(map[ref]*row),
		waiting:    make(map[jobKey][]*row),
		exclusive:  make(map[jobKey]*row),
		keyed:      make(map[jobDue]*keyedDue),
		requests:   make(map[string]*Command),
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
	c := &m.call // there is one at a time
	*c = call{space: sp, m: m, by: sp.session(s.ID), now: instant(m.now())}
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

// run makes a row run under a session, with a new fence, claimed in a leader's term or none.
func (c *call) run(r *row, nonce int64, exclusive bool, term int64) {
	c.leave(r)
	c.name(r, holder{c.by.id, nonce})
	r.State, r.exclusive = Running, exclusive
	r.Fence, r.Session, r.Replica, r.Term = c.m.draw(), c.by.id, c.by.Replica, term
	r.Wake, r.Started = time.Time{}, c.now
	c.index(r)
}

// apply ends a row that runs or never ran, or lets it wait, as f says.
func (sp *space) apply(r *row, f Finish, now time.Time) {
	sp.leave(r)
	if f.Outcome == Wait && r.Cancel != "" {
		f.Outcome, f.Reason = told(r.Cancel)
	}
	r.Attempt, r.Reason, r.Text, r.Cancel = f.Attempt, f.Reason, f.Text, ""
	if f.Outcome == Wait {
		r.State, r.Wake = Waiting, instant(f.Wake)
	} else {
		r.State, r.Outcome, r.Wake, r.Finished = Ended, f.Outcome, time.Time{}, now
	}
	sp.index(r)
}

// told is how a run ends that was told to.
func told(cancel string) (Outcome, string) {
	if cancel == Overtaken {
		return Skipped, Overtaken
	}
	return Failed, cancel
}

// end ends a row that waits or runs without a word of who held it: attempts and text stay as they are.
func (sp *space) end(r *row, o Outcome, reason string, now time.Time) {
	sp.apply(r, Finish{Outcome: o, Reason: reason, Attempt: r.Attempt, Text: r.Text}, now)
}

// overtake tells the run that holds the key to end, unless its due is newer, and ends those of the waiting that are older.
func (sp *space) overtake(id ID, waiting []*row, now time.Time) {
	if x := sp.exclusive[keyOf(id)]; !x.ID.Due.After(id.Due) && x.Cancel == "" {
		x.Cancel = Overtaken
		sp.controls++
	}
	for _, r := range waiting {
		if r.State == Waiting && r.ID.Due.Before(id.Due) {
			sp.end(r, Skipped, Overtaken, now)
		}
	}
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
		sp.waiting[keyOf(r.ID)] = append(sp.waiting[keyOf(r.ID)], r)
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
		sp.unqueue(r)
	case Running:
		delete(sp.session(r.by.session).runs, r)
		if r.exclusive {
			delete(sp.exclusive, keyOf(r.ID))
			r.exclusive = false
		}
	}
}

func (sp *space) unqueue(r *row) {
	at := keyOf(r.ID)
	rows := sp.waiting[at]
	i := slices.Index(rows, r)
	if rows = slices.Delete(rows, i, i+1); len(rows) == 0 {
		delete(sp.waiting, at)
		return
	}
	sp.waiting[at] = rows
}

// busy reports whether another run of the row's job and key runs exclusively.
func (sp *space) busy(id ID) bool {
	x := sp.exclusive[keyOf(id)]
	return x != nil && refOf(x.ID) != refOf(id)
}

// openDue returns the due if it is open, else nil.
func (sp *space) openDue(job string, due time.Time) *keyedDue {
	d := sp.keyed[jobDue{job, due.Unix()}]
	if d == nil || !d.closed.IsZero() {
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

func removeDue(list []*keyedDue, d *keyedDue) []*keyedDue {
	i, _ := findDue(list, d)
	return slices.Delete(list, i, i+1)
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
	return time.Unix(t.Unix(), int64(t.Nanosecond()/1000*1000)).UTC()
}
