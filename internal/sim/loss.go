package sim

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/belfry-go/belfry/internal/core"
	"github.com/belfry-go/belfry/internal/sim/oracle"
)

// loss judges what replicas make of a store that forgets. It keeps an account of its own of what each process was told of the
// store's numbers: what its opening, its renewals and its runs say. A process that asked for a session, or for its renewal, and
// is answered with less than it had been told by then, or by another store, has been shown the loss; so has one that hears of it from
// another. Numbers that lie below that for a moment only, in which nobody asks, show nothing: the store's contract has no more to say.
type loss struct {
	w      *World
	known  map[string]*known // by boot
	asked  map[*core.Call]int64
	forget time.Duration // when the store forgot; 0: not yet
	back   time.Duration // how much
	kept   bool          // it has forgotten no number
	quiet  time.Duration // when all that befell replicas is over

	first time.Duration // when the first replica that lived on was shown the loss; 0: none was
	last  map[lane]int64
	local map[int64]int // starts of the efficiency job, by due
	says  int           // how many replicas have said that the store forgot
}

// lane is whose fences rise.
type lane struct{ job, key string }

// known is what a process was told.
type known struct {
	store   string        // which store it began with
	highest int64         // number of it
	peers   int64         // number of the world's first store that others have told of
	shown   time.Duration // when it was shown that the store forgot; 0: it was not
	said    int           // how often it said so
}

// heeds is how long a loop may be busy with something else when a word comes.
const heeds = 5 * time.Millisecond

// tells is how long it may take from one replica's knowing until all do that reach gossip and the store: a rumour, and then a renewal
// or, where one is to open a session, an attempt that fails and the next, all with their pauses.
func (l *loss) tells() time.Duration { return 300*time.Millisecond + l.w.cfg.Timing.Lease*4/5 }

func (l *loss) of(r *Replica) *known {
	k := l.known[r.boot()]
	if k == nil {
		k = &known{}
		l.known[r.boot()] = k
	}
	return k
}

// after does f once the loop of the replica's process has taken what it is told in d.
func (l *loss) after(r *Replica, d time.Duration, f func(*known)) {
	r.after(d, func() { r.after(heeds, func() { f(l.of(r)) }) })
}

// sent: I9: who was shown that the store forgot changes nothing there but to give up what it has.
func (l *loss) sent(r *Replica, c *core.Call) {
	if l == nil {
		return
	}
	k := l.of(r)
	l.asked[c] = k.highest
	if l.w.front.identity == original {
		l.asked[c] = max(k.highest, k.peers)
	}
	if k.shown > 0 && slices.Contains([]string{"Decide", "Claim", "Declare", "SavePass", "CloseDue", "Lead"}, c.Name) {
		l.w.fail("I9: %s was shown at %v that the store forgot, and calls %s", r.Name, k.shown, c.Name)
	}
}

func (l *loss) answered(r *Replica, e event, reply core.Event) {
	if l == nil {
		return
	}
	asked := l.asked[e.call]
	delete(l.asked, e.call)
	if x, ok := reply.(*core.Replied); !ok || x.Err() != nil || e.call.Name != "OpenSession" && e.call.Name != "RenewSession" {
		return
	}
	said := l.w.front.said
	l.after(r, e.reply, func(k *known) {
		switch k.store = cmp.Or(k.store, said.Store); {
		case said.Store != k.store || said.Highest < asked:
			l.shown(r, k)
		default:
			k.highest = max(k.highest, said.Highest)
		}
	})
}

// heard: what one says that saw the store go back, the others believe, and what numbers it saw.
func (l *loss) heard(r *Replica, x rumour) {
	if l == nil {
		return
	}
	l.after(r, 0, func(k *known) {
		if x.store == original {
			k.peers = max(k.peers, x.fence)
		}
		if x.back && k.store == x.store {
			l.shown(r, k)
		}
	})
}

func (l *loss) shown(r *Replica, k *known) {
	if k.shown > 0 {
		return
	}
	k.shown = l.w.now
	l.w.note(r.Name, "was shown that the store forgot")
	r.after(time.Second, func() { // long enough for others to hear of it
		if l.first == 0 {
			l.first = l.w.now
			l.w.At(max(l.w.now, l.quiet)+l.tells(), l.allSay)
		}
	})
}

// allSay: I9: all that live and reach the store have said so by now, and are not ready. One that began with the store that answers
// now is right to serve there: who of the two is wrong is a matter of the members, not of a replica.
func (l *loss) allSay() {
	replaced := l.w.front.identity
	for _, r := range l.w.replicas {
		k := l.known[r.boot()]
		if !r.up || k == nil || k.store == replaced && replaced != original {
			continue
		}
		if r.said.state != core.Unfit || k.said != 1 {
			l.w.fail("I9: one was shown by %v that the store forgot, and %s is %q and has said so %d times", l.first, r.Name, r.said.state, k.said)
		}
	}
}

