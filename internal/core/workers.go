package core

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

const (
	// maxCrashes is how often a run's holders may die before it is failed, not started again.
	maxCrashes = 5

	// suspectCrashes makes a run a suspect: a replica holds one suspect at most, so that a key which kills its process
	// dies alone. The limits assume one or two such keys at a time.
	suspectCrashes = 2

	// stuckAfter is how long a handler may take to return once its context ended.
	stuckAfter = time.Second
)

// Reasons of a run's end.
const (
	reasonAbandoned = "abandoned"
	reasonExhausted = "exhausted"
	reasonPermanent = "permanent"
	reasonPanic     = "panic"
	reasonTimeout   = "timeout"
	reasonReleased  = "released"
	reasonRetry     = "retry"
	reasonOverlap   = "overlap"
	reasonExpired   = "expired"
)

// workers are the handlers that run here, and what is promised to come.
type workers struct {
	held      map[int64]*held
	byFence   map[int64]*held
	reserved  int // for claims under way
	recording int // of held: the handler has returned, the record is not answered

	// known has when fences were let go of: a listing of our session's runs that was sent before is old news about
	// them.
	known map[int64]time.Duration

	turned time.Duration // when a handler returned last; 0: none has

	suspects  int               // held or being taken up
	localKeys map[localKey]bool // of efficiency runs that wait or run here
}

// held is one run whose worker is taken.
type held struct {
	handle  int64
	job     *job
	occ     jobs.Occurrence
	session *session // nil: an efficiency run
	suspect bool
	hedged  bool

	late      time.Duration
	started   time.Duration
	took      time.Duration
	timer     *timer // of its timeout
	cause     error  // why its context was ended
	text      string // of its error
	permanent bool   // another attempt cannot mend it
	returned  bool
	written   bool // its record is on its way
	answered  bool
}

// free is how many workers are.
func (w *workers) free(c *Core) int {
	return max(c.cfg.Concurrency-len(w.held)-w.reserved, 0)
}

// freeLocal is how many workers are free for efficiency runs: those too whose
// run has ended and only waits for the store, which such a run never does.
func (w *workers) freeLocal(c *Core) int {
	return max(c.cfg.Concurrency-len(w.held)+w.recording-w.reserved, 0)
}

func (c *Core) occurrence(j *job, id idempotency.ID, fence int64, attempts int, payload []byte) jobs.Occurrence {
	if payload == nil {
		payload = j.Payload
	}
	return jobs.Occurrence{
		Namespace: c.cfg.Namespace, Job: id.Job, Key: id.Key, Due: id.Due, Request: id.Request,
		Attempt: attempts + 1, Fence: fence, Payload: payload,
	}
}

// begin takes a worker for a run that the store says is ours, and starts it. A
// fence begins once: a late answer of a repeated call is not a second start.
func (c *Core) begin(j *job, r idempotency.Run, hedged bool) {
	w := &c.workers
	c.saw(r.Fence)
	if _, had := w.known[r.Fence]; had || w.byFence[r.Fence] != nil {
		return
	}
	h := &held{
		job: j, occ: c.occurrence(j, r.ID, r.Fence, r.Attempt, r.Payload), session: c.session,
		suspect: r.Crashes >= suspectCrashes, hedged: hedged,
		late: max(c.storeNow().Sub(c.startOf(j, r.ID.Key, r.ID.Due)), 0),
	}
	c.hold(h)
	c.backlog.take(h.key())
	w.byFence[r.Fence] = h
	if h.suspect {
		w.suspects++
	}
	if hedged {
		c.emit(Hedged{h.occ})
	}
	switch {
	case c.draining:
		h.returned = true
		c.release(h)
	case r.Crashes >= maxCrashes:
		h.returned = true
		c.write(h, idempotency.Finish{Outcome: idempotency.Failed, Attempt: r.Attempt, Reason: reasonAbandoned,
			Text: "every process that ran it died; it is not started again"}, nil)
	default:
		c.start(h)
	}
}

func (c *Core) hold(h *held) {
	c.seq++
	h.handle, h.started = c.seq, c.now.Mono
	h.job.lived, h.job.began = c.now.Mono, true
	c.workers.held[h.handle] = h
}

func (c *Core) start(h *held) {
	h.job.load.began(c.rateTime())
	c.emit(Start{Handle: h.handle, Job: &h.job.Job, Occurrence: h.occ, Late: h.late})
	if h.job.Timeout > 0 {
		h.timer = c.after(h.job.Timeout, func() { c.end(h, jobs.ErrTimeout) })
	}
}

// end cancels a handler. Where it does not return, its worker stays taken, but
// its run does not stay with it: a timed-out attempt is recorded all the same.
func (c *Core) end(h *held, cause error) {
	if h.returned || h.cause != nil {
		return
	}
	h.cause = cause
	c.emit(Cancel{Handle: h.handle, Cause: cause})
	c.after(stuckAfter, func() {
		if h.returned {
			return
		}
		c.emit(Stuck{Occurrence: h.occ, Cause: cause})
		if errors.Is(cause, jobs.ErrTimeout) {
			h.text = cause.Error() + "; the handler ignores that its context has ended"
			c.attempted(h, cause, reasonTimeout)
		}
	})
}

