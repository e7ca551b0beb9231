package oracle

import "maps"

// Decided tells a decision that was answered as won; one that is answered again
// under its session and nonce changes nothing.
func (o *Oracle) Decided(d Decision) {
	o.demandLive(d.Session, "a decision")
	j := o.job(d.Job)
	if o.repeated(j, &d) {
		return
	}
	if !d.SeenOpened.Equal(j.opened) {
		o.fail("I13", "job %s: a decision from %v was accepted, opened is %v", d.Job, d.SeenOpened, j.opened)
	}
	if d.Open.Before(j.opened) {
		o.fail("I13", "job %s: opened moves back from %v to %v", d.Job, j.opened, d.Open)
	}
	if d.Open.After(j.opened) && d.Open.After(o.now.Add(o.rules.Tolerance)) {
		o.fail("I13", "job %s: opened moves to %v, ahead of the store", d.Job, d.Open)
	}
	o.forced(j, &d)
	o.planned(j, &d)
	o.makes(&d)
	j.opened, j.next, j.hash = d.Open, d.Next, d.Hash
	j.keyed = d.Keyed
	for _, r := range d.Ranges {
		o.count(d.Job, r.Outcome, int(r.Count))
	}
	if !d.Keyed {
		o.written(&d)
		return
	}
	for _, t := range d.Run {
		o.openDue(j, dueID{d.Job, t}, decisionID{d.Session, d.Nonce})
	}
}

// repeated is whether the decision was told before. Its runs that are answered as
// running must be held still.
func (o *Oracle) repeated(j *job, d *Decision) bool {
	id := decisionID{d.Session, d.Nonce}
	if !j.decided[id] && !j.before[id] {
		j.decided[id] = true
		return false
	}
	for _, r := range d.Rows {
		if old := o.rows[r.ID]; r.State == Running && (old == nil || old.State != Running || old.Fence != r.Fence) {
			o.fail("I4", "%v is answered as held with fence %d, it is not", r.ID, r.Fence)
		}
	}
	return true
}

func (o *Oracle) openDue(j *job, id dueID, by decisionID) {
	if old := o.dues[id]; old != nil {
		if !old.skipped && !old.hand {
			o.fail("I2", "job %s: due %d opened twice", id.job, id.due)
		}
		return
	}
	o.newDue(j, id, by)
}

func (o *Oracle) newDue(j *job, id dueID, by decisionID) {
	d := &due{by: by, open: true, finished: make([]bool, o.rules.Partitions), must: maps.Clone(j.keys), may: maps.Clone(j.some)}
	o.dues[id], o.open[id] = d, d
}

// written puts the rows of a decision into the ledger.
func (o *Oracle) written(d *Decision) {
	o.writes++
	for _, r := range d.Rows {
		if old := o.rows[r.ID]; old != nil {
			o.fail("I2", "%v is decided, and has a row", r.ID)
			continue
		}
		n := &row{Row: r, session: d.Session, nonce: d.Nonce, written: o.writes, forward: d.SeenHash != d.Hash}
		o.put(n)
		o.begins(d, n)
	}
	for _, t := range d.Run {
		if o.rows[ID{Job: d.Job, Key: d.Job, Due: t}] == nil {
			o.fail("I2", "job %s: due %d was decided to run and has no row", d.Job, t)
		}
	}
}

// begins judges how a row that a decision has written begins.
func (o *Oracle) begins(d *Decision, r *row) {
	holder := r.lane.held
	older := holder != nil && holder.written != r.written
	switch {
	case r.State == Running:
		r.exclusive = !d.Parallel
		if o.inTerm(r.ID, d.Session, r.Term); r.Term != d.Term {
			o.fail("term", "%v is claimed in term %d, by a decision in term %d", r.ID, r.Term, d.Term)
		}
		o.grant(r, r.Fence)
	case r.State == Ended && r.Outcome == Skipped && r.Overlap:
		if !older {
			o.fail("overlap", "%v is skipped, and no run of an older opening is running", r.ID)
		}
	case r.State == Waiting && d.Overtakes && older:
		o.overtake(r)
	case r.State == Ended:
		o.fail("I2", "%v ends %v in its opening", r.ID, r.Outcome)
	}
}
