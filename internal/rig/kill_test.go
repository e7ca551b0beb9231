//go:build unix

package rig

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"
)

// mix is jobs that keep three replicas busy: four dues a second without keys, and every fifth second some with.
func mix() []work {
	works := []work{{Name: "keyed", Every: 5 * time.Second, Phase: time.Second, Keys: 24, Takes: 20 * time.Millisecond}}
	for i := range 20 {
		works = append(works, work{Name: fmt.Sprintf("plain-%02d", i), Every: 5 * time.Second,
			Phase: time.Duration(i%5) * time.Second, Takes: 20 * time.Millisecond})
	}
	return works
}

// F01-F07, F19: processes die at each point in the life of a run, and at any other moment; each is started again under
// its name.
func TestKilled(t *testing.T) {
	t.Parallel()
	for _, half := range [][]string{{"K0", "K1", "K2", "K3"}, {"K4", "K5", "K6", "K7"}} {
		t.Run(half[0]+" to "+half[3], func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, spec{Works: mix()})
			f.three()
			var queue []fault
			for _, point := range half {
				for range times(5) {
					queue = append(queue, fault{Point: point, Nth: 1 + f.rng.IntN(3), Act: kill,
						After: time.Duration(f.rng.Int64N(int64(3 * time.Millisecond)))})
				}
			}
			for range times(10) {
				queue = append(queue, fault{Act: random, After: time.Duration(f.rng.Int64N(int64(time.Second)))})
			}
			f.rng.Shuffle(len(queue), func(i, k int) { queue[i], queue[k] = queue[k], queue[i] })
			f.slay(queue)
			f.ready()
			f.settle(law{})
		})
	}
}

// F08: all are killed at once and come back after more than three periods. What is late then was missed, but for the
// latest due of each job, and all of it is on record.
func TestAllKilled(t *testing.T) {
	t.Parallel()
	f := newFleet(t, spec{MissedAfter: 2 * time.Second, Works: []work{
		{Name: "plain", Every: 2 * time.Second, Takes: 20 * time.Millisecond},
		{Name: "other", Every: 2 * time.Second, Phase: time.Second, Takes: 20 * time.Millisecond},
		{Name: "keyed", Every: 2 * time.Second, Keys: 12, Takes: 20 * time.Millisecond},
	}})
	for range times(1) {
		a, b, c := f.three()
		f.await("work", func() bool {
			return f.wrote(a, effect, "") != nil && f.wrote(b, effect, "") != nil && f.wrote(c, effect, "") != nil
		})
		for _, p := range []*proc{a, b, c} {
			f.signal(p, syscall.SIGKILL)
		}
		for _, p := range []*proc{a, b, c} {
			f.dead(p, fault{Act: random})
		}
		f.pass(7 * time.Second)
	}
	f.three()
	j := f.settle(law{missed: true})
	for _, w := range f.base.Works {
		if !slices.ContainsFunc(j.spans, func(s span) bool { return s.job == w.Name && s.count > 0 }) {
			t.Errorf("job %s: nothing was missed", w.Name)
		}
	}
}

// F31: one of 501 keys kills its process, again and again. It fails alone.
func TestPoison(t *testing.T) {
	t.Parallel()
	f := newFleet(t, spec{})
	f.three()
	due := time.Now().Add(4 * time.Second).Truncate(time.Second)
	poison := run{"poisoned", key(123), due.Unix()}
	f.add(work{Name: poison.job, At: due, Keys: 501, Takes: 20 * time.Millisecond, Poison: poison.key})
	deaths := 0
	for {
		var dead *proc
		f.await("the poison to end, or to kill", func() bool {
			for _, p := range f.all {
				if p.ended && !p.meant {
					dead = p
				}
			}
			return dead != nil || f.row(poison).ended
		})
		if dead == nil {
			break
		}
		deaths++
		f.dead(dead, fault{Act: kill})
		f.start(dead.name, nil)
	}
	j := f.settle(law{poison: poison.key})
	if got := j.tally(); got != "500 done, 1 failed" || deaths != 5 {
		t.Errorf("%s, after %d deaths; want 500 done, 1 failed, after 5", got, deaths)
	}
}

// slay lets processes die, two at a time: one at least lives on.
func (f *fleet) slay(queue []fault) {
	f.Helper()
	condemned, began := map[*proc]fault{}, map[*proc]time.Time{}
	for len(queue) > 0 || len(condemned) > 0 {
		for len(condemned) < 2 && len(queue) > 0 {
			p := f.anyone(condemned)
			condemned[p], began[p] = queue[0], time.Now()
			f.condemn(p, queue[0])
			queue = queue[1:]
		}
		var dead *proc
		f.await("one of the condemned to die", func() bool {
			for p := range condemned {
				if p.ended {
					dead = p
				}
			}
			return dead != nil
		})
		f.dead(dead, condemned[dead])
		if took := time.Since(began[dead]); took > 10*time.Second {
			f.Logf("%s of %s came after %v", condemned[dead], dead.name, took.Round(time.Second)) // for people, not a fault
		}
		delete(condemned, dead)
		f.start(dead.name, nil)
	}
}

// anyone is a living process, but none of these.
func (f *fleet) anyone(but map[*proc]fault) *proc {
	f.Helper()
	names := f.names()
	for _, i := range f.rng.Perm(len(names)) {
		p := f.proc(names[i])
		if _, out := but[p]; p != nil && !out {
			return p
		}
	}
	f.Fatal("nobody lives")
	return nil
}

// condemn arms a fault, or kills the process from outside after a while.
func (f *fleet) condemn(p *proc, x fault) {
	f.Helper()
	if x.Act != random {
		f.order(p, order{Arm: &x})
		return
	}
	pid := p.Pid()
	time.AfterFunc(x.After, func() { _ = syscall.Kill(pid, syscall.SIGKILL) }) // its end is awaited
}
