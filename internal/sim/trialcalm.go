package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/belfry-go/belfry/internal/core"
	"github.com/belfry-go/belfry/ring"
)

// calm ends what is under way: all that was done to the world is taken back.
func (x *trial) calm() {
	w := x.w
	x.jammed, x.hangs, x.poisons = -1, 0, nil
	clear(x.cuts)
	clear(x.moods)
	w.mood = 0
	mend := x.dice.IntN(2) == 0
	version := x.dice.IntN(whole)
	for _, j := range w.cfg.Jobs {
		x.resume(j.Name)
	}
	w.Calm()
	for _, r := range w.replicas {
		r.lag, r.mood = 0, 0
		if mend && (r.clock.offset != 0 || r.clock.drift != 0) {
			r.SetClock(0, 0)
		}
		if len(r.Lacks) > 0 || r.Version != version {
			r.Lacks = nil
			r.Change(version)
		}
		r.Restart(time.Second)
	}
	x.right = x.clocksRight()
}

// clocksRight is whether every host's wall clock shows the true time.
func (x *trial) clocksRight() bool {
	for _, r := range x.w.replicas {
		if r.clock.offset != 0 || r.clock.drift != 0 {
			return false
		}
	}
	return true
}

// judge demands of the rest of a calm that nothing but ordinary work happened, since quiet.
func (x *trial) judge(quiet time.Duration) error {
	for _, check := range []func(Stats) error{x.inTime, x.idle, x.agree, x.oneLeads} {
		if err := check(x.w.Stats); err != nil {
			return err
		}
	}
	w := x.w
	w.Oracle.At(w.StoreNow())
	w.Oracle.Told(w.StoreNow().Add(quiet-w.now+second), w.StoreNow().Add(-2*second))
	for _, j := range w.cfg.Jobs {
		if !j.Local && j.Name != sick {
			w.Oracle.AllDone(j.Name, Unix(quiet+w.skew+2*second), Unix(w.now+w.skew-5*second-j.plan(0).Spread))
		}
	}
	if x.right && !x.ahead && w.has(local) {
		w.Oracle.Lone(local, w.job(local).Plans[0].brute(), Unix(quiet+2*second), Unix(w.now-5*second))
	}
	return w.Err()
}

// inTime: I6 of a healthy fleet, and I11: a job that is always sick delays no other.
func (x *trial) inTime(s Stats) error {
	for _, j := range x.w.cfg.Jobs {
		most := second
		if j.plan(0).Spread > 0 {
			most += x.w.cfg.Timing.Sweep // starts that lie close together wait for the last of them
		}
		if late := s.Late[j.Name]; late > most && j.Name != sick && (j.Name != local || x.right) {
			return fmt.Errorf("I6: job %s starts %v late in the calm", j.Name, late)
		}
	}
	return nil
}

func (x *trial) idle(s Stats) error {
	var missed int64
	for _, n := range s.Missed {
		missed += n
	}
	// Nobody but sweeps looks for retries. Each replica's come once a second, which is also when the next in rank acts, so that
	// now and then it is the first to see one.
	hedged := s.Hedged - s.HedgedRetries
	if hedged > 0 || s.Lost > 0 || s.TakenUp > 0 || missed > 0 {
		return fmt.Errorf("I6: in the calm %d claims are hedged, %d sessions lost, %d runs taken up, %d dues missed", hedged, s.Lost, s.TakenUp, missed)
	}
	return nil
}

// agree: I5: every replica serves, and all see the same ones and compute the same owners of them: each by a ring of its own, of
// names in an order of its own.
func (x *trial) agree(Stats) error {
	var names []string
	for _, r := range x.w.replicas {
		names = append(names, r.Name)
	}
	slices.Sort(names)
	var first *ring.Ring
	for i, r := range x.w.replicas {
		if !r.up || r.said.state != core.Serving {
			return fmt.Errorf("I5: in the calm %s does not serve; it says %q", r.Name, r.said.state)
		}
		view := r.view()
		if !slices.Equal(view, names) {
			return fmt.Errorf("I5: in the calm %s sees %v, want %v", r.Name, view, names)
		}
		mine, err := x.w.newRing(slices.Concat(view[i:], view[:i]))
		if err != nil {
			return err
		}
		if first == nil {
			first = mine
		}
		if mine.Fingerprint() != first.Fingerprint() {
			return fmt.Errorf("I5: in the calm %s computes the ring %s, %s another one, %s", r.Name, mine.Fingerprint(), x.w.replicas[0].Name, first.Fingerprint())
		}
		for _, owner := range names {
			if !slices.Equal(mine.Owned(owner), first.Owned(owner)) {
				return fmt.Errorf("I5: in the calm %s and %s do not agree on what %s owns", r.Name, x.w.replicas[0].Name, owner)
			}
		}
	}
	return nil
}

// oneLeads: one replica leads, and this does not change.
func (x *trial) oneLeads(s Stats) error {
	leads, want := 0, 0
	if x.w.has(led) {
		want = 1
	}
	for _, r := range x.w.replicas {
		if r.leads != 0 {
			leads++
		}
	}
	if leads != want || s.Leaders > 0 || s.Termless > 0 {
		return fmt.Errorf("leader: in the calm %d replicas lead, want %d; they saw another one %d times; %d runs of its jobs start elsewhere", leads, want, s.Leaders, s.Termless)
	}
	return nil
}
