package core

import "github.com/belfry-go/belfry/jobs"

// drain begins to leave: announce it first, so that others take what is due
// next; claim nothing more; let what runs finish.
func (c *Core) drain(why string) {
	if c.draining {
		return
	}
	const head = "stopping: "
	c.draining, c.stopping = true, head+shorten(why, maxReason-len(head))
	c.announce()
	c.dropPasses()
	c.endAllAwaiting()
	c.decides.drop(nil)
	c.claims.drop(nil)
	c.saves.drop(nil)
	c.backlog.left, c.backlog.fresh, c.local = nil, nil, nil
	if s := c.session; s != nil {
		c.every(c.cfg.Sweep, func() bool { return c.listMine(s) }) // no sweep shows any more that something is told to end
	}
	if c.hurried {
		c.cutOff()
		return
	}
	c.after(c.cfg.Drain, c.cutOff)
}

// hurry ends the wait for handlers, now or when it would begin.
func (c *Core) hurry() {
	c.hurried = true
	if c.draining {
		c.cutOff()
	}
}

// cutOff cancels the handlers that are still at work. What returns is released;
// what does not goes with the session.
func (c *Core) cutOff() {
	if c.cutting {
		return
	}
	c.cutting = true
	for _, h := range c.sortedHeld() {
		c.end(h, jobs.ErrDraining)
	}
	c.after(stuckAfter+c.cfg.callTimeout(), c.leave)
}

// checkDrained leaves as soon as nothing is held and nothing unanswered could still be ours.
func (c *Core) checkDrained() {
	if c.draining && !c.stopped && len(c.workers.held) == 0 && c.finishes.idle() && c.leftLead() &&
		(c.session == nil || c.decides.idle() && c.claims.idle()) {
		c.leave()
	}
}

// leave closes the session, which frees what was not released, and stops.
func (c *Core) leave() {
	if c.leaving {
		return
	}
	c.leaving = true
	var cut []string
	for _, h := range c.sortedHeld() {
		cut = append(cut, h.occ.ID())
	}
	s := c.session
	if s == nil {
		c.stop(cut)
		return
	}
	c.closeSession(s.Session, func() { c.stop(cut) })
}

func (c *Core) stop(cut []string) {
	c.stopped = true
	c.lastHints()
	c.emit(Stopped{Cut: cut})
}
