package oracle

import (
	"strings"
	"time"
)

// End is how a handler ended, and what ended its context before; a set, since both may be.
type End uint8

// The ends of a handler.
const (
	Nil         End = 1 << iota // it returned nil
	Error                       // … an error
	Skip                        // … one that says that there is nothing to do
	Panic                       // … nothing
	Overdue                     // it ran out of its time, or stalled: whether it heeds that or not, its attempt is over
	Interrupted                 // its session was lost, or its replica leaves: its attempt is not to count
)

// String lists the ends, with commas.
func (e End) String() string {
	var names []string
	for i, name := range []string{"nil", "error", "skip", "panic", "overdue", "interrupted"} {
		if e>>i&1 == 1 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}

// tenure is what a fence stands for: one session's hold of a run. It is kept when others have overtaken it.
type tenure struct {
	fence            int64
	row              *row
	session          *session
	attempt, crashes int // of the run when it was drawn
	started          bool
	begun            time.Time // when its handler's context began
	end              End
	accepted         accepted // its finish
}

// holds is whether nobody has overtaken it, and its run goes on.
func (t *tenure) holds() bool { return t.row.Fence == t.fence && t.row.State == Running }

// Claimed tells a claim that was answered as won; one that is answered again
// under its session and nonce changes nothing.
func (o *Oracle) Claimed(c Claim) {
	o.demandLive(c.Session, "a claim")
	r := o.rows[c.ID]
	if r != nil && r.State == Running && r.session == c.Session && r.nonce == c.Nonce && r.Fence == c.Fence {
		return
	}
	o.byEntry(c)
	if c.TakeUp {
		o.takenUp(c, r)
	} else {
		o.inserted(c, r)
	}
	if r == nil {
		r = &row{Row: Row{ID: c.ID}}
		o.put(r)
	}
	o.turn(r, Running, None)
	r.Crashes, r.Attempt = c.Crashes, c.Attempt
	r.session, r.nonce, r.Term = c.Session, c.Nonce, c.Term
	o.inTerm(c.ID, c.Session, c.Term)
	if !c.Exclusive && !o.policy(c.ID.Job).Parallel {
		o.fail("overlap", "%v is claimed so that others of its key may run beside it", c.ID)
	}
	o.release(r)
	r.exclusive = c.Exclusive
	o.grant(r, c.Fence)
	o.alone(r)
}

// inserted judges a first claim.
func (o *Oracle) inserted(c Claim, r *row) {
	due := time.Unix(c.ID.Due, 0)
	if r != nil {
		o.fail("I1", "%v is claimed as new, and was %v (outcome %v) before", c.ID, stateName(r.State), r.Outcome)
	}
	if due.After(o.now.Add(o.rules.Tolerance)) {
		o.fail("I8", "%v is claimed before its due", c.ID)
	}
	if o.unstarted(c.ID, r) {
		o.fail("I8", "%v is claimed before its time", c.ID)
	}
	if due.Before(o.now.Add(-o.rules.Horizon)) {
		o.fail("horizon", "%v is claimed for the first time %v after its due", c.ID, o.now.Sub(due))
	}
	o.dueOf(c.ID, "claimed")
	if c.Crashes != 0 || c.Attempt != 0 {
		o.fail("I10", "%v begins with %d attempts and %d crashes", c.ID, c.Attempt, c.Crashes)
	}
}

// dueOf is the due of a keyed run that comes to be, which demands that it is open, and that a source has had the key since.
func (o *Oracle) dueOf(id ID, how string) *due {
	d := o.dues[dueID{id.Job, id.Due}]
	switch {
	case d == nil || !d.open:
		o.fail("open", "%v is %s, and its due is not open", id, how)
		return nil
	case !d.may[id.Key]:
		o.fail("I12", "%v is %s, and no source has had its key since the due was opened", id, how)
	}
	return d
}

// takenUp judges the claim of a waiting or orphaned run.
func (o *Oracle) takenUp(c Claim, r *row) {
	switch {
	case r == nil:
		o.fail("I2", "%v is taken up, and was never written", c.ID)
		return
	case r.State == Ended:
		o.fail("I1", "%v is taken up, and has ended %v", c.ID, r.Outcome)
	case r.Fence != c.Seen:
		o.fail("I4", "%v is taken up from fence %d, it has %d", c.ID, c.Seen, r.Fence)
	case r.State == Waiting && r.Wake.After(o.now):
		o.fail("I8", "%v is taken up, and waits until %v", c.ID, r.Wake)
	case r.State == Running && !r.tenure.session.marked:
		o.fail("I4", "%v is taken up from session %d, which is not marked dead", c.ID, r.session)
	}
	if r.told != "" {
		o.fail("I16", "%v is taken up, and is told to end: %s", c.ID, r.told)
	}
	r.orphaned = r.orphaned || r.State == Running
	crashes := r.Crashes
	if r.State == Running && !o.reborn(r.tenure.session) {
		crashes++
	}
	if c.Crashes != crashes {
		o.fail("I10", "%v has %d crashes by its claim, %d by what happened", c.ID, c.Crashes, crashes)
	}
	if c.Attempt != r.Attempt {
		o.fail("I10", "%v has %d ended attempts by its claim, %d by what happened", c.ID, c.Attempt, r.Attempt)
	}
}

// reborn is whether the process of a dead session lives on in another one.
func (o *Oracle) reborn(dead *session) bool {
	for _, s := range o.sessions {
		if s != dead && s.boot == dead.boot && s.live(o.now) {
			return true
		}
	}
	return false
}

// alone demands that a session holds at most one run of two or more crashes.
func (o *Oracle) alone(r *row) {
	if r.Crashes < 2 {
		return
	}
	for _, other := range o.unended() {
		if other != r && other.State == Running && other.session == r.session && other.Crashes >= 2 {
			o.fail("I10", "session %d holds %v and %v, both after two or more crashes", r.session, r.ID, other.ID)
		}
	}
}

// grant judges a new fence and takes the lane for an exclusive run.
func (o *Oracle) grant(r *row, fence int64) {
	l := r.lane
	if o.used.has(fence) || fence <= 0 {
		o.fail("I3", "%v gets fence %d, which was drawn before", r.ID, fence)
	}
	o.used.add(fence)
	if fence <= l.last {
		o.fail("I3", "%v gets fence %d after %d of the same key", r.ID, fence, l.last)
	}
	s := o.sessions[r.session]
	if s == nil {
		s = &session{}
	}
	r.tenure = &tenure{fence: fence, row: r, session: s, attempt: r.Attempt, crashes: r.Crashes}
	o.tenures[fence], l.last, r.Fence = r.tenure, fence, fence
	if !r.exclusive {
		return
	}
	if by := l.held; by != nil && by != r {
		o.fail("overlap", "%v runs while %v does", r.ID, by.ID)
	}
	l.held = r
}

func (o *Oracle) release(r *row) {
	if r.exclusive && r.lane.held == r {
		r.lane.held = nil
	}
}

// Recorded tells a row that a claim left behind though it was busy or expired;
// a row that existed stays as it was and is not told.
func (o *Oracle) Recorded(sessionID int64, r Row) {
	o.demandLive(sessionID, "a record")
	if old := o.rows[r.ID]; old != nil {
		o.fail("I1", "%v is recorded %v, and was %v (outcome %v) before", r.ID, r.Outcome, stateName(old.State), old.Outcome)
		return
	}
	d := o.dueOf(r.ID, "recorded")
	if d == nil {
		return
	}
	switch r.Outcome {
	case Done, Failed:
		o.fail("I1", "%v is recorded %v, and was never claimed", r.ID, r.Outcome)
	case Missed:
		if due := time.Unix(r.ID.Due, 0); !due.Before(o.now.Add(-o.rules.Horizon)) {
			o.fail("I2", "%v is recorded as missed %v after its due, before the horizon", r.ID, o.now.Sub(due))
		}
	case Skipped:
		if by := o.lane(r.ID).held; by == nil || o.openedWith(by.ID, d) {
			o.fail("overlap", "%v is skipped, and no run of an older opening is running", r.ID)
		}
		o.judgeSkip(r.ID)
	}
	r.Recorded = true
	o.put(&row{Row: r})
}

// openedWith is whether the due of a run was opened together with another, by one decision.
func (o *Oracle) openedWith(id ID, d *due) bool {
	own := o.dues[dueID{id.Job, id.Due}]
	return id.Request == "" && own != nil && own.by == d.by
}

// rowOf is a run's row, found by one of its fences where it is one.
func (o *Oracle) rowOf(id ID, fence int64) *row {
	if t := o.tenures[fence]; t != nil && t.row.ID == id {
		return t.row
	}
	return o.rows[id]
}

// Finished tells how a finish was answered.
func (o *Oracle) Finished(f Finish) {
	r := o.rowOf(f.ID, f.Fence)
	holds := r != nil && r.State == Running && r.Fence == f.Fence
	switch f.Answer {
	case Already, Completed:
		if f.Answer == Completed && (r == nil || r.State != Ended || r.Outcome != Done || f.Outcome == Done) {
			o.fail("I4", "%v: a finish of fence %d is answered as completed otherwise, it is not", f.ID, f.Fence)
		}
		if r == nil || r.State == Running || r.Fence != f.Fence || f.Outcome == Done && r.Outcome != Done {
			o.fail("I4", "%v: a finish of fence %d is answered as already done, it is not", f.ID, f.Fence)
		}
		return
	case Fenced:
		if _, told := o.fenced[f.Fence]; !told {
			o.fenced[f.Fence] = false
		}
		if holds {
			o.fail("I4", "%v: its holder's finish is answered as fenced", f.ID)
		}
		return
	}
	if !holds {
		o.fail("I4", "%v: a finish of fence %d is accepted, it does not hold the run", f.ID, f.Fence)
		if r == nil || r.tenure == nil {
			return
		}
	}
	o.judgeAttempt(r, &f)
	o.release(r)
	r.exclusive = false
	r.Attempt = f.Attempt
	if t := o.tenures[f.Fence]; t != nil {
		t.accepted = accepted{outcome: f.Outcome, at: o.now}
	}
	if f.Outcome == None && r.told != "" { // which the finish was too early to know, and its answer does not say
		f.Outcome = o.toldOutcome(r)
	}
	if f.Outcome == None {
		o.turn(r, Waiting, None)
		r.Wake = f.Wake
		return
	}
	o.turn(r, Ended, f.Outcome)
	if f.Outcome == Done {
		if r.done++; r.done > 1 {
			o.fail("I1", "%v has %d committed completions", f.ID, r.done)
		}
	}
}

// judgeAttempt demands that a run goes on as its handler ended, that only a handler's own end raises the attempt, and that a
// failed run had its share of them, or of crashes.
func (o *Oracle) judgeAttempt(r *row, f *Finish) {
	p, end := o.policy(f.ID.Job), r.tenure.end
	counted := f.Attempt == r.Attempt+1
	switch {
	case f.Attempt < r.Attempt || f.Attempt > r.Attempt+1:
		o.fail("I10", "%v: attempt goes from %d to %d", f.ID, r.Attempt, f.Attempt)
	case f.Outcome == Done && end&Nil == 0:
		o.fail("I1", "%v is done, and its handler of fence %d did not return nil; it ended so: %v", f.ID, f.Fence, end)
	case f.Outcome != Done && counted && end&(Error|Skip|Panic|Overdue) == 0 && r.told == "":
		o.fail("I10", "%v: attempt %d is counted as failed, and its handler of fence %d did not fail; it ended so: %v", f.ID, f.Attempt, f.Fence, end)
	case !counted && (end&^(Error|Interrupted) != 0 || end == Error):
		o.fail("I10", "%v: attempt %d is not counted, and its handler of fence %d ended so: %v", f.ID, f.Attempt+1, f.Fence, end)
	case f.Outcome == None && f.Attempt >= p.Attempts:
		o.fail("I10", "%v waits for another attempt after %d of %d", f.ID, f.Attempt, p.Attempts)
	}
	o.judgeReason(r, f, p)
	o.judgeFailure(r, f, p)
}

// judgeFailure demands that a run which failed had all its attempts, or died too often.
func (o *Oracle) judgeFailure(r *row, f *Finish, p Policy) {
	switch {
	case f.Outcome != Failed || f.Attempt >= p.Attempts || f.Reason == "canceled":
		return
	case p.Once && f.Reason == "abandoned":
		if !r.begun && !r.orphaned {
			o.fail("I16", "%v is abandoned, and never started", f.ID)
		}
		return
	}
	if r.Crashes < o.rules.Crashes {
		o.fail("I10", "%v fails after %d attempts and %d crashes", f.ID, f.Attempt, r.Crashes)
	} else if o.rules.Fatal != nil && !o.rules.Fatal(f.ID) && o.spared-r.spared < o.rules.Spare {
		o.fail("I10", "%v fails for the crashes of others", f.ID)
	}
}

// Started tells that a handler started. It is judged by the claim that drew its fence, whoever has overtaken that since.
func (o *Oracle) Started(id ID, fence int64, attempt int) {
	t := o.tenures[fence]
	if t == nil || t.row.ID != id {
		o.fail("I4", "%v: a handler starts under fence %d, which is none of its claims", id, fence)
		return
	}
	if t.started {
		o.fail("I15", "%v: a handler starts again under fence %d", id, fence)
	}
	t.started = true
	if o.unstarted(id, t.row) {
		o.fail("I8", "%v starts before its time", id)
	}
	p := o.policy(id.Job)
	o.judgeStart(t, p)
	if s := t.session; !s.live(o.now) && s.steps == o.steps && o.now.After(o.host(s.boot).misled) {
		o.fail("I9", "%v starts under fence %d, whose session is dead (expiry %v ago, marked: %t): its replica does not reach the store", id, fence, o.now.Sub(s.expires), s.marked)
	}
	if attempt != t.attempt+1 {
		o.fail("I10", "%v starts as attempt %d, %d have ended", id, attempt, t.attempt)
	}
	if attempt > p.Attempts {
		o.fail("I10", "%v starts as attempt %d of %d", id, attempt, p.Attempts)
	}
	if t.crashes >= o.rules.Crashes {
		o.fail("I10", "%v starts after %d crashes", id, t.crashes)
	}
}

// Returned tells how the handler of a fence ended, or what ended its context.
func (o *Oracle) Returned(fence int64, end End) {
	if t := o.tenures[fence]; t != nil { // else there was no such claim, and its start was no good
		t.end |= end
	}
}

func stateName(s State) string { return [...]string{"nothing", "waiting", "running", "ended"}[s] }
