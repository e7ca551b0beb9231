package oracle

import (
	"slices"
	"time"
)

// made is a decision that a store accepted, as its process has to tell of it.
type made struct {
	boot, job               string
	runs                    []int64
	missed, paused, tooLate int64 // dues
	at                      time.Time
}

// makes notes a decision that its process will tell of. None tells of one about an efficiency job, whose dues no store decides.
func (o *Oracle) makes(d *Decision) {
	if d.Open.IsZero() {
		return
	}
	m := made{boot: o.boot(d.Session), job: d.Job, runs: d.Run, at: o.now}
	for _, r := range d.Ranges {
		switch {
		case r.Outcome == Missed:
			m.missed += r.Count
		case r.Reason == "deadline":
			m.tooLate += r.Count
		default:
			m.paused += r.Count
		}
	}
	o.untold = append(o.untold, m)
}

// ToldDecided judges what a process says of a decision that it won: what it counts is what was accepted of it, and it counts it once.
func (o *Oracle) ToldDecided(boot, job string, runs []int64, missed, paused, tooLate int64) {
	i := slices.IndexFunc(o.untold, func(m made) bool {
		return m.boot == boot && m.job == job && slices.Equal(m.runs, runs) && m.missed == missed && m.paused == paused && m.tooLate == tooLate
	})
	if i < 0 {
		o.fail("I14", "job %s: %s tells that it decided %d dues to run, %d missed, %d paused, %d too late, and no such decision was accepted, or it told of it before",
			job, boot, len(runs), missed, paused, tooLate)
		return
	}
	o.untold = slices.Delete(o.untold, i, i+1)
}

// toldDecisions demands that of the decisions accepted in (from, to] every one was told.
func (o *Oracle) toldDecisions(from, to time.Time) {
	for _, m := range o.untold {
		if m.at.After(from) && !m.at.After(to) {
			o.fail("I14", "job %s: %s decided %d dues to run, %d missed, %d paused, %d too late, and does not tell of it", m.job, m.boot, len(m.runs), m.missed, m.paused, m.tooLate)
		}
	}
}

// ToldTakenUp judges what a replica says of an orphan that it has taken up. One that was released between the sweep that saw it and its
// claim was none, which no answer says.
func (o *Oracle) ToldTakenUp(id ID, fence int64, crashes int) {
	if t := o.tenures[fence]; t == nil || t.row.ID != id || t.crashes != crashes {
		o.fail("I14", "%v is told to be taken up under fence %d after %d crashes, and no such claim was won", id, fence, crashes)
	}
}
