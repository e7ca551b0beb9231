package oracle

import "time"

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
func (o *Oracle) judgeStart(id ID) {
	p, r := o.policy(id.Job), o.rows[id]
	if p.Once && o.begun[id] {
		o.fail("I16", "%v starts again", id)
	}
	d := o.dues[dueID{id.Job, id.Due}]
	hand := r != nil && r.hand || d != nil && d.hand
	begun := o.begun[id] || r != nil && r.orphaned // of what was claimed by who died no store knows whether it started
	due := time.Unix(id.Due, 0)
	if latest := due.Add(p.Within + slack); p.Within > 0 && !hand && !begun && due.After(o.stepped) && o.now.After(latest) {
		o.fail("I16", "%v starts for the first time after %v, with %v to start", id, o.now.Sub(time.Unix(id.Due, 0)), p.Within)
	}
	o.begun[id] = true
}

// judgeReason demands that a run ends for a reason of its own only where there is one.
func (o *Oracle) judgeReason(r *row, f Finish) {
	p := o.policy(f.ID.Job)
	wrong := false
	switch f.Reason {
	case "canceled":
		wrong = r.told != f.Reason
	case "overtaken":
		wrong = !r.overtaken // even where a person has canceled it meanwhile
	case "deadline":
		wrong = p.Within == 0 || o.begun[f.ID] || r.hand || o.fast.Before(o.Start(f.ID, o.spreads[f.ID.Job]).Add(p.Within))
	case "handler":
		wrong = r.tenure.end&Skip == 0
	default:
		wrong = f.Outcome == Skipped
	}
	if wrong {
		o.fail("I16", "%v ends %v (%s) for nothing; it is told to end: %q, has started: %t", f.ID, f.Outcome, f.Reason, r.told, o.begun[f.ID])
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
	holder, held := o.held[lane{id.Job, id.Key}]
	return held && holder.Due > id.Due
}

// judgeSkip demands of a run that is skipped because its key is held that the one which holds it has no newer due.
func (o *Oracle) judgeSkip(id ID) {
	if o.Newer(id) {
		o.fail("overlap", "%v is skipped for %v, which has a newer due", id, o.held[lane{id.Job, id.Key}])
	}
}

// Misrecorded tells that a store said of a run whose key is held that it recorded what the claim does not say.
func (o *Oracle) Misrecorded(id ID, as string) {
	o.fail("overlap", "%v is recorded as %q, which is not what its claim says; a newer one holds its key: %t", id, as, o.Newer(id))
}

// Waits is whether a run of a key waits.
func (o *Oracle) Waits(job, key string) bool {
	for id, r := range o.active {
		if id.Job == job && id.Key == key && r.State == Waiting {
			return true
		}
	}
	return false
}

// Overtaken tells that a run waits because its key is held, and wants to have it.
func (o *Oracle) Overtaken(by ID) { o.overtake(by, nil) }

// overtake tells the holder of a key to end, and ends the older runs of it that wait, but those which were decided together.
func (o *Oracle) overtake(by ID, together map[ID]bool) {
	if holder, held := o.held[lane{by.Job, by.Key}]; held && holder.Due <= by.Due {
		if r := o.rows[holder]; r.told == "" {
			o.tellEnd(r, "overtaken")
			r.overtaken = true
		}
	}
	for id, r := range o.active {
		if id.Job == by.Job && id.Key == by.Key && r.State == Waiting && id.Due < by.Due && !together[id] {
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
