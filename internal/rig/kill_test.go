//go:build unix

package rig

import (
	"fmt"
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

// F01-F07, F19: processes die at each point in the life of a run, and at any other moment; each is started again under its name.
func TestKilled(t *testing.T) {
	t.Parallel()
	f := newFleet(t, spec{Works: mix()})
	for _, name := range []string{"a", "b", "c"} {
		f.start(name, nil)
	}
	f.ready()
	var queue []fault
	for i := range 8 {
		for range times(5) {
			queue = append(queue, fault{Point: fmt.Sprintf("K%d", i), Nth: 1 + f.rng.IntN(3), Act: kill,
				After: time.Duration(f.rng.Int64N(int64(3 * time.Millisecond)))})
		}
	}
	for range times(20) {
		queue = append(queue, fault{Act: random, After: time.Duration(f.rng.Int64N(int64(time.Second)))})
	}
	f.rng.Shuffle(len(queue), func(i, k int) { queue[i], queue[k] = queue[k], queue[i] })
	f.slay(queue)
	f.ready()
	f.settle(law{})
}

// slay lets processes die, two at a time: one at least lives on.
func (f *fleet) slay(queue []fault) {
	f.Helper()
	condemned := map[*proc]fault{}
	for len(queue) > 0 || len(condemned) > 0 {
		for len(condemned) < 2 && len(queue) > 0 {
			p := f.anyone(condemned)
			condemned[p] = queue[0]
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
