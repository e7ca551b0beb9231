package core

import (
	"errors"
	"strings"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

// stuckAfter is how long a handler may take to return once its context ended.
const stuckAfter = time.Second

// Reasons of a run's end, or of its waiting.
const (
	reasonAbandoned = "abandoned"
	reasonCanceled  = "canceled"
	reasonDeadline  = "deadline"
	reasonExhausted = "exhausted"
	reasonExpired   = "expired"
	reasonHandler   = "handler"
	reasonOvertaken = "overtaken"
	reasonPanic     = "panic"
	reasonPermanent = "permanent"
	reasonStalled   = "stalled"
	reasonTimeout   = "timeout"

	reasonByHand    = "by hand" // the store writes it
	reasonOverlap   = "overlap"
	reasonReleased  = "released"
	reasonRetry     = "retry"
	reasonUnstarted = "unstarted" // released before a handler of it ever started
)

// past is what is known of a run from before it was won here.
type past int

const (
	fresh  past = iota // no handler of it has ever started
	byHand             // a person asked for it, and since then none has
	begun              // a handler of it may have started
)

// pastOf is the past of a run that waits, or is an orphan.
func pastOf(r idempotency.Run) past {
	switch {
	case r.State == idempotency.Running:
		return begun
	case r.Reason == reasonByHand:
		return byHand
	case r.Fence == 0, r.Reason == reasonUnstarted:
		return fresh
	}
	return begun
}

const (
	textAbandoned = "it had started before, and did not end; by CrashAbandon it is not started again"
	textPoison    = "every process that ran it died; it is not started again"
)

// neverStarts says what becomes of a run that was won and is not started.
func (c *Core) neverStarts(h *held) (f idempotency.Finish, no bool) {
	f = idempotency.Finish{Outcome: idempotency.Failed, Attempt: h.occ.Attempt - 1, Reason: reasonAbandoned}
	switch {
	case h.past == begun && h.job.Crash == jobs.CrashAbandon:
		f.Text = textAbandoned
	case c.draining:
		f = c.givingBack(h)
	case h.crashes >= maxCrashes:
		f.Text = textPoison
	case h.startsTooLate(0):
		f.Outcome, f.Reason = idempotency.Skipped, reasonDeadline
	default:
		return f, false
	}
	return f, true
}

// end cancels a handler. Where it does not return, its worker stays taken, but its run does not stay with it: an attempt
// that is over whatever the handler still does is recorded all the same.
func (c *Core) end(h *held, cause error) {
	if h.returned || h.cause != nil {
		return
	}
	if !h.begun {
		c.endAwaiting(h)
		return
	}
	h.cause = cause
	c.emit(Cancel{Handle: h.handle, Cause: cause})
	c.after(stuckAfter, func() { c.stuck(h) })
}

// tellEnd ends a handler because somebody wants its run to end, whatever else it was ended for.
func (c *Core) tellEnd(h *held, mark error) {
	if !h.written && h.mark == nil {
		h.mark = mark
		c.end(h, mark)
	}
}

// stuck reports a handler that ignores its ended context.
func (c *Core) stuck(h *held) {
	if h.returned {
		return
	}
	c.emit(Stuck{Occurrence: h.occ, Cause: h.cause})
	h.text = h.cause.Error() + "; the handler ignores that its context has ended"
	switch {
	case h.mark != nil:
		c.marked(h, h.mark)
	case errors.Is(h.cause, jobs.ErrTimeout):
		c.attempted(h, h.cause, reasonTimeout)
	case errors.Is(h.cause, jobs.ErrStalled):
		c.attempted(h, h.cause, reasonStalled)
	}
}

// ended takes a handler's return.
func (c *Core) ended(e Ended) {
	h := c.workers.held[e.Handle]
	if h == nil || h.returned {
		return
	}
	h.returned, h.took = true, c.now.Mono-h.started
	h.job.load.running--
	c.workers.running--
	c.stopTimer(h.timer)
	c.stopTimer(h.watch)
	h.job.lived, c.workers.turned = c.now.Mono, c.now.Mono
	if h.written { // too late: its end is recorded
		if h.session != nil {
			c.workers.recording++
		}
		c.letGo(h)
		return
	}
	h.text, h.permanent, h.asks = e.Text, e.Permanent, e.Asks
	switch {
	case e.Completed:
		c.completed(h, e.Err)
	case e.Err == nil:
		c.write(h, idempotency.Finish{Outcome: idempotency.Done, Attempt: h.occ.Attempt}, nil)
	case h.mark != nil:
		c.marked(h, e.Err)
	case e.Skipped:
		c.write(h, idempotency.Finish{Outcome: idempotency.Skipped, Attempt: h.occ.Attempt, Reason: reasonHandler, Text: boundText(e.Text, maxText)}, nil)
	case e.Panic:
		c.attempted(h, e.Err, reasonPanic)
	case errors.Is(h.cause, jobs.ErrSessionLost), errors.Is(h.cause, jobs.ErrDraining):
		c.interrupted(h)
	case errors.Is(h.cause, jobs.ErrTimeout):
		c.attempted(h, e.Err, reasonTimeout)
	case errors.Is(h.cause, jobs.ErrStalled):
		c.attempted(h, e.Err, reasonStalled)
	default:
		c.attempted(h, e.Err, reasonRetry)
	}
}

// completed takes the end of a run that is recorded already.
func (c *Core) completed(h *held, err error) {
	h.written = true
	c.workers.recording++
	c.answered(h)
	c.observe(h, idempotency.Finish{Outcome: idempotency.Done}, err)
	c.letGo(h)
}

// marked records the end of a run that was told to end.
func (c *Core) marked(h *held, err error) {
	f := idempotency.Finish{Outcome: idempotency.Failed, Attempt: h.occ.Attempt, Reason: reasonCanceled, Text: h.record(h.text)}
	if !h.begun { // it only awaited the store's time: no attempt was made
		f.Attempt--
	}
	if errors.Is(h.mark, jobs.ErrOvertaken) {
		f.Outcome, f.Reason = idempotency.Skipped, reasonOvertaken
	}
	c.write(h, f, err)
}

// attempted records an attempt that failed: another one follows after a while, or the run has failed for good.
func (c *Core) attempted(h *held, err error, reason string) {
	f := idempotency.Finish{Attempt: h.occ.Attempt, Reason: reason, Text: h.record(h.text)}
	switch {
	case h.permanent:
		f.Outcome, f.Reason = idempotency.Failed, reasonPermanent
	case h.occ.Attempt >= h.job.Retry.Attempts:
		f.Outcome = idempotency.Failed
		if reason == reasonRetry {
			f.Reason = reasonExhausted
		}
	default:
		if h.pause = h.job.Retry.Delay(h.occ.Attempt, c.cfg.Rand.Float64()); h.asks != nil {
			h.pause = *h.asks
		}
		f.Outcome, f.Wake = idempotency.Wait, c.storeNow().Add(h.pause+c.behind()) // never early
	}
	c.write(h, f, err)
}

// interrupted records a run whose handler was ended by no doing of its own, nor of a person's: it is given back, unless it
// must not start twice.
func (c *Core) interrupted(h *held) {
	if h.job.Crash != jobs.CrashAbandon {
		c.write(h, c.givingBack(h), h.cause)
		return
	}
	text := textAbandoned
	if h.text != "" {
		text += "; its handler returned: " + h.text
	}
	c.write(h, idempotency.Finish{Outcome: idempotency.Failed, Attempt: h.occ.Attempt - 1, Reason: reasonAbandoned, Text: h.record(text)}, h.cause)
}

// givingBack is the record of a run that goes on elsewhere as it was: its attempt did not end, and does not count.
func (c *Core) givingBack(h *held) idempotency.Finish {
	f := idempotency.Finish{Outcome: idempotency.Wait, Attempt: h.occ.Attempt - 1, Reason: reasonReleased, Wake: c.storeNow()}
	if !h.begun {
		f.Reason = h.past.unstarted()
	}
	return f
}

// unstarted is the reason with which a run that did not start here waits again: its past is not lost by that.
func (p past) unstarted() string {
	return [...]string{fresh: reasonUnstarted, byHand: reasonByHand, begun: reasonReleased}[p]
}

// givesBack says whether a record lets others go on with a run at once.
func (h *held) givesBack(f idempotency.Finish) bool {
	return f.Outcome == idempotency.Wait && f.Attempt < h.occ.Attempt
}

// maxText bounds what is recorded of an error, maxNote what of that is the last note of progress.
const (
	maxText = 64 << 10
	maxNote = 1 << 10
)

// record is the text to record of an attempt that failed.
func (h *held) record(text string) string {
	if h.note == "" {
		return boundText(text, maxText)
	}
	note := "\nlast progress: " + h.note
	return boundText(text, maxText-len(note)) + note
}

// boundText makes a text fit for every store: bounded, valid UTF-8, without NUL.
func boundText(s string, most int) string {
	const mark = " … (cut)"
	if len(s) > most {
		s = s[:most-len(mark)]
		s = strings.ToValidUTF8(s, "") + mark
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "?"), "\x00", "?")
}
