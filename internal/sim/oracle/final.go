package oracle

import (
	"cmp"
	"iter"
	"time"
)

// Settled judges what must have come to an end by now, after a calm: nothing
// due at or before limit is left open, waiting or running, and every job is
// opened at least up to it.
func (o *Oracle) Settled(limit time.Time) {
	for _, name := range sorted(o.jobs, cmp.Compare[string]) {
		if j := o.jobs[name]; !j.opened.IsZero() {
			if due, ok := o.schedules[j.hash].next(j.opened.Unix()); ok && due <= limit.Unix() {
				o.fail("I2", "job %s: due %d is not decided", name, due)
			}
		}
	}
	for _, id := range sorted(o.open, byDue) {
		if id.due <= limit.Unix() {
			o.fail("I2", "job %s: due %d is still open", id.job, id.due)
		}
	}
	for _, r := range o.unended() {
		if r.ID.Due <= limit.Unix() {
			o.fail("I2", "%v is still %s: attempt %d, crashes %d, fence %d, session %d (live: %t)",
				r.ID, stateName(r.State), r.Attempt, r.Crashes, r.Fence, r.session, o.live(r.session))
		}
	}
}

// AllDone demands that each due of a job in (from, to] has become runs that are done: of the job, or of all keys that were there
// from its opening on.
func (o *Oracle) AllDone(name string, from, to int64) {
	j := o.job(name)
	if force := o.inForce(name); j.hash != force {
		o.fail("I6", "job %s: in the calm its dues are those of %s, and in force is %q", name, j.hash, force)
	}
	for _, due := range o.schedules[j.hash].dues(nil, from, to) {
		keys := []string{name}
		if j.keyed {
			d := o.dues[dueID{name, due}]
			if d == nil {
				o.fail("I6", "job %s: due %d of the calm is not opened", name, due)
				continue
			}
			keys = sorted(d.must, cmp.Compare[string])
		}
		for _, key := range keys {
			id := ID{Job: name, Key: key, Due: due}
			if r := o.rows[id]; r == nil || r.State != Ended || r.Outcome != Done {
				o.fail("I6", "%v of the calm is not done", id)
			}
		}
	}
}

// Audit compares what a store holds with the ledger: every row is as it was
// told, and only ended ones that are older than retention are gone.
func (o *Oracle) Audit(stored iter.Seq[Row]) {
	o.audits++
	for s := range stored {
		r := o.rows[s.ID]
		if r != nil {
			r.audited = o.audits
		}
		switch {
		case r == nil:
			o.fail("I2", "%v is stored, and no call wrote it", s.ID)
		case r.State != s.State || r.Outcome != s.Outcome || r.Fence != s.Fence || r.Attempt != s.Attempt || r.Crashes != s.Crashes || r.Term != s.Term:
			o.fail("I4", "%v is stored as %s/%v fence %d term %d attempt %d crashes %d, the calls made it %s/%v fence %d term %d attempt %d crashes %d", s.ID,
				stateName(s.State), s.Outcome, s.Fence, s.Term, s.Attempt, s.Crashes, stateName(r.State), r.Outcome, r.Fence, r.Term, r.Attempt, r.Crashes)
		}
	}
	old := o.high.Add(-o.rules.Retention).Unix()
	gone := map[ID]*row{}
	for id, r := range o.rows {
		if r.audited != o.audits && (r.State != Ended || id.Due > old) {
			gone[id] = r
		}
	}
	for _, id := range sorted(gone, byID) {
		o.fail("I2", "%v is gone from the store: it is %s, and %v old", id, stateName(gone[id].State), o.high.Sub(time.Unix(id.Due, 0)))
	}
}
