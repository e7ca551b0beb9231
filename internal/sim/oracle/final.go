package oracle

import (
	"cmp"
	"time"
)

// Settled judges what must have come to an end by now, after a calm: nothing
// due at or before limit is left open, waiting or running, and every job is
// opened at least up to it.
func (o *Oracle) Settled(limit time.Time) {
	for _, name := range sorted(o.jobs, cmp.Compare[string]) {
		if j := o.jobs[name]; !j.next.IsZero() && !j.next.After(limit) {
			o.fail("I2", "job %s: due %v is not decided", name, j.next)
		}
	}
	for _, id := range sorted(o.open, byDue) {
		if id.due <= limit.Unix() {
			o.fail("I2", "job %s: due %d is still open", id.job, id.due)
		}
	}
	for _, id := range sorted(o.active, byID) {
		if r := o.active[id]; id.Due <= limit.Unix() {
			o.fail("I2", "%v is still %s: attempt %d, crashes %d, fence %d, session %d (live: %t)",
				id, stateName(r.State), r.Attempt, r.Crashes, r.Fence, r.session, o.live(r.session))
		}
	}
}

// Audit compares what a store holds with the ledger: every row is as it was
// told, and only ended ones that are older than retention are gone.
func (o *Oracle) Audit(stored []Row) {
	seen := make(map[ID]bool, len(stored))
	for _, s := range stored {
		seen[s.ID] = true
		r := o.rows[s.ID]
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
		if !seen[id] && (r.State != Ended || id.Due > old) {
			gone[id] = r
		}
	}
	for _, id := range sorted(gone, byID) {
		o.fail("I2", "%v is gone from the store: it is %s, and %v old", id, stateName(gone[id].State), o.high.Sub(time.Unix(id.Due, 0)))
	}
}
