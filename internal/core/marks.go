package core

import (
	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

// control takes note of how many commands and marks the store has had: where that has risen, runs of ours may be told
// to end, and entries of efficiency jobs may be paused.
func (c *Core) control(s *session, controls int64) {
	if controls <= s.controls {
		return
	}
	s.controls = controls
	c.readMarks(s)
	for _, j := range c.jobs {
		if j.efficient() {
			c.declare()
			return
		}
	}
}

// readMarks lists our runs until that is answered.
func (c *Core) readMarks(s *session) {
	c.mine(s, func(err error) {
		if err != nil {
			c.after(c.retryPause(), func() {
				if c.session == s {
					c.readMarks(s)
				}
			})
		}
	})
}

// causeOf is why a run that is told to end does so; nil: it is not.
func causeOf(r idempotency.Run) error {
	switch r.Cancel {
	case "":
		return nil
	case idempotency.Overtaken:
		return jobs.ErrOvertaken
	}
	return jobs.ErrCanceled
}

// markedStray ends a run that nobody started and that is told to end.
func markedStray(r idempotency.Run) idempotency.Finish {
	f := idempotency.Finish{ID: r.ID, Fence: r.Fence, Attempt: r.Attempt, Outcome: idempotency.Failed, Reason: reasonCanceled}
	if r.Cancel == idempotency.Overtaken {
		f.Outcome, f.Reason = idempotency.Skipped, reasonOvertaken
	}
	return f
}
