package oracle

import "time"

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
	if o.unstarted(c.ID) {
		o.fail("I8", "%v is claimed before its time", c.ID)
	}
	if due.Before(o.now.Add(-o.rules.Horizon)) {
		o.fail("horizon", "%v is claimed for the first time %v after its due", c.ID, o.now.Sub(due))
	}
	if d := o.dues[dueID{c.ID.Job, c.ID.Due}]; d == nil || !d.open {
		o.fail("open", "%v is claimed, and its due is not open", c.ID)
	}
	if c.Crashes != 0 || c.Attempt != 0 {
		o.fail("I10", "%v begins with %d attempts and %d crashes", c.ID, c.Attempt, c.Crashes)
	}
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
	case r.State == Running && !o.sessions[r.session].marked:
		o.fail("I4", "%v is taken up from session %d, which is not marked dead", c.ID, r.session)
	}
	if r.told != "" {
		o.fail("I16", "%v is taken up, and is told to end: %s", c.ID, r.told)
	}
	r.orphaned = r.orphaned || r.State == Running
	crashes := r.Crashes
	if r.State == Running && !o.reborn(r.session) {
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
func (o *Oracle) reborn(dead int64) bool {
	for id, s := range o.sessions {
		if id != dead && s.boot == o.sessions[dead].boot && o.live(id) {
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
	for _, id := range sorted(o.active, byID) {
		if other := o.active[id]; id != r.ID && other.State == Running && other.session == r.session && other.Crashes >= 2 {
			o.fail("I10", "session %d holds %v and %v, both after two or more crashes", r.session, r.ID, id)
		}
	}
}

// grant judges a new fence and takes the lane for an exclusive run.
func (o *Oracle) grant(r *row, fence int64) {
	l := lane{r.ID.Job, r.ID.Key}
	if o.used.has(fence) || fence <= 0 {
		o.fail("I3", "%v gets fence %d, which %v had", r.ID, fence, o.fences[fence])
	}
	o.used.add(fence)
	if fence <= o.last[l] {
		o.fail("I3", "%v gets fence %d after %d of the same key", r.ID, fence, o.last[l])
	}
	o.fences[fence], o.last[l], r.Fence = r.ID, fence, fence
	if !r.exclusive {
		return
	}
	if by, taken := o.held[l]; taken && by != r.ID {
		o.fail("overlap", "%v runs while %v does", r.ID, by)
	}
	o.held[l] = r.ID
}

func (o *Oracle) release(r *row) {
	l := lane{r.ID.Job, r.ID.Key}
	if r.exclusive && o.held[l] == r.ID {
		delete(o.held, l)
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
	d := o.dues[dueID{r.ID.Job, r.ID.Due}]
	if d == nil || !d.open {
		o.fail("open", "%v is recorded, and its due is not open", r.ID)
		return
	}
	if r.Outcome == Skipped {
		by, ok := o.held[lane{r.ID.Job, r.ID.Key}]
		other := o.dues[dueID{by.Job, by.Due}]
		if !ok || by.Request == "" && other != nil && other.by == d.by {
			o.fail("overlap", "%v is skipped, and no run of an older opening is running", r.ID)
		}
	}
	r.Recorded = true
	o.put(&row{Row: r})
}

// Finished tells how a finish was answered.
func (o *Oracle) Finished(f Finish) {
	r := o.rows[f.ID]
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
		o.fenced[f.Fence] = o.fenced[f.Fence]
		if holds {
			o.fail("I4", "%v: its holder's finish is answered as fenced", f.ID)
		}
		return
	}
	if !holds {
		o.fail("I4", "%v: a finish of fence %d is accepted, it does not hold the run", f.ID, f.Fence)
		if r == nil {
			return
		}
	}
	o.judgeAttempt(r, f)
	o.release(r)
	r.exclusive = false
	r.Attempt = f.Attempt
	o.accepted[f.Fence] = &accepted{id: f.ID, outcome: f.Outcome, at: o.now}
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

// judgeAttempt demands that only a handler's own end raises the attempt, and that a failed run had its share of them,
// or of crashes.
func (o *Oracle) judgeAttempt(r *row, f Finish) {
	switch {
	case f.Attempt < r.Attempt || f.Attempt > r.Attempt+1:
		o.fail("I10", "%v: attempt goes from %d to %d", f.ID, r.Attempt, f.Attempt)
	case f.Attempt == r.Attempt+1 && !o.ended.has(f.Fence) && r.told == "":
		o.fail("I10", "%v: attempt %d is counted, and no handler of fence %d ended", f.ID, f.Attempt, f.Fence)
	}
	if f.Outcome == Done && !o.ended.has(f.Fence) {
		o.fail("I1", "%v is done, and no handler of fence %d ended", f.ID, f.Fence)
	}
	o.judgeReason(r, f)
	p := o.policy(f.ID.Job)
	switch {
	case f.Outcome != Failed || f.Attempt >= p.Attempts || f.Reason == "canceled":
		return
	case p.Once && f.Reason == "abandoned":
		if !o.begun[f.ID] && !r.orphaned {
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

// Started tells that a handler started.
func (o *Oracle) Started(id ID, fence int64, attempt int) {
	if o.started.has(fence) {
		o.fail("I15", "%v: a handler starts again under fence %d", id, fence)
	}
	o.started.add(fence)
	if o.fences[fence] != id {
		o.fail("I4", "%v: a handler starts under fence %d, which is none of its claims", id, fence)
	}
	if o.unstarted(id) {
		o.fail("I8", "%v starts before its time", id)
	}
	o.judgeStart(id)
	if r := o.rows[id]; r != nil && r.Fence == fence && r.State == Running {
		if s := o.sessions[r.session]; s != nil && !o.live(r.session) && s.steps == o.steps {
			o.fail("I9", "%v starts under session %d, which is dead since %v: its replica does not reach the store", id, r.session, o.now.Sub(s.expires))
		}
		if attempt != r.Attempt+1 {
			o.fail("I10", "%v starts as attempt %d, %d have ended", id, attempt, r.Attempt)
		}
		if r.Crashes >= o.rules.Crashes {
			o.fail("I10", "%v starts after %d crashes", id, r.Crashes)
		}
	}
}

// Returned tells that the handler of a fence returned, or ran out of its time.
func (o *Oracle) Returned(fence int64) { o.ended.add(fence) }

func stateName(s State) string { return [...]string{"nothing", "waiting", "running", "ended"}[s] }
