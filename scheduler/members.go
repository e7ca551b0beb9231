package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belfry-go/belfry/internal/core"
	"github.com/belfry-go/belfry/ring"
)

// watchRing turns each list of owners into a ring, beside the loop: a ring of
// many members takes a while to build.
func (r *runner) watchRing() {
	var before *ring.Ring
	for {
		owners, changed := r.cfg.Members.Watch()
		now := r.buildRing(owners)
		r.mail.post(core.RingChanged{Ring: now})
		r.observer.moved(before, now)
		before = now
		select {
		case <-changed:
		case <-r.base.Done():
			return
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

// announce tells the others the newest state, until it is told.
func (r *runner) announce() {
	defer close(r.told)
	var a core.Announce
	var retry <-chan time.Time
	for {
		select {
		case next, more := <-r.states:
			if !more {
				return
			}
			a = next
		case <-retry:
		}
		ctx, cancel := context.WithTimeout(r.base, announceWithin)
		err := r.cfg.Members.Announce(ctx, a.State, r.s.layout, a.Reason, nil)
		cancel()
		retry = nil
		if err != nil {
			r.log.Warn("announcing failed; it is tried again", "state", a.State, "err", err)
			retry = time.After(announcePause)
		}
	}
}

// report keeps what Ready says.
func (r *runner) report() {
	var err error
	switch {
	case r.state.State == "":
		err = errors.New("scheduler: not ready: joining: no session in the store yet")
	case r.state.State != core.Serving && r.state.Reason != "":
		err = fmt.Errorf("scheduler: not ready: %s: %s", r.state.State, r.state.Reason)
	case r.state.State != core.Serving:
		err = fmt.Errorf("scheduler: not ready: %s", r.state.State)
	case !r.session:
		err = errors.New("scheduler: not ready: the session was lost; a new one is being opened")
	case !r.inRing:
		err = fmt.Errorf("scheduler: not ready: the members do not count this replica as an owner%s", r.why())
	}
	r.s.setReady(err)
}

// why asks the members, where they can tell.
func (r *runner) why() string {
	if m, ok := r.cfg.Members.(Explained); ok && m.Reason() != "" {
		return ": " + m.Reason()
	}
	return ""
}
