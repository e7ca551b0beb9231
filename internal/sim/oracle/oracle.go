package oracle

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/cespare/xxhash/v2"
)

// Oracle judges one history. It is told of each event once, in order; At is
// told before each what the store's clock says. It is for one goroutine.
type Oracle struct {
	rules Rules
	now   time.Time // the store's clock
	high  time.Time // the latest that it ever said
	fast  time.Time // what it would say had it never stepped back, as replicas believe until they hear of it

	schedules map[string]Schedule // by definition hash
	spreads   map[string]time.Duration
	choices   map[chosen][]Choice
	seen      map[definition]int // which of a job's was first seen before which
	jobs      map[string]*job
	sessions  map[int64]*session
	rows      map[ID]*row
	active    []*row // those that have not ended
	lanes     map[laneID]*lane
	dues      map[dueID]*due
	open      map[dueID]*due    // those that are open
	writes    int               // decisions that wrote rows
	audits    int               // comparisons with what a store holds
	tenures   map[int64]*tenure // by fence
	used      set               // all fences ever
	terms     map[int64]int64   // the sessions that led, by term
	term      int64             // the highest
	fired     map[ID]int        // first starts of runs that no store knows of
	starts    map[string]int    // … by job
	fenced    map[int64]bool    // finishes that were refused, and whether their replica says so
	untold    []made            // decisions of which no process tells yet
	spared    int
	steps     int       // of the store's clock
	stepped   time.Time // up to where they have taken it
	contexts  contexts
	room      planning

	violations []Violation
}

// decisionID names a decision of a job.
type decisionID struct{ session, nonce int64 }

type laneID struct{ job, key string }

// lane is what overlap and the order of fences are about: the runs of a key.
type lane struct {
	held *row  // running exclusively; nil: none is
	last int64 // the highest fence
}

type session struct {
	boot    string
	expires time.Time
	marked  bool

	declared int64             // the nonce of its last declaration
	hashes   map[string]string // the definitions that it announces, by job
	steps    int               // of the store's clock when it was renewed last
}

// live is whether a session may still act; one that nobody knows may not.
func (s *session) live(now time.Time) bool { return s != nil && !s.marked && now.Before(s.expires) }

type job struct {
	hash    string // of the definition by which its dues are decided
	keyed   bool
	opened  time.Time
	next    time.Time
	pause   pause
	decided map[decisionID]bool
	before  map[decisionID]bool // decided before the last Forget
	tally   map[Outcome]int     // dues that ranges speak for, and runs that are forgotten
	keys    map[string]bool     // that every copy of its source yields
	some    map[string]bool     // that some copy does
}

// pause is the last of a job: what is due in [from, until), or from then on while it lasts.
type pause struct {
	from, until time.Time
	lasts       bool
}

func (p pause) has(due int64) bool {
	t := time.Unix(due, 0)
	return !p.from.IsZero() && !t.Before(p.from) && (p.lasts || t.Before(p.until))
}

// row is a run's.
type row struct {
	Row
	session, nonce int64
	lane           *lane
	place          int     // among the active, from 1 on; 0: it is none of them
	written        int     // the decision that wrote it, counted from 1 on; 0: none did
	audited        int     // the last comparison that found it in the store
	tenure         *tenure // the last
	exclusive      bool
	forward        bool // its definition ended before it could start
	done           int
	told           string    // why it is told to end
	since          time.Time // … and since when
	steps          int       // of the store's clock then
	overtaken      bool      // it was told so first
	begun          bool      // a handler of it started since a person asked for it
	hand           bool      // a person asked for it
	orphaned       bool      // it was taken up from who was gone
	ousted         bool      // it was told to end, and others did that when its holder was gone
	spared         int       // how many processes had been killed or paused when it came to be
}

type dueID struct {
	job string
	due int64
}

// due is one of a job with keys.
type due struct {
	by       decisionID
	open     bool
	missed   bool
	hand     bool            // a person opened it
	skipped  bool            // a person did not let it open
	finished []bool          // by partition
	must     map[string]bool // keys that have been there ever since the opening
	may      map[string]bool // keys that some copy of the source has yielded since
}

// New returns an oracle that was told nothing yet.
func New(r Rules) *Oracle {
	return &Oracle{
		rules: r, schedules: map[string]Schedule{}, spreads: map[string]time.Duration{}, choices: map[chosen][]Choice{}, seen: map[definition]int{}, jobs: map[string]*job{}, sessions: map[int64]*session{},
		rows: map[ID]*row{}, lanes: map[laneID]*lane{}, dues: map[dueID]*due{}, open: map[dueID]*due{},
		tenures: map[int64]*tenure{}, terms: map[int64]int64{}, fired: map[ID]int{}, starts: map[string]int{}, fenced: map[int64]bool{},
		contexts: contexts{alive: map[int64]*tenure{}, hosts: map[string]*host{}},
	}
}

// Violations are the laws that were broken so far, in order. A history goes on
// after one, and what follows may be its consequence: read the first.
func (o *Oracle) Violations() []Violation { return o.violations }

func (o *Oracle) fail(law, format string, a ...any) {
	o.violations = append(o.violations, Violation{Law: law, Text: fmt.Sprintf(format, a...), At: o.now})
}

