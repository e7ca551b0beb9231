package sim

import (
	"errors"
	"time"

	"github.com/belfry-go/belfry/internal/core"
	"github.com/belfry-go/belfry/internal/sim/oracle"
	"github.com/belfry-go/belfry/jobs"
)

// Work is what a handler does.
type Work struct {
	Takes time.Duration // below zero: it never returns by itself
	Err   error
	Panic bool
	Quiet bool // it tells of no progress
	Deaf  bool // it does not heed the end of its context
	Fatal bool // at its end the process dies
}

var errWork = errors.New("work: declined")

// work is a handler at work.
type work struct {
	Work
	handle int64
	occ    jobs.Occurrence
	told   bool // to end
}

func (r *Replica) start(a core.Start) {
	w := r.w
	x := &work{handle: a.Handle, occ: a.Occurrence, Work: Work{Takes: 5 * time.Millisecond}}
	if f := w.job(a.Job.Name).Work; f != nil {
		x.Work = f(r, a.Occurrence)
	}
	r.works[a.Handle] = x
	w.Stats.Started++
	if a.Job.Placement == jobs.Leader && a.Occurrence.Term == 0 {
		w.Stats.Termless++
	}
	id := idOf(a.Occurrence)
	if a.Occurrence.Attempt == 1 {
		start, now := w.Oracle.Start(id, a.Job.Spread), w.StoreNow()
		if a.Occurrence.Fence == 0 { // an efficiency job's, which knows no store
			now = epoch.Add(w.now)
		}
		w.Stats.Late[id.Job] = max(w.Stats.Late[id.Job], now.Sub(start))
	}
	w.loss.started(r, a)
	w.noteRun(r.Name, "handler starts", id, "", a.Occurrence.Fence, int64(a.Occurrence.Attempt))
	switch {
	case w.unjudged:
	case a.Occurrence.Fence == 0: // an efficiency job's
		if a.Occurrence.Attempt == 1 {
			w.Oracle.Fired(id)
		}
	default:
		w.Oracle.At(w.StoreNow())
		w.Oracle.Started(id, a.Occurrence.Fence, a.Occurrence.Attempt)
		w.Oracle.ContextBegins(id, a.Occurrence.Fence)
	}
	if a.Job.StallAfter > 0 && !x.Quiet {
		r.progress(x, a.Job.StallAfter/3)
	}
	if x.Takes < 0 {
		return
	}
	r.after(x.Takes, func() {
		if r.works[x.handle] != x {
			return
		}
		if x.Fatal {
			w.note(r.Name, "dies of", id.String(), a.Occurrence.Fence)
			w.Stats.Killed++
			r.gone()
			r.Restart(w.between(200*time.Millisecond, 1500*time.Millisecond))
			return
		}
		r.returns(x, x.Err, x.Panic)
	})
}

// progress tells that a handler gets on, again and again.
func (r *Replica) progress(x *work, each time.Duration) {
	r.after(each, func() {
		if r.works[x.handle] == x {
			r.tell(core.Progressed{Handle: x.handle, Note: "at it"})
			if r.up {
				r.progress(x, each)
			}
		}
	})
}

func (r *Replica) cancel(a core.Cancel) {
	x := r.works[a.Handle]
	if x == nil {
		r.w.Oracle.Returned(r.back[a.Handle], EndOf(a.Cause)) // it came back too late: the loop took something else first
		return
	}
	x.told = true
	r.w.note(r.Name, "handler canceled", idOf(x.occ).String(), x.occ.Fence, a.Cause.Error())
	r.w.Oracle.Returned(x.occ.Fence, EndOf(a.Cause))
	r.contextEnds(x, causes[a.Cause])
	if x.Deaf {
		return
	}
	r.after(r.w.between(time.Millisecond, 20*time.Millisecond), func() {
		if r.works[x.handle] == x {
			r.returns(x, a.Cause, false)
		}
	})
}

// EndOf is what the end of a handler's context means for its attempt: that of one which was told to end is the record's.
func EndOf(cause error) oracle.End {
	switch {
	case errors.Is(cause, jobs.ErrTimeout), errors.Is(cause, jobs.ErrStalled):
		return oracle.Overdue
	case errors.Is(cause, jobs.ErrSessionLost), errors.Is(cause, jobs.ErrDraining):
		return oracle.Interrupted
	}
	return 0
}

// ReturnOf is what a handler's return means for its attempt.
func ReturnOf(err error) oracle.End {
	if _, skips := jobs.SkipReason(err); skips {
		return oracle.Skip
	}
	if err != nil {
		return oracle.Error
	}
	return oracle.Nil
}

// causes are words for why contexts end that the oracle looks for.
var causes = map[error]string{jobs.ErrCanceled: "canceled", jobs.ErrOvertaken: "overtaken"}

func (r *Replica) contextEnds(x *work, cause string) {
	r.tellOracle(func(o *oracle.Oracle) { o.ContextEnds(x.occ.Fence, cause) })
}

func (r *Replica) returns(x *work, err error, panicked bool) {
	delete(r.works, x.handle)
	r.back[x.handle] = x.occ.Fence
	r.contextEnds(x, "")
	if panicked {
		err = errWork // whatever it was to return, it did not
		r.w.Oracle.Returned(x.occ.Fence, oracle.Panic)
	} else {
		r.w.Oracle.Returned(x.occ.Fence, ReturnOf(err))
	}
	text := "nil"
	if err != nil {
		text = err.Error()
	}
	r.w.noteRun(r.Name, "handler returns", idOf(x.occ), text, x.occ.Fence)
	e := core.Return(x.handle, err)
	e.Panic = panicked
	r.tell(e)
}
