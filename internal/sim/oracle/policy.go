package oracle

import (
	"slices"
	"time"
)

// Policy is what a job's choices mean for its runs.
type Policy struct {
	Attempts int
	Parallel bool          // runs of a key may be at work beside each other
	Once     bool          // a run starts once at most, unless a person asks for it again
	Within   time.Duration // after its start a run may not start for the first time; 0: it may
}

func (o *Oracle) policy(job string) Policy {
	if o.rules.Policy == nil {
		return Policy{Attempts: o.rules.Attempts}
	}
	return o.rules.Policy(job)
}

// slack is how late a replica may know what the store's clock says, and how long an answer is under way.
const slack = 3 * time.Second

// judgeStart demands that a run which may start once only, or in time only, does so.
func (o *Oracle) judgeStart(t *tenure, p Policy) {
	r := t.row
	if p.Once && r.begun {
		o.fail("I16", "%v starts again", r.ID)
	}
	first := !r.begun && !r.orphaned // of what was claimed by who died no store knows whether it started
	if r.begun = true; p.Within > 0 && first && !o.byHand(r) {
		o.judgeFirst(t, p)
	}
}

// judgeFirst demands that a run which nobody asked for starts in time for the first time, by what a process can know of the time.
func (o *Oracle) judgeFirst(t *tenure, p Policy) {
	r := t.row
	due := time.Unix(r.ID.Due, 0)
	if latest := due.Add(p.Within + slack); due.After(o.stepped) && o.now.After(latest) && o.now.After(o.host(t.session.boot).misled) {
		o.fail("I16", "%v starts for the first time after %v, with %v to start", r.ID, o.now.Sub(due), p.Within)
	}
}

// byHand is whether a person asked for a run, or for its due.
func (o *Oracle) byHand(r *row) bool {
	d := o.dues[dueID{r.ID.Job, r.ID.Due}]
	return r.hand || d != nil && d.hand
}

// judgeReason demands that a run ends for a reason of its own only where there is one.
func (o *Oracle) judgeReason(r *row, f *Finish, p Policy) {
	wrong := false
	switch f.Reason {
	case "canceled":
		wrong = r.told != f.Reason
	case "overtaken":
		wrong = !r.overtaken // even where a person has canceled it meanwhile
	case "deadline": // by a clock that may be ahead by the tolerance
		wrong = p.Within == 0 || r.begun || r.hand ||
			o.fast.Add(o.rules.Tolerance).Before(o.Start(f.ID, o.spreads[f.ID.Job]).Add(p.Within))
	case "handler":
		wrong = r.tenure.end&Skip == 0
	default:
		wrong = f.Outcome == Skipped
	}
	if wrong {
		o.fail("I16", "%v ends %v (%s) for nothing; it is told to end: %q, has started: %t", f.ID, f.Outcome, f.Reason, r.told, r.begun)
	}
}

// toldOutcome is how a run ends that was told to and does not say that it is done.
func (o *Oracle) toldOutcome(r *row) Outcome {
	if r.told == "overtaken" {
		return Skipped
	}
	return Failed
}

// Newer is whether the run that holds a key has a newer due than another of it.
func (o *Oracle) Newer(id ID) bool {
	holder := o.lane(id).held
	return holder != nil && holder.ID.Due > id.Due
}

// judgeSkip demands of a run that is skipped because its key is held that the one which holds it has no newer due.
func (o *Oracle) judgeSkip(id ID) {
	if o.Newer(id) {
		o.fail("overlap", "%v is skipped for %v, which has a newer due", id, o.lane(id).held.ID)
	}
}

// Misrecorded tells that a store said of a run whose key is held that it recorded what the claim does not say.
func (o *Oracle) Misrecorded(id ID, as string) {
	o.fail("overlap", "%v is recorded as %q, which is not what its claim says; a newer one holds its key: %t", id, as, o.Newer(id))
}

// Waits is whether a run of a key waits.
func (o *Oracle) Waits(job, key string) bool {
	return slices.ContainsFunc(o.active, func(r *row) bool { return r.ID.Key == key && r.ID.Job == job && r.State == Waiting })
}

// Overtaken tells that a run waits because its key is held, and wants to have it.
func (o *Oracle) Overtaken(by ID) {
	if r := o.rows[by]; r != nil {
		o.overtake(r)
	}
}

// overtake tells the holder of a key to end, and ends the older runs of it that wait, but those which were decided together.
func (o *Oracle) overtake(by *row) {
	if holder := by.lane.held; holder != nil && holder.ID.Due <= by.ID.Due && holder.told == "" {
		o.tellEnd(holder, "overtaken")
		holder.overtaken = true
	}
	for _, r := range slices.Backward(o.active) { // which loses those that end
		together := r.written != 0 && r.written == by.written
		if r.lane == by.lane && r.State == Waiting && r.ID.Due < by.ID.Due && !together {
			o.turn(r, Ended, Skipped)
		}
	}
}

// Refused tells a take-up that was not won: an orphan which is told to end does so by it.
func (o *Oracle) Refused(id ID, seen int64) {
	if r := o.rows[id]; r != nil && r.State == Running && r.Fence == seen && r.told != "" && r.tenure.session.marked {
		o.release(r)
		o.turn(r, Ended, o.toldOutcome(r))
		r.exclusive, r.ousted = false, true
	}
}
