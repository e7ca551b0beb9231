package core

import (
	"slices"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// maxPasses bounds how many passes over one due run at once: one over what we
// own, and one more for each time that others left us something meanwhile.
const maxPasses = 4

// actOpen begins a pass over what lags in an open due, or closes it.
func (c *Core) actOpen(now time.Time, o idempotency.OpenDue) {
	j := c.jobs[o.Job]
	if j == nil || c.ranks == nil {
		return
	}
	if full(o.Finished) || o.Due.Before(now.Add(-c.cfg.Horizon)) {
		c.closeDue(now, j, o)
		return
	}
	if !j.keyed() {
		return // it had keys when the due was opened; what is left of it is missed at the horizon
	}
	if j.entry.Hash != j.hash { // ours came in force since we read the entry, else the store would not name this due
		j.entry.Definition = j.definition()
		if !j.efficient() {
			c.storeDues.set(j, j.look(c.storeNow()))
		}
	}
	c.beginPass(now, j, o, c.ranksOf(j))
	c.awaitStart(j, o)
}

// beginPass begins a pass over what lags in an open due, as far as these of our ranks may take it.
func (c *Core) beginPass(now time.Time, j *job, o idempotency.OpenDue, ranks [][]byte) {
	k := keyOf(o.Job, o.Due)
	if c.now.Mono < c.setbacks[k].until {
		return
	}
	if c.passesOf(k) >= maxPasses {
		c.keepStarted(now, j, o)
		return
	}
	// Without a worker that it may have, a pass begins only where we are busy with the job
	// itself and getting on: then it waits here. Else others may have it.
	if c.roomNow(j) == 0 && !c.gettingOn(j) {
		return
	}
	mask, hedge := c.lagging(now, j, o, ranks)
	if mask == nil {
		return
	}
	p := &pass{job: j, due: o.Due, catchUp: o.CatchUp, past: pastOfDue(o), mask: mask, hedge: hedge, moved: c.now.Mono}
	c.addPass(p)
	c.savePass(p, idempotency.Pass{Mine: mask}, func() {
		p.saved, p.queued = true, true // advance opens its stream
	})
}

// lagging is the set of unfinished partitions that we may take: as owner once they have started,
// as successor of rank r after r x Grace since then in which no live session moved them.
func (c *Core) lagging(now time.Time, j *job, o idempotency.OpenDue, ranks [][]byte) (mask, hedge []byte) {
	mask, hedge = make([]byte, c.cfg.Partitions/8), make([]byte, c.cfg.Partitions/8)
	k := keyOf(o.Job, o.Due)
	settled := union(c.finished[k].bits, o.Finished) // or about to be, by a pass of ours
	for _, p := range c.passes {
		if p.key() == k {
			settled = union(p.mask, settled)
		}
	}
	for r, bits := range ranks {
		since := now.Add(-time.Duration(r) * c.cfg.Grace)
		n := j.starts.ready(since.Sub(o.Due))
		for i := range mask {
			b := bits[i] &^ settled[i] & below(n, i)
			if r > 0 && b != 0 {
				b &^= moving(o, i, since)
				hedge[i] |= b
			}
			mask[i] |= b
		}
	}
	if empty(mask) {
		return nil, nil
	}
	return mask, hedge
}

// keepStarted tells the others that what has started since our last pass began is not forgotten: enough passes wait for
// workers that get on.
func (c *Core) keepStarted(now time.Time, j *job, o idempotency.OpenDue) {
	if j.Spread == 0 || !c.gettingOn(j) {
		return
	}
	ranks := c.ranksOf(j)
	mask, _ := c.lagging(now, j, o, ranks[:min(1, len(ranks))])
	i := slices.IndexFunc(c.passes, func(p *pass) bool { return p.saved && !p.ending && p.job == j && p.due.Equal(o.Due) })
	if i < 0 || mask == nil || slices.Equal(mask, c.passes[i].kept) {
		return
	}
	p := c.passes[i]
	p.kept = mask
	c.savePass(p, idempotency.Pass{Mine: p.mine()}, func() {})
}

// moving has the bits of byte i that a live session moved after since.
func moving(o idempotency.OpenDue, i int, since time.Time) byte {
	if o.Opened.After(since) {
		return 0xff
	}
	var b byte
	for _, p := range o.Passes {
		if p.MovedAt.After(since) {
			b |= p.Mine[i]
		}
	}
	return b
}

// full says that every partition's bit is set, empty that none is.
func full(bits []byte) bool {
	return len(bits) > 0 && !slices.ContainsFunc(bits, func(b byte) bool { return b != 0xff })
}

func empty(bits []byte) bool { return !slices.ContainsFunc(bits, func(b byte) bool { return b != 0 }) }

// finished is what this session's passes over a due have finished. A listing
// that was read before the last of them was saved does not know of it yet.
type finished struct {
	keys  int64
	bits  []byte
	saved time.Duration
}

func union(a, b []byte) []byte {
	u := slices.Clone(b)
	for i := range a {
		u[i] |= a[i]
	}
	return u
}

// patience is how long a replica waits before it streams again what its source
// failed to yield; it doubles with each failure, up to maxPatience.
const (
	patience    = time.Second
	maxPatience = time.Minute
)

// setback is a due whose source failed here.
type setback struct {
	times int
	until time.Duration
}

// setBack notes one more failure of a due's source, and returns how long to wait.
func (c *Core) setBack(k dueKey) time.Duration {
	b := c.setbacks[k]
	wait := min(patience<<min(b.times, 10), maxPatience)
	c.setbacks[k] = setback{times: b.times + 1, until: c.now.Mono + wait}
	return wait
}

// recovered makes the next failure of a due's source the first again, since others of its passes came to an end.
func (c *Core) recovered(k dueKey) {
	if b, had := c.setbacks[k]; had {
		c.setbacks[k] = setback{times: 1, until: b.until}
	}
}
