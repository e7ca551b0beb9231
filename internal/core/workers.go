package core

import (
	"slices"
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
)

// workers are the handlers that run here, and what is promised to come.
type workers struct {
	held      map[int64]*held
	byFence   map[int64]*held
	running   int // handlers at work, of all jobs
	reserved  int // for claims under way
	recording int // of held: the handler has returned, the record is not answered

	// known has what became of fences that were let go of: a listing of our session's runs that was sent before is old news about
	// them.
	known map[int64]ended

	// asked has what take-ups were sent of late, and of what past: a stray that was none of them was won by an insert or a decision.
	asked map[idempotency.ID]asked

	turned time.Duration // when a handler returned last; 0: none has

	suspects int                    // held or being taken up
	awaiting []*held                // for the store's time
	queues   map[localKey]*keyQueue // of efficiency runs that wait or run here
}

// held is one run whose worker is taken.
type held struct {
	handle  int64
	job     *job
	occ     jobs.Occurrence
	session *session // nil: an efficiency run
	crashes int
	hedged  bool
	past    past
	alone   bool // it holds its key

	late      time.Duration
	started   time.Duration
	took      time.Duration
	timer     *timer         // of its timeout
	watch     *timer         // of its next check for progress
	heard     time.Duration  // when it began, or told of progress last
	note      string         // of that
	begun     bool           // its handler was started
	cause     error          // why its context was ended
	mark      error          // what it was told to end for, by the store or a newer run of its key
	text      string         // of its error
	permanent bool           // another attempt cannot mend it
	asks      *time.Duration // what its error asks to wait; nil: it does not
	pause     time.Duration  // until the next attempt
	returned  bool
	written   bool // its record is on its way
	answered  bool
	accepted  *idempotency.Finish // the record, once the store has taken it from here
}

// ended is what became of a run that was let go of.
type ended struct {
	at       time.Duration
	accepted *idempotency.Finish // nil: the record was another's or may be its handler's, or is not answered
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
func (c *Core) begin(j *job, r idempotency.Run, before past, hedged bool) {
	w := &c.workers
	c.saw(r.Fence)
	if _, had := w.known[r.Fence]; had || w.byFence[r.Fence] != nil {
		return
	}
	h := &held{
		job: j, occ: c.occurrence(j, r.ID, r.Fence, r.Attempt, r.Payload), session: c.session,
		crashes: r.Crashes, hedged: hedged, past: before, alone: j.holdsKey(),
	}
	h.occ.Term = r.Term
	c.hold(h)
	if h.alone {
		c.backlog.take(h.key())
	}
	w.byFence[r.Fence] = h
	if h.suspect() {
		w.suspects++
	}
	if hedged {
		c.emit(Hedged{h.occ})
	}
	c.admit(h)
}

// admit starts a run that was won, or records why it never starts, or lets it wait until it is known whether it may.
func (c *Core) admit(h *held) {
	h.late = max(c.storeNow().Sub(c.startOf(h.job, h.occ.Key, h.occ.Due)), 0)
	f, no := c.neverStarts(h)
	switch {
	case no:
		h.returned = true
		c.write(h, f, nil)
	case h.startsTooLate(c.behind()):
		c.await(h)
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
	h.begun, h.started = true, c.now.Mono
	h.job.load.began(c.rateTime())
	c.workers.running++
	c.emit(Start{Handle: h.handle, Job: &h.job.Job, Occurrence: h.occ, Late: h.late})
	if h.job.Timeout > 0 {
		h.timer = c.after(h.job.Timeout, func() { c.end(h, jobs.ErrTimeout) })
	}
	c.watchProgress(h)
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
	c.finishes.add(f, func(f idempotency.Finish, a idempotency.FinishAnswer) {
		c.answered(h)
		switch {
		case a == idempotency.Fenced:
			c.emit(Refused{Occurrence: h.occ, Cause: "fenced"})
		case a == idempotency.Completed:
			c.observe(h, idempotency.Finish{Outcome: idempotency.Done}, err)
		default:
			if a == idempotency.Finished || f.Outcome != idempotency.Done { // else the handler may have recorded it, together with its effect
				taken := f
				h.accepted = &taken
			}
			c.observe(h, f, err)
			if h.givesBack(f) {
				c.givenBack(h.occ.Key)
			}
		}
		c.letGo(h)
	}, nil)
}

func (c *Core) observe(h *held, f idempotency.Finish, err error) {
	c.emit(Finished{Occurrence: h.occ, Outcome: f.Outcome, Reason: f.Reason, Late: h.late, Took: h.took, First: h.first(), Err: err})
}

// first says whether a run started here for the first time, and because it was due. What a person asked for with all keys of a
// due may pass for that; see pastOfDue.
func (h *held) first() bool {
	return h.begun && h.past == fresh && h.occ.Attempt == 1 && h.occ.Request == ""
}

// suspect says that processes have died of this run, or beside it.
func (h *held) suspect() bool { return h.crashes >= suspectCrashes }

func (h *held) key() keyOfJob { return keyOfJob{h.occ.Job, h.occ.Key} }

// answered notes that a run is not ours any more, as the store has it.
func (c *Core) answered(h *held) {
	h.answered = true
	if h.session == c.session && h.alone {
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
		c.leftQueue(h)
		return
	}
	w.recording--
	delete(w.byFence, h.occ.Fence)
	w.known[h.occ.Fence] = ended{at: c.now.Mono, accepted: h.accepted}
	if h.suspect() {
		w.suspects--
		c.sweepSoon(0) // others may have waited for this one
	}
}