// At tells what the store's clock says now.
func (o *Oracle) At(now time.Time) {
	switch {
	case now.Equal(o.now):
		return
	case o.now.IsZero():
		o.fast = now
	default:
		o.fast = o.fast.Add(max(now.Sub(o.now), 0))
	}
	o.now = now
	if now.After(o.high) {
		o.high = now
	}
}

// Stepped tells that the store's clock was set to what it says now.
func (o *Oracle) Stepped() {
	if o.steps++; o.now.After(o.stepped) {
		o.stepped = o.now
	}
}

// Define tells the schedule that a definition hash stands for.
func (o *Oracle) Define(hash string, s Schedule) { o.schedules[hash] = s }

// Spread tells over how long the starts of a job's dues are spread; where versions differ, the least.
func (o *Oracle) Spread(job string, over time.Duration) { o.spreads[job] = over }

// Start is when a run may start: a run of partition p of P at the p-th of P equal parts of what its due is spread over.
func (o *Oracle) Start(id ID, over time.Duration) time.Time {
	due := time.Unix(id.Due, 0)
	if over == 0 {
		return due
	}
	high, low := bits.Mul64(uint64(o.partition(id.Key)), uint64(over))
	part, _ := bits.Div64(high, low, uint64(o.rules.Partitions))
	return due.Add(time.Duration(part))
}

// unstarted is whether a run may not start yet. One whose definition ended before it could is brought forward. It may have no row.
func (o *Oracle) unstarted(id ID, r *row) bool {
	over := o.spreads[id.Job]
	if r != nil && (r.forward || r.hand) {
		over = 0
	}
	return o.Start(id, over).After(o.fast.Add(o.rules.Tolerance))
}

// partition is a key's. What the product takes it for is not asked.
func (o *Oracle) partition(key string) int {
	return int(xxhash.Sum64String(key) % uint64(o.rules.Partitions))
}

// Copied tells that a copy of a job's source has a key from now on, as the first one, or that none has it any longer. What
// streams have read of it by then may still be claimed for the dues that are open.
func (o *Oracle) Copied(name, key string, some bool) {
	j := o.job(name)
	if !some {
		delete(j.some, key)
		return
	}
	j.some[key] = true
	for id, d := range o.open {
		if id.job == name {
			d.may[key] = true
		}
	}
}

// Present tells that all copies of a job's source have a key, or that it goes. One that appears counts
// for the dues that open later; one that went for none that is open.
func (o *Oracle) Present(name, key string, present bool) {
	j := o.job(name)
	if present {
		j.keys[key] = true
		o.Copied(name, key, true)
		return
	}
	delete(j.keys, key)
	for id, d := range o.open {
		if id.job == name {
			delete(d.must, key)
		}
	}
}

// Disturbed tells that a process was killed or paused by no handler's doing.
func (o *Oracle) Disturbed() { o.spared++ }

func (o *Oracle) job(name string) *job {
	j := o.jobs[name]
	if j == nil {
		j = &job{decided: map[decisionID]bool{}, keys: map[string]bool{}, some: map[string]bool{}}
		o.jobs[name] = j
	}
	return j
}

// Session tells that a session was opened or renewed.
func (o *Oracle) Session(id int64, boot string, expires time.Time, opened bool) {
	if opened {
		if o.sessions[id] != nil {
			o.fail("I4", "session %d opened twice", id)
		}
		o.sessions[id] = &session{boot: boot, expires: expires, steps: o.steps}
		return
	}
	o.demandLive(id, "a renewal")
	if s := o.sessions[id]; s != nil {
		s.expires, s.steps = expires, o.steps
	}
}

// SessionDead tells that a session was closed by itself, or marked by another.
func (o *Oracle) SessionDead(id int64, closed bool) {
	s := o.sessions[id]
	if s == nil {
		return
	}
	if !closed && o.live(id) {
		return // marking a live session does nothing, and must not: its next call shows it
	}
	s.marked = true
}

func (o *Oracle) live(id int64) bool { return o.sessions[id].live(o.now) }

func (o *Oracle) demandLive(id int64, what string) {
	if !o.live(id) {
		o.fail("I4", "%s was accepted of session %d, which is dead", what, id)
	}
}

func (o *Oracle) boot(session int64) string {
	if s := o.sessions[session]; s != nil {
		return s.boot
	}
	return ""
}

// Declared tells a job's entry as a store answered it to a declaration.
func (o *Oracle) Declared(sessionID int64, name, hash, inForce string, opened, next time.Time) {
	o.demandLive(sessionID, "a declaration")
	j := o.job(name)
	if force := o.inForce(name); inForce != force {
		o.fail("force", "job %s: a declaration is told that %q is in force, it is %q", name, inForce, force)
	}
	switch {
	case j.opened.IsZero():
		if opened.After(o.now.Add(o.rules.Tolerance)) {
			o.fail("I13", "job %s begins opened up to %v, ahead of the store", name, opened)
		}
		j.hash, j.opened, j.next = hash, opened, next
	case !opened.Equal(j.opened):
		o.fail("I13", "job %s is opened up to %v, and up to %v for a declaration", name, j.opened, opened)
	case hash != j.hash:
		o.fail("force", "job %s goes by the definition %s, and by %s for a declaration", name, j.hash, hash)
	}
}
