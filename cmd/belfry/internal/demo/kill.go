package demo

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/belfry-go/belfry/ring"
)

// kill is one SIGKILL.
type kill struct {
	name     string
	pid      int
	at       time.Time
	ring     *ring.Ring    // the last that all agreed on before it
	handOver time.Duration // see noticeHandOver; 0: not yet
	again    bool          // started again
}

// secondNight is when replicas are killed.
const secondNight = 1

// killOne kills a replica in the second night, each time when a further part of the night's customers has been
// charged: the one that was killed least, and of these the one that has charged most. Only one that has charged
// somebody is killed, so that it dies in the middle of its work.
func (w *show) killOne(now time.Time) {
	done := len(w.kills)
	if done >= w.o.Kills || w.begun <= secondNight || w.ring == nil {
		return
	}
	night := w.tally.nights[secondNight]
	if night.paid*(w.o.Kills+2) < w.o.Customers*(done+1) {
		return
	}
	name := w.victim()
	if name == "" {
		return
	}
	k := &kill{name: name, ring: w.ring, at: now}
	k.pid = w.fleet.Kill(name)
	w.kills = append(w.kills, k)
	w.screen.line(red, "kill -9", "%s (process %d), which has charged %s this night", name, k.pid, plural(night.byProcess[k.pid], "customer"))
}

func (w *show) victim() string {
	charged := w.tally.nights[secondNight].byProcess
	live := slices.DeleteFunc(w.fleet.Live(), func(name string) bool { return charged[w.fleet.Pid(name)] == 0 })
	if len(live) == 0 {
		return ""
	}
	return slices.MinFunc(live, func(a, b string) int {
		return cmp.Or(cmp.Compare(w.killed(a), w.killed(b)), cmp.Compare(charged[w.fleet.Pid(b)], charged[w.fleet.Pid(a)]))
	})
}

func (w *show) killed(name string) (n int) {
	for _, k := range w.kills {
		if k.name == name {
			n++
		}
	}
	return n
}

// down are the kills whose replica was not started again yet.
func (w *show) down() []*kill {
	return slices.DeleteFunc(slices.Clone(w.kills), func(k *kill) bool { return k.again })
}

// absence is how long a killed replica stays away: long enough to see the others take over, unless they are all to
// be killed.
func (w *show) absence() time.Duration {
	if w.o.Kills >= w.o.Replicas {
		return 500 * time.Millisecond
	}
	return 3 * time.Second
}

// restart starts the killed again, each under its old name.
func (w *show) restart(now time.Time) error {
	for _, k := range w.down() {
		if now.Sub(k.at) < w.absence() {
			continue
		}
		pid, err := w.fleet.Start(k.name)
		if err != nil {
			return err
		}
		k.again = true
		w.screen.line("", k.name, "started again as process %d", pid)
	}
	return nil
}

// noticeHandOver looks for the hand-over: the time from a kill to the first charge, by another process, of a
// customer that the killed one owned, in a call that arrived at the provider after the kill. The customer may be one
// that it had not begun, which moves with the ring, or one that it had claimed, which is taken up.
func (w *show) noticeHandOver(c call) {
	for _, k := range w.kills {
		if k.handOver > 0 || c.Pid == k.pid || !c.Arrived.After(k.at) || k.ring.Owner(c.Customer) != k.name {
			continue
		}
		k.handOver = c.At.Sub(k.at)
		w.screen.line("", "hand-over", "%s charges %s, which %s owned: %.1f s after the kill", c.Replica, c.Customer, k.name, k.handOver.Seconds())
	}
}

func names(m map[string]int) []string { return slices.Sorted(maps.Keys(m)) }
