package core

import (
	"time"

	"github.com/belfry-go/belfry/jobs"
)

// watchProgress ends a handler that was just started once it has told of no progress for as long as its job allows.
func (c *Core) watchProgress(h *held) {
	if limit := h.job.StallAfter; limit > 0 {
		h.heard = c.now.Mono
		c.checkProgress(h, limit)
	}
}

func (c *Core) checkProgress(h *held, limit time.Duration) {
	left := h.heard + limit - c.now.Mono
	if left <= 0 {
		c.end(h, jobs.ErrStalled)
		return
	}
	h.watch = c.after(left, func() { c.checkProgress(h, limit) })
}

// progressed takes a handler's word that it gets on. What a handler says that should have returned counts for nothing.
func (c *Core) progressed(e Progressed) {
	h := c.workers.held[e.Handle]
	if h == nil || h.returned || h.cause != nil {
		return
	}
	h.heard, h.note = c.now.Mono, boundText(e.Note, maxNote)
	h.job.lived = c.now.Mono
}
