package oracle

import "time"

// Paused tells that a person pauses a job. A pause of which dues are undecided goes on: a job has one.
func (o *Oracle) Paused(name string, at time.Time) {
	j := o.job(name)
	if p := &j.pause; !p.lasts {
		if p.lasts = true; !p.until.After(j.opened) {
			p.from = at
		}
	}
}

// Resumed tells that a person ends a pause.
func (o *Oracle) Resumed(name string, at time.Time) {
	if p := &o.job(name).pause; p.lasts {
		p.lasts, p.until = false, at
	}
}

// Canceled tells that a person has ended a run.
func (o *Oracle) Canceled(id ID) {
	r := o.rows[id]
	switch {
	case r == nil || r.State == Ended:
		o.fail("I16", "%v is canceled, and is not there or has ended", id)
	case r.State == Waiting:
		o.turn(r, Ended, Skipped)
	default:
		o.tellEnd(r, "canceled")
	}
}

// Retried tells that a person lets a failed run wait again.
func (o *Oracle) Retried(id ID) {
	if r := o.rows[id]; r == nil || r.State != Ended || r.Outcome != Failed {
		o.fail("I1", "%v is retried, and has not failed", id)
		return
	}
	o.again(id)
}

// Triggered tells that a person lets a new run wait.
func (o *Oracle) Triggered(id ID) {
	if o.rows[id] != nil {
		o.fail("I1", "%v is triggered twice", id)
	}
	o.again(id)
}

// Backfilled tells that a person wants a run which may be there: what has run, or is to run, stays as it is.
func (o *Oracle) Backfilled(id ID) {
	if r := o.rows[id]; r == nil || r.State == Ended && (r.Outcome == Missed || r.Outcome == Skipped) {
		o.again(id)
	}
}

func (o *Oracle) again(id ID) {
	r := o.rows[id]
	if r == nil {
		r = &row{Row: Row{ID: id, State: Waiting}}
		o.put(r)
	}
	r.Row = Row{ID: id, Fence: r.Fence, Wake: o.now}
	o.turn(r, Waiting, None)
	r.told, r.overtaken, r.hand, r.orphaned, r.begun = "", false, true, false, false
}

// Opened tells that a person opens a due for all keys, unless it was open before.
func (o *Oracle) Opened(name string, at int64) {
	id := dueID{name, at}
	if old := o.dues[id]; old == nil || old.skipped {
		o.newDue(o.job(name), id, decisionID{})
		o.dues[id].hand = true
	}
}

// SkippedRun tells that a person does not let a run come that is not due yet.
func (o *Oracle) SkippedRun(id ID) {
	if o.rows[id] == nil {
		o.put(&row{Row: Row{ID: id, State: Ended, Outcome: Skipped}, hand: true})
	}
}

// SkippedDue tells that a person does not let a due be opened that has not come yet.
func (o *Oracle) SkippedDue(name string, at int64) {
	j := o.job(name)
	if time.Unix(at, 0).After(j.opened) && o.dues[dueID{name, at}] == nil {
		o.dues[dueID{name, at}] = &due{skipped: true, finished: make([]bool, o.rules.Partitions), must: map[string]bool{}}
	}
}
