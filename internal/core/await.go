package core

import (
	"slices"
	"time"
)

// behind is by how much our estimate of the store's time may be behind since the host was suspended, while the monotonic clock stood
// still: by so much has the wall clock gone further since the last confirmed renewal was sent. Or it was set; the next renewal tells.
// It is less than the session is trusted for, and 0 without one.
func (c *Core) behind() time.Duration {
	s := c.session
	if s == nil {
		return 0
	}
	return max(c.now.Wall.Sub(s.sent.Wall)-(c.now.Mono-s.sent.Mono), 0)
}

// await lets a run that may come too late to start wait for the store's time. It keeps its worker and its key meanwhile, so that
// nothing overtakes it, and its place within the job's limit, as a claim does.
func (c *Core) await(h *held) {
	h.job.load.reserved++
	c.workers.awaiting = append(c.workers.awaiting, h)
	if len(c.workers.awaiting) == 1 {
		c.askTime()
	}
}

// askTime renews the session out of turn where runs wait for the store's time.
func (c *Core) askTime() {
	if c.session != nil && len(c.workers.awaiting) > 0 {
		c.renew(c.session)
	}
}

// admitAwaiting judges again the runs that waited for the store's time.
func (c *Core) admitAwaiting() {
	list := c.workers.awaiting
	c.workers.awaiting = nil
	for _, h := range list {
		h.job.load.reserved--
		c.admit(h)
	}
}

// endAllAwaiting gives the runs back that wait for the store's time.
func (c *Core) endAllAwaiting() {
	for _, h := range slices.Clone(c.workers.awaiting) {
		c.endAwaiting(h)
	}
}

// endAwaiting records a run that waited for the store's time and never starts here: it ends as it is told to, or goes on elsewhere.
func (c *Core) endAwaiting(h *held) {
	c.workers.awaiting = slices.DeleteFunc(c.workers.awaiting, func(x *held) bool { return x == h })
	h.job.load.reserved--
	h.returned = true
	if h.mark != nil {
		c.marked(h, nil)
		return
	}
	c.write(h, c.givingBack(h), nil)
}
