package scheduler

import (
	"context"
	"slices"
	"time"

	"github.com/belfry-go/belfry/internal/core"
	"github.com/belfry-go/belfry/jobs"
)

// leading is what this replica knows of who leads.
type leading struct {
	term   *term     // ours, whose roles were begun; nil: none
	mine   bool      // this replica leads
	needed bool      // there is a job or a role for a leader
	nobody time.Time // since when nobody has led, as far as this replica has seen; zero: somebody does
	warned bool      // that this lasts
}

// lead begins the roles of a term, or ends them and says when they have ended.
func (r *runner) lead(number int64) {
	if number == 0 {
		r.yield()
		return
	}
	r.endRoles()
	t := r.candidacy.told
	if r.cfg.Elector == nil {
		t = newTerm(r.base, number, r.lapsed)
	}
	if t != nil { // else it is over already
		r.leading.term = t
		r.roles.begin(t)
	}
}

// lapsed says that the session cannot be believed in any more, as of now and of the last step. It may be called from any goroutine.
func (r *runner) lapsed() bool {
	until := r.trusted.Load()
	return until != nil && until.Reached(r.now())
}

func (r *runner) yield() {
	t := r.endRoles()
	if t == nil {
		r.mail.post(core.Yielded{})
		return
	}
	r.ours.Go(func() {
		select {
		case <-t.quiet: // which may be long after the core has ceased to wait for it
			r.mail.post(core.Yielded{})
		case <-r.base.Done():
		}
	})
}

// endRoles ends the term at hand, if there is one.
func (r *runner) endRoles() *term {
	t := r.leading.term
	if t != nil {
		r.leading.term = nil
		r.roles.end(t, ErrDeposed)
	}
	return t
}

// observeLeader tells of a change of who leads.
func (r *runner) observeLeader(a core.Led) {
	l := &r.leading
	l.nobody, l.warned = time.Time{}, false
	led := l.mine
	l.mine = a.Mine
	log := r.log.With("term", a.Term)
	switch {
	case a.Mine:
		log.Info("this replica leads", "since", a.Since, "why", a.Why)
	case a.Until.IsZero():
		log.Info("another replica leads", "leader", a.Replica, "since", a.Since, "why", a.Why)
	case led: // somebody else may lead already
		l.nobody = time.Now()
		log.Info("this replica leads no more", "until", a.Until, "why", a.Why)
	default:
		l.nobody = time.Now()
		log.Info("nobody leads", "last", a.Replica, "until", a.Until, "why", a.Why)
	}
	notify(r.observer, func(h Hooks) func(context.Context, Led) { return h.Led }, Led(a))
}

// needLeader notes whether there is anything for a leader.
func (r *runner) needLeader(e core.JobsChanged) {
	l := &r.leading
	before := l.needed
	l.needed = e.Roles || slices.ContainsFunc(e.Jobs, func(j jobs.Job) bool { return j.Placement == jobs.Leader })
	if l.needed && !before {
		l.nobody, l.warned = time.Now(), false // until we are told otherwise
	}
}

// warnLeaderless warns once where nobody has led for longer than a new leader needs after one that died. Without a store nobody
// knows that of others.
func (r *runner) warnLeaderless() {
	l := &r.leading
	if l.nobody.IsZero() || l.warned || !l.needed || r.cfg.Store == nil || r.state.State == core.Draining || time.Since(l.nobody) < r.cfg.Lease {
		return
	}
	l.warned = true
	r.log.Warn("nobody has led for long; roles of the leader do not run, and its jobs wait, unless HandOverAfter hands them over", "for", time.Since(l.nobody))
}
