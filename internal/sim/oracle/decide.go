package oracle

import (
	"maps"
	"slices"
	"time"
)

// Decided tells a decision that was answered as won; one that is answered again
// under its session and nonce changes nothing.
func (o *Oracle) Decided(d Decision) {
	o.demandLive(d.Session, "a decision")
	j := o.job(d.Job)
	if o.repeated(d) {
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
	o.covers(d)
	o.misses(d)
	o.pauses(d)
	j.opened, j.next = d.Open, d.Next
	for _, r := range d.Ranges {
		o.count(d.Job, r.Outcome, int(r.Count))
	}
	for _, t := range d.Run {
		if d.Keyed {
			o.openDue(j, dueID{d.Job, t}, decisionID{d.Session, d.Nonce, d.Job})
		}
	}
	if !d.Keyed {
		o.written(d)
	}
}

// repeated is whether the decision was told before. Its runs that are answered as
// running must be held still.
func (o *Oracle) repeated(d Decision) bool {
	id := decisionID{d.Session, d.Nonce, d.Job}
	if !o.decided[id] && !o.before[id] {
		o.decided[id] = true
		return false
	}
	for _, r := range d.Rows {
		if old := o.rows[r.ID]; r.State == Running && (old == nil || old.State != Running || old.Fence != r.Fence) {
			o.fail("I4", "%v is answered as held with fence %d, it is not", r.ID, r.Fence)
		}
	}
	return true
}

// covers demands that every due of the stretch is decided once, and nothing else is.
func (o *Oracle) covers(d Decision) {
	s, known := o.schedules[d.SeenHash]
	if !known {
		o.fail("I2", "job %s: a decision by the unknown definition %q", d.Job, d.SeenHash)
		return
	}
	want := s.dues(d.SeenOpened.Unix(), d.Open.Unix())
	if len(d.Ranges) == 0 && slices.Equal(want, d.Run) { // as nearly always
		return
	}
	left := map[int64]bool{}
	for _, t := range want {
		left[t] = true
	}
	for _, t := range d.Run {
		if !left[t] {
			o.fail("I2", "job %s: due %d runs; it is none of (%v, %v], or was decided twice", d.Job, t, d.SeenOpened, d.Open)
		}
		delete(left, t)
	}
	for _, r := range d.Ranges {
		var n int64
		for t := r.From; t <= r.To; t++ {
			if left[t] {
				delete(left, t)
				n++
			}
		}
		if n != r.Count {
			o.fail("I2", "job %s: range [%d, %d] counts %d dues, it covers %d", d.Job, r.From, r.To, r.Count, n)
		}
	}
	for _, t := range want {
		if left[t] {
			o.fail("I2", "job %s: due %d was passed over", d.Job, t)
			return
		}
	}
}

// misses demands that only what is older than MissedAfter is missed, and older than what runs: every policy keeps the
// newest.
func (o *Oracle) misses(d Decision) {
	for _, r := range d.Ranges {
		if r.Outcome == Missed && time.Unix(r.To, 0).After(o.high.Add(-o.rules.MissedAfter)) {
			o.fail("I2", "job %s: due %d is recorded as missed, and is younger than %v", d.Job, r.To, o.rules.MissedAfter)
		}
		if r.Outcome == Missed && len(d.Run) > 0 && r.To >= d.Run[0] {
			o.fail("I2", "job %s: due %d is recorded as missed, and the older %d runs", d.Job, r.To, d.Run[0])
		}
	}
}

// pauses demands that what is due in a pause is skipped, however late that is decided, and that no other due is.
func (o *Oracle) pauses(d Decision) {
	p := o.job(d.Job).pause
	for _, t := range d.Run {
		if p.has(t) {
			o.fail("pause", "job %s: due %d runs, and came in a pause", d.Job, t)
		}
	}
	for _, r := range d.Ranges {
		if paused := r.Outcome == Skipped && r.Reason == "paused"; p.has(r.From) != paused || p.has(r.To) != paused {
			o.fail("pause", "job %s: range [%d, %d] is %v (%s); the pause is from %v to %v", d.Job, r.From, r.To, r.Outcome, r.Reason, p.from, p.until)
		}
	}
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
func (o *Oracle) written(d Decision) {
	mine := map[ID]bool{}
	for _, r := range d.Rows {
		mine[r.ID] = true
	}
	for _, t := range d.Run {
		if !mine[ID{Job: d.Job, Key: d.Job, Due: t}] && o.rows[ID{Job: d.Job, Key: d.Job, Due: t}] == nil {
			o.fail("I2", "job %s: due %d was decided to run and has no row", d.Job, t)
		}
	}
	holder, held := o.held[lane{d.Job, d.Job}]
	for _, r := range d.Rows {
		if old := o.rows[r.ID]; old != nil {
			o.fail("I2", "%v is decided, and has a row", r.ID)
			continue
		}
		n := &row{Row: r, session: d.Session, nonce: d.Nonce, forward: d.SeenHash != d.Hash}
		o.put(n)
		l := lane{r.ID.Job, r.ID.Key}
		switch {
		case r.State == Running:
			n.exclusive = !d.Parallel
			if o.inTerm(r.ID, d.Session, r.Term); r.Term != d.Term {
				o.fail("term", "%v is claimed in term %d, by a decision in term %d", r.ID, r.Term, d.Term)
			}
			o.grant(n, r.Fence)
		case r.State == Ended && r.Outcome == Skipped && r.Overlap:
			if by, ok := o.held[l]; !ok || mine[by] {
				o.fail("overlap", "%v is skipped, and no run of an older opening is running", r.ID)
			}
		case r.State == Waiting && d.Overtakes && held && !mine[holder]:
			o.overtake(r.ID, mine)
		case r.State == Ended:
			o.fail("I2", "%v ends %v in its opening", r.ID, r.Outcome)
		}
	}
}
