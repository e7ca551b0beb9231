package core

import (
	"slices"
	"time"
)

// resumeLocal goes on with the dues of an efficiency job whose starts are spread, where others began them: what this
// replica will own when it starts is its own.
func (c *Core) resumeLocal(j *job) {
	if !j.keyed() || j.Spread == 0 {
		return
	}
	for due := range j.Schedule.All(c.now.Wall.Add(-j.Spread), c.now.Wall) {
		c.spreadLocal(j, due, j.starts.ready(c.now.Wall.Sub(due)))
	}
}

// spreadLocal streams, of a due of an efficiency job, the partitions from the given one up to those that have started,
// as far as this replica runs them now, and comes back for the others.
func (c *Core) spreadLocal(j *job, due time.Time, from int) {
	if c.draining || c.jobs[j.Name] != j {
		return
	}
	since := c.now.Wall.Sub(due)
	n := j.starts.ready(since)
	from = max(from, j.starts.ready(since-c.cfg.MissedAfter)) // what is later than that is left out
	if n > from && c.passesOf(keyOf(j.Name, due)) < maxPasses {
		c.streamLocal(j, due, from, n)
		from = n
	}
	if from == c.cfg.Partitions {
		return
	}
	wait := c.cfg.Sweep
	if n < c.cfg.Partitions {
		// The host's clock may be set: it is looked at again before long.
		wait = min(max(j.starts.next(n)-since, 1), c.cfg.Lease)
	}
	c.after(wait, func() { c.spreadLocal(j, due, from) })
}

// streamLocal begins a pass over the partitions in [from, to) that this replica runs now.
func (c *Core) streamLocal(j *job, due time.Time, from, to int) {
	mask := c.localMask(j)
	for i := range mask {
		mask[i] &= below(to, i) &^ below(from, i)
	}
	if empty(mask) || c.staysQuiet(j, due) {
		return
	}
	for _, p := range slices.Clone(c.passes) {
		switch {
		case p.job != j || !p.local || !meet(p.mask, mask):
		case p.stream != 0 || len(p.buf) > 0:
			c.emit(Problem{Job: j.Name, Due: due, Err: errStillStreaming})
			return
		default: // its source fails; this due is another try
			c.dropPass(p)
		}
	}
	p := &pass{job: j, due: due, local: true, mask: mask, seen: map[string]bool{}}
	c.addPass(p)
	c.openStream(p)
}

// meet says whether two sets have a partition in common.
func meet(a, b []byte) bool {
	for i := range a {
		if a[i]&b[i] != 0 {
			return true
		}
	}
	return false
}