// announced: I9: a replica says once that the store forgot, and only where it did; after that it never says that it serves.
func (l *loss) announced(r *Replica, a core.Announce) {
	if l == nil {
		return
	}
	k := l.of(r)
	forgot := a.State == core.Unfit && (strings.Contains(a.Reason, "the store was rolled back") || strings.Contains(a.Reason, "the store was replaced"))
	switch {
	case forgot && (l.forget == 0 || l.kept):
		l.w.fail("I9: %s says %q, and no number was lost", r.Name, a.Reason)
	case forgot && k.said > 0:
		l.w.fail("I9: %s says again: %q", r.Name, a.Reason)
	case forgot:
		k.said++
		l.says++
	case k.shown > 0 && a.State != core.Draining:
		l.w.fail("I9: %s was shown at %v that the store forgot, and says that it is %s: %q", r.Name, k.shown, a.State, a.Reason)
	}
}

// started: I9: who was shown that the store forgot starts no handler. Where no number was lost, what I3 and I15 demand of fences still
// holds, also of runs whose record the store forgot: who holds one remembers for a lease how it ended, and looks every half; and no two handlers of a key are at work, unless the store forgot renewals for so long that a session ends there before its holder thinks so.
func (l *loss) started(r *Replica, a core.Start) {
	if l == nil {
		return
	}
	id, fence, k := idOf(a.Occurrence), a.Occurrence.Fence, l.of(r)
	if fence == 0 {
		l.local[id.Due]++
		return
	}
	if k.shown > 0 {
		l.w.fail("I9: %s was shown at %v that the store forgot, and starts %v", r.Name, k.shown, id)
	}
	k.highest = max(k.highest, fence)
	if l.forget > 0 && !l.kept {
		return
	}
	of := lane{id.Job, id.Key}
	again := l.forget > 0 && 2*l.back > l.w.cfg.Timing.Lease && fence == l.last[of] // its holder has forgotten by then how it ended
	if fence <= l.last[of] && !again {
		l.w.fail("I3: %v starts under fence %d after %d", id, fence, l.last[of])
	}
	l.last[of] = max(l.last[of], fence)
	if 10*l.back > 3*l.w.cfg.Timing.Lease {
		return
	}
	for _, o := range l.w.replicas {
		for _, x := range o.works {
			if o.frozen <= l.w.now && x.occ.Job == id.Job && x.occ.Key == id.Key && x.handle != a.Handle && !x.told {
				l.w.fail("overlap: %s starts %v, at which %s is under fence %d", r.Name, id, o.Name, x.occ.Fence)
			}
		}
	}
}

// renewed forgets what processes knew that people have ended.
func (l *loss) renewed() {
	l.forget, l.first, l.says = 0, 0, 0
	clear(l.known)
	clear(l.last)
}

// fired: I5: efficiency jobs need no store: each of their dues in (from, to] ran once.
func (l *loss) fired(from, to time.Duration) {
	for _, due := range l.dues(l.w.job(local), from, to) {
		if n := l.local[due]; n != 1 {
			l.w.fail("I5: due %d of %s was started %d times", due, local, n)
		}
	}
}

// ended demands of the runs of dues in (from, to] that they ended; where all of it was in health, that each is done.
func (l *loss) ended(from, to time.Duration, healthy bool) {
	rows := map[oracle.ID]oracle.Row{}
	for r := range l.w.Stored() {
		rows[r.ID] = r
	}
	for _, j := range l.w.cfg.Jobs {
		keys := []string{j.Name}
		if j.Source != nil {
			keys = j.Source.names()
		}
		for _, due := range l.dues(&j, from, to) {
			for _, key := range keys {
				id := oracle.ID{Job: j.Name, Key: key, Due: due}
				switch r, ok := rows[id]; {
				case j.Local:
				case ok && r.State != oracle.Ended, healthy && r.Outcome != oracle.Done:
					l.w.fail("I6: %v is not done: state %d, outcome %v, in the store: %t", id, r.State, r.Outcome, ok)
				}
			}
		}
	}
}

// dues are those of a job in (from, to], in Unix seconds.
func (l *loss) dues(j *Job, from, to time.Duration) (list []int64) {
	every := int64(j.plan(0).Every / time.Second)
	for due := (Unix(from)/every + 1) * every; due <= Unix(to); due += every {
		list = append(list, due)
	}
	return list
}

func newLoss(w *World) *loss {
	return &loss{
		w: w, known: map[string]*known{}, asked: map[*core.Call]int64{},
		last: map[lane]int64{}, local: map[int64]int{},
	}
}
