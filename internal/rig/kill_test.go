//go:build unix

package rig

import (
	"fmt"
	"maps"
	"slices"
	"syscall"
	"testing"
	"time"
)

// mix is jobs that keep three replicas busy: four dues a second without keys, and every fifth second some with. A third of
// them write their effects in the transaction that completes their run.
func mix() []work {
	works := []work{{Name: "keyed", Every: 5 * time.Second, Phase: time.Second, Keys: 16, Takes: 20 * time.Millisecond},
		{Name: "keyed-tx", Every: 5 * time.Second, Phase: 3 * time.Second, Keys: 8, Takes: 20 * time.Millisecond, InTx: true}}
	for i := range 20 {
		works = append(works, work{Name: fmt.Sprintf("plain-%02d", i), Every: 5 * time.Second,
			Phase: time.Duration(i%5) * time.Second, Takes: 20 * time.Millisecond, InTx: i%3 == 2})
	}
	return works
}

// points are those in the life of a run at which a process dies by its own hand.
var points = []string{"K0", "K1", "K2", "K3", "K4", "K5", "K6", "K7"}

// T4: F01-F07, F19, on every driver: processes die at each point in the life of a run, and at any other moment; each is
// started again under its name. On servers the way to the server is troubled meanwhile, and the server itself is killed.
func TestKilled(t *testing.T) {
	t.Parallel()
	skipSlow(t)
	c := newCampaign("T4", "kills")
	if *kills > 0 {
		c.long(t, *kills, 180, *lanes, func(*driver) int { return 5 }, func(f *fleet, n int) {
			f.killed(c, deaths(f, points, n/9, n-n/9*len(points)), 3)
		})
	} else {
		c.short(t, map[string]func(f *fleet){
			"sqlite K0 to K3": func(f *fleet) { f.killed(c, deaths(f, points[:4], times(5), times(10)), 2) },
			"sqlite K4 to K7": func(f *fleet) { f.killed(c, deaths(f, points[4:], times(5), times(10)), 2) },
			"server":          func(f *fleet) { f.killed(c, deaths(f, points, times(1), times(2)), 2) },
		})
	}
	c.tell(t)
}

// deaths are so many at each point, and so many at random, in any order.
func deaths(f *fleet, points []string, each, at int) (queue []fault) {
	for _, point := range points {
		for range each {
			queue = append(queue, fault{Point: point, Nth: 1 + f.rng.IntN(3), Act: kill,
				After: time.Duration(f.rng.Int64N(int64(3 * time.Millisecond)))})
		}
	}
	for range at {
		queue = append(queue, fault{Act: random, After: time.Duration(f.rng.Int64N(int64(time.Second)))})
	}
	f.rng.Shuffle(len(queue), func(i, k int) { queue[i], queue[k] = queue[k], queue[i] })
	return queue
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

// slay lets processes die, so many at a time, and starts each again. One at least that is ready lives on.
func (f *fleet) slay(c *campaign, queue []fault, atOnce int) {
	f.Helper()
	troubles := f.troubles(len(queue))
	condemned, began := map[*proc]fault{}, map[*proc]time.Time{}
	for died := 0; len(queue) > 0 || len(condemned) > 0; {
		for len(condemned) < atOnce && len(queue) > 0 {
			p := f.fit(condemned)
			if p == nil {
				break
			}
			condemned[p], began[p] = queue[0], time.Now()
			f.condemn(p, queue[0])
			queue = queue[1:]
		}
		var dead *proc
		f.await("one of the condemned to die, or another to be ready for it", func() bool {
			for p := range condemned {
				if p.ended {
					dead = p
				}
			}
			return dead != nil || len(condemned) < atOnce && len(queue) > 0 && f.fitLocked(condemned) != nil
		})
		if dead == nil {
			continue
		}
		x := condemned[dead]
		f.dead(dead, x)
		c.count(f.place.name, x.Point)
		if took := time.Since(began[dead]); took > 10*time.Second {
			f.Logf("%s of %s came after %v", x, dead.name, took.Round(time.Second)) // for people, not a fault
		}
		delete(condemned, dead)
		s := f.base
		s.Name = dead.name
		f.spawn(s.Name, s)
		if died++; troubles[died] != nil {
			troubles[died]()
		}
	}
	f.troubled.Wait()
}

// fit is a process that is ready to die, but none of these; nil where it would leave none that is ready.
func (f *fleet) fit(but map[*proc]fault) *proc {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fitLocked(but)
}

func (f *fleet) fitLocked(but map[*proc]fault) *proc {
	var list []*proc
	for _, name := range slices.Sorted(maps.Keys(f.live)) {
		p := f.live[name]
		if _, out := but[p]; !out && p.state.Addr != "" && p.state.NotReady == "" {
			list = append(list, p)
		}
	}
	if len(list) < 2 {
		return nil
	}
	return list[f.rng.IntN(len(list))]
}

// killed is the story of a fleet whose processes die, up to its judgement.
func (f *fleet) killed(c *campaign, queue []fault, atOnce int) {
	f.Helper()
	f.slay(c, queue, atOnce)
	f.ready()
	c.judged(f.settle(law{}))
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
