package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/fleet"
)

// errSpread ends a wait. Where processors are short, members take each other for dead, and that costs more of them.
var errSpread = errors.New("bench: the members do not come to agree; give fewer --members or a slower --profile, or leave the machine to the benchmark")

// views are what the living members see.
type views struct {
	fleet   *fleet.Fleet
	most    time.Duration          // for news to reach all
	last    map[string]fleet.Event // by member: its last Owners
	leaving string                 // who is being taken away, or put back
	lost    int                    // how often a member lost another that was not leaving
}

// note takes each event of the fleet.
func (v *views) note(e fleet.Event) {
	if !v.current(e) {
		return
	}
	if was := v.last[e.Replica]; was.Pid == e.Pid {
		for _, name := range was.Names {
			if name != v.leaving && !sees(e, name) {
				v.lost++
			}
		}
	}
	v.last[e.Replica] = e
}

// current reports whether e is the view of a living member, not of one that had its name before.
func (v *views) current(e fleet.Event) bool {
	return e.Kind == fleet.Owners && e.Pid == v.fleet.Pid(e.Replica)
}

// sees reports whether name is among the owners of a view.
func sees(e fleet.Event, name string) bool {
	_, ok := slices.BinarySearch(e.Names, name)
	return ok
}

// wait lets d go by.
func (v *views) wait(ctx context.Context, d time.Duration) error {
	return wait(ctx, v.fleet, d, v.note)
}

// await hands events to see until done is true.
func (v *views) await(ctx context.Context, see func(fleet.Event), done func() bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, v.most, errSpread)
	defer cancel()
	return v.fleet.Await(ctx, func(e fleet.Event) {
		v.note(e)
		see(e)
	}, done)
}

// until waits until all members but one see what match tells, and returns when the last of them did. Those that live
// now are asked.
func (v *views) until(ctx context.Context, but string, match func(fleet.Event) bool) (time.Time, error) {
	s := v.spread(but, match)
	err := v.await(ctx, s.note, s.all)
	if errors.Is(err, errSpread) {
		err = fmt.Errorf("%w (%d of %d do)", err, len(s.at), s.want)
	}
	return s.last(), err
}

// spread follows how news reaches the members.
type spread struct {
	views *views
	but   string
	match func(fleet.Event) bool
	want  int
	at    map[string]time.Time // by member: since when it has seen it
}

// spread starts with what is known: a member may have seen it before.
func (v *views) spread(but string, match func(fleet.Event) bool) *spread {
	s := &spread{views: v, but: but, match: match, at: map[string]time.Time{}}
	for _, name := range v.fleet.Live() {
		if name != but {
			s.want++
		}
	}
	for _, e := range v.last {
		s.note(e)
	}
	return s
}

func (s *spread) note(e fleet.Event) {
	if !s.views.current(e) || e.Replica == s.but {
		return
	}
	if !s.match(e) {
		delete(s.at, e.Replica)
	} else if _, ok := s.at[e.Replica]; !ok {
		s.at[e.Replica] = e.At
	}
}

func (s *spread) all() bool { return len(s.at) == s.want }

// last is when the last of them saw it.
func (s *spread) last() time.Time {
	var last time.Time
	for _, at := range s.at {
		if at.After(last) {
			last = at
		}
	}
	return last
}