// cancelSession ends the handlers of a lost session, oldest first.
func (c *Core) cancelSession(s *session) {
	for _, h := range c.sortedHeld() {
		if h.session == s && !h.written {
			c.end(h, jobs.ErrSessionLost)
		}
	}
}

func (c *Core) sortedHeld() []*held {
	list := make([]*held, 0, len(c.workers.held))
	for _, h := range c.workers.held {
		list = append(list, h)
	}
	slices.SortFunc(list, func(a, b *held) int { return int(a.handle - b.handle) })
	return list
}

// ended takes a handler's return.
func (c *Core) ended(e Ended) {
	h := c.workers.held[e.Handle]
	if h == nil || h.returned {
		return
	}
	h.returned, h.took = true, c.now.Mono-h.started
	h.job.load.running--
	h.text, h.permanent = e.Text, e.Permanent
	c.stopTimer(h.timer)
	h.job.lived, c.workers.turned = c.now.Mono, c.now.Mono
	switch {
	case h.written: // too late: its timeout is recorded
		if h.session != nil {
			c.workers.recording++
		}
		c.letGo(h)
	case e.Completed:
		c.completed(h, e.Err)
	case e.Err == nil:
		c.write(h, idempotency.Finish{Outcome: idempotency.Done, Attempt: h.occ.Attempt}, nil)
	case e.Panic:
		c.attempted(h, e.Err, reasonPanic)
	case errors.Is(h.cause, jobs.ErrSessionLost), errors.Is(h.cause, jobs.ErrDraining):
		c.release(h)
	case errors.Is(h.cause, jobs.ErrTimeout):
		c.attempted(h, e.Err, reasonTimeout)
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

// attempted records an attempt that failed: another one follows after a while, or the run has failed for good.
func (c *Core) attempted(h *held, err error, reason string) {
	f := idempotency.Finish{Attempt: h.occ.Attempt, Reason: reason, Text: boundText(h.text)}
	switch {
	case h.permanent:
		f.Outcome, f.Reason = idempotency.Failed, reasonPermanent
	case h.occ.Attempt >= h.job.Retry.Attempts:
		f.Outcome = idempotency.Failed
		if reason == reasonRetry {
			f.Reason = reasonExhausted
		}
	default:
		f.Outcome = idempotency.Wait
		f.Wake = c.storeNow().Add(h.job.Retry.Delay(h.occ.Attempt, c.cfg.Rand.Float64()))
	}
	c.write(h, f, err)
}

// maxText bounds what is recorded of an error.
const maxText = 64 << 10

// boundText makes a text fit for every store: bounded, valid UTF-8, without NUL.
func boundText(s string) string {
	const mark = " … (cut)"
	if len(s) > maxText {
		s = s[:maxText-len(mark)]
		s = strings.ToValidUTF8(s, "") + mark
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "?"), "\x00", "?")
}

// release gives a run back as it was: its attempt did not end, and does not count.
func (c *Core) release(h *held) {
	c.write(h, idempotency.Finish{Outcome: idempotency.Wait, Attempt: h.occ.Attempt - 1, Reason: reasonReleased, Wake: c.storeNow()}, h.cause)
}

// write records how a run went on. What is on its way is never replaced by something else.
func (c *Core) write(h *held, f idempotency.Finish, err error) {
	h.written = true
	if h.returned && h.session != nil {
		c.workers.recording++
	}
	f.ID = idempotency.ID{Job: h.occ.Job, Key: h.occ.Key, Request: h.occ.Request, Due: h.occ.Due}
	f.Fence = h.occ.Fence
	if h.session == nil {
		c.wroteLocal(h, f, err)
		return
	}
	c.finishes.add(f, func(a idempotency.FinishAnswer) {
		c.answered(h)
		switch {
		case a == idempotency.Fenced:
			c.emit(Refused{Occurrence: h.occ, Cause: "fenced"})
		case a == idempotency.Completed:
			c.observe(h, idempotency.Finish{Outcome: idempotency.Done}, err)
		default:
			c.observe(h, f, err)
			if f.Reason == reasonReleased {
				c.givenBack(h.occ.Key)
			}
		}
		c.letGo(h)
	}, nil)
}

func (c *Core) observe(h *held, f idempotency.Finish, err error) {
	c.emit(Finished{Occurrence: h.occ, Outcome: f.Outcome, Reason: f.Reason, Late: h.late, Took: h.took, Err: err})
}

func (h *held) key() keyOfJob { return keyOfJob{h.occ.Job, h.occ.Key} }

// answered notes that a run is not ours any more, as the store has it.
func (c *Core) answered(h *held) {
	h.answered = true
	if h.session == c.session {
		c.backlog.free(h.key())
	}
}

// letGo frees a run's worker once its handler has returned and its record is answered.
func (c *Core) letGo(h *held) {
	if !h.returned || !h.answered {
		return
	}
	w := &c.workers
	delete(w.held, h.handle)
	if h.session == nil {
		delete(w.localKeys, localKey{h.occ.Job, h.occ.Key})
		return
	}
	w.recording--
	delete(w.byFence, h.occ.Fence)
	w.known[h.occ.Fence] = c.now.Mono
	if h.suspect {
		w.suspects--
		c.sweepSoon(0) // others may have waited for this one
	}
}
