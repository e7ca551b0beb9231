package scheduler

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/belfry-go/belfry/internal/core"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/ring"
)

// watchRing turns each list of owners into a ring, beside the loop: a ring of
// many members takes a while to build.
func (r *runner) watchRing() {
	tick, stop := r.missingTicks()
	defer stop()
	var before *ring.Ring
	var members core.MissingChanged
	for {
		owners, changed := r.cfg.Members.Watch()
		r.hearFences()
		members = r.hearMissing(members) // before the ring: with that we may own what is theirs
		now := r.buildRing(owners)
		r.mail.post(core.RingChanged{Ring: now})
		r.observer.moved(before, now)
		before = now
		for waits := true; waits; {
			select {
			case <-changed:
				waits = false
			case <-tick:
				members = r.hearMissing(members)
			case <-r.base.Done():
				return
			}
		}
	}
}

func (r *runner) buildRing(owners []string) *ring.Ring {
	if len(owners) == 0 {
		return nil
	}
	built, err := ring.New(owners, r.cfg.Ring)
	if err != nil {
		r.log.Error("cannot build a ring of these members; this replica owns nothing until they change", "members", len(owners), "err", err)
		return nil
	}
	r.log.Info("ring", "members", built.Members(), "owned", len(built.Owned(r.cfg.Members.Self())), "partitions", built.Partitions())
	return built
}

// tell leaves the newest announcement for the announcer; an older one that was not told yet is void.
func (r *runner) tell(a core.Announce) {
	select {
	case <-r.states:
	default:
	}
	r.states <- a
}

// announceWithin bounds one announcement, and announcePause the wait before it is tried again.
const (
	announceWithin = 5 * time.Second
	announcePause  = time.Second
)

// announce tells the others each state, until the last is told.
func (r *runner) announce() {
	defer close(r.told)
	a, more := <-r.states
	for more {
		a, more = r.announceOne(a)
	}
}

// announceOne tells the others one state until they know it, and returns the next one. As soon as that is there, nobody
// waits for this one any more: neither for gossip to have spread it, nor to try it again. But the last one is waited
// for: then there is no next one, and more is false.
func (r *runner) announceOne(a core.Announce) (next core.Announce, more bool) {
	for {
		ctx, cancel := context.WithTimeout(r.base, announceWithin)
		done := make(chan error, 1)
		go func() { done <- r.cfg.Members.Announce(ctx, a.State, r.s.layout, a.Reason, facts(a)) }()
		var err error
		over := false
		select {
		case err = <-done:
		case next, more = <-r.states:
			if over = true; more {
				cancel()
			}
			err = <-done
		}
		cancel()
		if err != nil && !more {
			r.log.Warn("announcing failed; it is tried again unless the replica has stopped", "state", a.State, "err", err)
		}
		if over {
			return next, more
		}
		var again <-chan time.Time
		if err != nil {
			again = time.After(announcePause)
		}
		select {
		case next, more = <-r.states:
			return next, more
		case <-again:
		}
	}
}

// storeFact is the name under which the members learn which store a replica works with, so that they can tell one
// that was given another one than the rest; fenceFact that of the highest fence that it has seen there. backFact is
// there where it has seen the store rolled back behind that.
const (
	storeFact = "store"
	fenceFact = "fence"
	backFact  = "rolled-back"
)

func facts(a core.Announce) map[string]string {
	f := map[string]string{zonesFact: jobs.ZoneVersion()}
	if a.Store == "" {
		return f
	}
	f[storeFact], f[fenceFact] = a.Store, strconv.FormatInt(a.Fence, 10)
	if a.RolledBack {
		f[backFact] = "yes"
	}
	return f
}

// hearFences tells the core what the members have seen of which store.
func (r *runner) hearFences() {
	e := core.Heard{Fences: map[string]int64{}, RolledBack: map[string]bool{}}
	for _, f := range r.cfg.Members.Facts() {
		store := f[storeFact]
		if n, err := strconv.ParseInt(f[fenceFact], 10, 64); err == nil && store != "" {
			e.Fences[store] = max(e.Fences[store], n)
			if f[backFact] != "" {
				e.RolledBack[store] = true
			}
		}
	}
	if len(e.Fences) > 0 {
		r.mail.post(e)
	}
}

// errOverruled is what Ready says, with the members' reason as of then, where this replica would serve and they do not
// let it.
var errOverruled = errors.New("scheduler: not ready: the members do not count this replica as an owner")

// report keeps what Ready says.
func (r *runner) report() {
	var err error
	switch {
	case r.state.State == "":
		err = errors.New("scheduler: not ready: joining: waiting for the store to open a session and to take this replica's jobs")
	case r.state.State != core.Serving:
		err = fmt.Errorf("scheduler: not ready: %s: %s", r.state.State, r.state.Reason)
	case !r.session:
		err = errors.New("scheduler: not ready: the session was lost; a new one is being opened")
	case !r.inRing:
		err = errOverruled
	}
	r.s.setReady(err)
}

// why asks the members, where they can tell.
func (s *Scheduler) why() string {
	if m, ok := s.cfg.Members.(Explained); ok {
		if why := m.Reason(); why != "" {
			return ": " + why
		}
	}
	return ""
}
