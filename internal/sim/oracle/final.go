package oracle

import (
	"cmp"
	"slices"
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
	for _, id := range sorted(o.dues, func(a, b dueID) int { return cmp.Or(cmp.Compare(a.job, b.job), cmp.Compare(a.due, b.due)) }) {
		if o.dues[id].open && id.due <= limit.Unix() {
			o.fail("I2", "job %s: due %d is still open", id.job, id.due)
		}
	}
	for _, id := range o.ids() {
		if r := o.rows[id]; r.State != Ended && id.Due <= limit.Unix() {
			o.fail("I2", "%v is still %s: attempt %d, crashes %d, fence %d, session %d (live: %t)",
				id, stateName(r.State), r.Attempt, r.Crashes, r.Fence, r.session, o.live(r.session))
		}
	}
}

// Audit compares what a store holds with the ledger: every row is as it was
// told, and only ended ones that are older than retention are gone.
func (o *Oracle) Audit(stored []Row) {
	seen := map[ID]bool{}
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
	for _, id := range o.ids() {
		if !seen[id] && (o.rows[id].State != Ended || id.Due > old) {
			o.fail("I2", "%v is gone from the store: it is %s, and %v old", id, stateName(o.rows[id].State), o.high.Sub(time.Unix(id.Due, 0)))
		}
	}
}

// Tally counts the ended rows of a job by outcome, and the dues that its
// ranges speak for.
func (o *Oracle) Tally(name string) map[Outcome]int {
	n := map[Outcome]int{}
	for id, r := range o.rows {
		if id.Job == name && r.State == Ended {
			n[r.Outcome]++
		}
	}
	if j := o.jobs[name]; j != nil {
		for _, r := range j.ranges {
			n[r.Outcome] += int(r.Count)
		}
	}
	return n
}

// Row tells a run's row as the ledger has it; false: there never was one.
func (o *Oracle) Row(id ID) (Row, bool) {
	r := o.rows[id]
	if r == nil {
		return Row{}, false
	}
	return r.Row, true
}

func (o *Oracle) ids() []ID {
	return sorted(o.rows, func(a, b ID) int {
		return cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(a.Job, b.Job), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Request, b.Request))
	})
}

func sorted[K comparable, V any](m map[K]V, by func(a, b K) int) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, by)
	return keys
}
