package oracle

import (
	"cmp"
	"slices"
)

// set is one of fences. They are drawn one after the other, so a bit for each is little.
type set []uint64

func (s set) has(fence int64) bool {
	return fence >= 0 && fence/64 < int64(len(s)) && s[fence/64]>>(fence%64)&1 == 1
}

func (s *set) add(fence int64) {
	if fence < 0 {
		return
	}
	if n := int(fence/64) + 1; n > len(*s) {
		*s = append(*s, make([]uint64, n-len(*s))...)
	}
	(*s)[fence/64] |= 1 << (fence % 64)
}

// put enters a new row.
func (o *Oracle) put(r *row) {
	r.spared, r.lane = o.spared, o.lane(r.ID)
	o.rows[r.ID] = r
	o.turn(r, r.State, r.Outcome)
}

// turn changes the state of a row.
func (o *Oracle) turn(r *row, s State, out Outcome) {
	r.State, r.Outcome = s, out
	switch last := len(o.active) - 1; {
	case s != Ended && r.place == 0:
		o.active = append(o.active, r)
		r.place = len(o.active)
	case s == Ended && r.place != 0: // the last takes its place
		o.active[r.place-1], o.active[last].place = o.active[last], r.place
		o.active[last], r.place = nil, 0
		o.active = o.active[:last]
	}
}

// unended are the runs that have not ended, in order.
func (o *Oracle) unended() []*row {
	list := slices.Clone(o.active)
	slices.SortFunc(list, func(a, b *row) int { return byID(a.ID, b.ID) })
	return list
}

// lane is that of a run.
func (o *Oracle) lane(id ID) *lane {
	of := laneID{id.Job, id.Key}
	l := o.lanes[of]
	if l == nil {
		l = &lane{}
		o.lanes[of] = l
	}
	return l
}

// Forget drops what a history of hours cannot come back to: ended runs, closed dues and decisions that are older than the
// store keeps any, and by as much again. Whatever touches one of them later breaks a law: it is a first claim past the
// horizon, or of a run that was never written. It is to be called when nothing is under way.
func (o *Oracle) Forget() {
	old := o.high.Add(-2 * max(o.rules.Retention, o.rules.Horizon)).Unix()
	for id, r := range o.rows {
		if r.State != Ended || id.Due > old {
			continue
		}
		o.count(id.Job, r.Outcome, 1)
		delete(o.rows, id)
	}
	for fence, t := range o.tenures {
		if o.rows[t.row.ID] == nil {
			delete(o.tenures, fence)
			delete(o.fenced, fence)
		}
	}
	for id, d := range o.dues {
		if !d.open && id.due <= old {
			delete(o.dues, id)
		}
	}
	o.untold = slices.DeleteFunc(o.untold, func(m made) bool { return m.at.Unix() <= old })
	for _, j := range o.jobs {
		j.before, j.decided = j.decided, map[decisionID]bool{}
	}
	for id, s := range o.sessions {
		if !o.live(id) && s.expires.Before(o.high.Add(-2*o.rules.Retention)) {
			delete(o.sessions, id)
		}
	}
}

// count adds to what Tally tells.
func (o *Oracle) count(name string, out Outcome, n int) {
	j := o.job(name)
	if j.tally == nil {
		j.tally = map[Outcome]int{}
	}
	j.tally[out] += n
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
		for out, count := range j.tally {
			n[out] += count
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

func byID(a, b ID) int {
	return cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(a.Job, b.Job), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Request, b.Request))
}

func byDue(a, b dueID) int { return cmp.Or(cmp.Compare(a.job, b.job), cmp.Compare(a.due, b.due)) }

func sorted[K comparable, V any](m map[K]V, by func(a, b K) int) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, by)
	return keys
}
