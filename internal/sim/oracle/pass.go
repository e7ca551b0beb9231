package oracle

import (
	"cmp"
	"time"
)

// Passed tells that a pass was accepted, with the partitions it finished.
func (o *Oracle) Passed(sessionID int64, name string, at int64, finished []int) {
	o.demandLive(sessionID, "a pass")
	d := o.dues[dueID{name, at}]
	if d == nil || !d.open {
		o.fail("open", "job %s: a pass over due %d is accepted, and it is not open", name, at)
		return
	}
	for _, p := range finished {
		d.finished[p] = true
	}
}

// Closed tells that a due is closed, with the record for what was not finished, if one was offered.
func (o *Oracle) Closed(sessionID int64, name string, at int64, missed *Range) {
	o.demandLive(sessionID, "the closing of a due")
	d := o.dues[dueID{name, at}]
	if d == nil {
		o.fail("open", "job %s: due %d is closed, and was never opened", name, at)
		return
	}
	if !d.open {
		return
	}
	d.open = false
	delete(o.open, dueID{name, at})
	whole := true
	for _, f := range d.finished {
		whole = whole && f
	}
	switch {
	case whole:
	case missed == nil:
		o.fail("open", "job %s: due %d is closed unfinished", name, at)
	case !time.Unix(at, 0).Before(o.now.Add(-o.rules.Horizon)):
		o.fail("open", "job %s: due %d is given up before the horizon", name, at)
	case *missed != (Range{at, at, 1, Missed, missed.Reason}) || missed.Reason != "source" && missed.Reason != "unfinished":
		o.fail("open", "job %s: due %d is given up with the record %+v", name, at, *missed)
	default:
		d.missed = true
		o.count(name, missed.Outcome, int(missed.Count))
	}
	for _, key := range sorted(d.must, cmp.Compare[string]) {
		if d.finished[o.partition(key)] && o.rows[ID{Job: name, Key: key, Due: at}] == nil {
			o.fail("I2", "job %s: due %d is closed, and key %s, there all the time, has no row", name, at, key)
			return
		}
	}
}

// Open is whether a due of a job with keys is open.
func (o *Oracle) Open(name string, at int64) bool {
	d := o.dues[dueID{name, at}]
	return d != nil && d.open
}
