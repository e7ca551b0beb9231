package oracle

import (
	"cmp"
	"time"
)

// accepted is a finish that a store accepted.
type accepted struct {
	outcome Outcome
	at      time.Time // zero: there was none
	told    bool      // its replica says so
}

// ToldFinished judges what a replica says of a finish that was answered: what it counts is what is recorded.
func (o *Oracle) ToldFinished(id ID, fence int64, out Outcome) {
	t := o.tenures[fence]
	if t == nil || t.row.ID != id {
		o.fail("I14", "%v is told to have ended %v under fence %d, which is none of its claims", id, out, fence)
		return
	}
	a := &t.accepted
	switch {
	case a.at.IsZero() && out != Done && t.row.ousted && t.row.Fence == fence:
		return // others have ended it as it was told to, under the fence of its holder, who wanted it to wait or to fail
	case a.at.IsZero():
		o.fail("I14", "%v is told to have ended %v under fence %d, and no such finish was accepted", id, out, fence)
	case a.outcome != out:
		o.fail("I14", "%v is told to have ended %v under fence %d, and is recorded as %v", id, out, fence, a.outcome)
	case a.told:
		o.fail("I14", "%v is told twice to have ended under fence %d", id, fence)
	}
	a.told = true
}

// ToldFenced judges what a replica says of a finish that was refused: somebody has overtaken it.
func (o *Oracle) ToldFenced(id ID, fence int64) {
	if told, refused := o.fenced[fence]; !refused || told {
		o.fail("I14", "%v is told to be fenced under fence %d, and no finish was refused since it told so", id, fence)
	}
	o.fenced[fence] = true
	if r := o.rows[id]; r != nil && r.Fence == fence && r.State == Running {
		o.fail("I14", "%v is told to be fenced under fence %d, which holds it", id, fence)
	}
}

// Told demands that of the finishes and decisions accepted in (from, to] every one was told, as it is in a calm.
func (o *Oracle) Told(from, to time.Time) {
	o.toldDecisions(from, to)
	for _, fence := range sorted(o.tenures, cmp.Compare[int64]) {
		if t := o.tenures[fence]; !t.accepted.told && t.accepted.at.After(from) && !t.accepted.at.After(to) {
			o.fail("I14", "%v ended %v under fence %d, and no replica tells of it", t.row.ID, t.accepted.outcome, fence)
		}
	}
}
