package scheduler

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/ring"
)

// dueFound is found for a due of a job with keys that was opened, where the key has no row or none is named.
func (x *explainer) dueFound() (short string, details func()) {
	d := x.due
	switch {
	case d.Closed.IsZero() && x.id.Key == "":
		return "it is open", x.tellOpen
	case d.Closed.IsZero() && x.partFinished():
		return "it did not run: it was not among the keys of its part of the due", x.tellOpen
	case d.Closed.IsZero():
		return "it is not claimed, and its due is open", x.tellOpen
	case x.id.Key == "":
		return "it is closed", x.tellClosed
	case x.unfinished():
		return "there is no run of it, and its due was closed before all keys were claimed", x.tellClosed
	}
	return "there is no run of it: it was not among the keys of that due, or retention has removed it", x.tellClosed
}

// unfinished says whether the due, which is closed, had keys that nobody claimed.
func (x *explainer) unfinished() bool {
	return slices.ContainsFunc(x.ranges, cutOff)
}

// cutOff says whether a range speaks for keys of an opened due, which was closed before they were claimed. Others over an opened due
// are from before a backfill opened it.
func cutOff(r idempotency.Range) bool {
	return r.From.Equal(r.To) && (r.Reason == "source" || r.Reason == "unfinished" || r.Reason == "retired")
}

func (x *explainer) tellClosed() {
	d := x.due
	x.say("The due was opened at %s and closed at %s, when the replicas had settled %d %s of it.",
		instant(d.Opened), instant(d.Closed), d.Keys, plural(int(d.Keys), "key", "keys"))
	for _, r := range x.ranges {
		if cutOff(r) {
			x.say("%s", reasonFor(r.Reason, true))
			continue
		}
		x.say("A record of %d %s from %s to %s as %s (%s) is from before the due was opened.",
			r.Count, plural(int(r.Count), "due", "dues"), instant(r.From), instant(r.To), r.Outcome, r.Reason)
	}
	switch {
	case x.id.Key == "":
	case x.unfinished():
		x.say("It may be of those partitions; else the KeySource did not return it, or retention has removed its row.")
	default:
		x.say("The keys of a due are those that the KeySource returns while it is open: one that is added later runs at the next due. Or it ran, and retention has removed its row.")
	}
}

// tellOpen says how far the replicas have come with an open due, and with the key's part of it.
func (x *explainer) tellOpen() {
	x.say("The due was opened at %s.", instant(x.due.Opened))
	o, of := x.open(), x.overview.Partitions
	if o == nil {
		x.say("It was opened or closed this very moment; ask again.")
		return
	}
	done := 0
	for _, b := range o.Finished {
		done += bits.OnesCount8(b)
	}
	if x.id.Key == "" {
		x.say("Of its %d partitions %d are finished.", of, done)
		x.tellPasses(o.Passes, "its partitions")
		return
	}
	p := x.partition()
	if x.partFinished() {
		x.say("The key's partition is %d, which is finished: every key that the KeySource returned for it is claimed or recorded, and this one was not among them. One that is added later runs at the next due.", p)
		return
	}
	x.say("The key's partition is %d, one of the %d of %d that are not finished.", p, of-done, of)
	x.tellPasses(slices.DeleteFunc(slices.Clone(o.Passes), func(m idempotency.Pass) bool { return !has(m.Mine, p) }), "it")
}

// open is the open due; nil: it is not open.
func (x *explainer) open() *idempotency.OpenDue {
	i := slices.IndexFunc(x.overview.Open, func(o idempotency.OpenDue) bool { return o.Job == x.id.Job && o.Due.Equal(x.id.Due) })
	if i < 0 {
		return nil
	}
	return &x.overview.Open[i]
}

func (x *explainer) partition() int { return ring.Slot(x.id.Key) % x.overview.Partitions }

// partFinished says whether the key's partition of the open due is finished.
func (x *explainer) partFinished() bool {
	o := x.open()
	return o != nil && has(o.Finished, x.partition())
}

// tellPasses says who works on something, of those passes, and when that moved last.
func (x *explainer) tellPasses(passes []idempotency.Pass, on string) {
	var who []string
	gone := 0
	for _, p := range passes {
		s := x.session(p.Session)
		if s == nil {
			gone++
			continue
		}
		who = append(who, quoted([]string{s.Replica})+", which moved last at "+instant(p.MovedAt)+" ("+span(x.overview.Now.Sub(p.MovedAt))+" ago)")
	}
	switch {
	case len(who) > 0:
		x.say("At work on %s: replica %s. It reads keys from the KeySource and claims them as workers become free.", on, strings.Join(who, "; replica "))
	case gone > 0 && len(x.overview.Sessions) == 0:
		x.say("Those who were at work on %s are gone, and no replica is up; one that has the job's code goes on with it.", on)
	case gone > 0 && x.entry.Leader && !x.led():
		x.say("Those who were at work on %s are gone; who may run it now goes on.", on)
	case gone > 0:
		x.say("Those who were at work on %s are gone; the next in rank go on with it within seconds, if they have the job's code.", on)
	default:
		x.say("No replica has begun with %s: its start may be delayed (Job.Spread), all workers be busy, or none have the job's code.", on)
	}
}

func has(bitmap []byte, p int) bool { return p/8 < len(bitmap) && bitmap[p/8]>>(p%8)&1 == 1 }

// tellOwner says whose the key is by what is alive in the store.
func (x *explainer) tellOwner() {
	if x.id.Key == "" || len(x.overview.Sessions) == 0 || efficient(x.entry) { // of these the store does not know the placement
		return
	}
	var names []string
	for _, s := range x.overview.Sessions {
		names = append(names, s.Replica)
	}
	slices.Sort(names)
	r, err := ring.New(slices.Compact(names), &ring.Options{Partitions: x.overview.Partitions})
	if err != nil {
		return // a store that holds such names was not written by replicas
	}
	whose := "its"
	if x.entry.Keyed {
		whose = "the key's"
	}
	x.say("By the default ring layout over the live replicas %s owner is now %q; members may see others alive than the store does.", whose, r.Owner(x.id.Key))
}

// inForce is the hash of the definition that runs.
func (x *explainer) inForce() string { return cmp.Or(x.entry.InForce, x.entry.Hash) }

// tellCode says which live replicas can run it.
func (x *explainer) tellCode() {
	o, e := x.overview, x.entry
	same := replicas(o, e.Job, x.inForce())
	other := slices.DeleteFunc(replicas(o, e.Job, ""), func(n string) bool { return slices.Contains(same, n) })
	switch {
	case len(o.Sessions) == 0:
		x.say("No replica is alive in namespace %q, by the sessions in the store.", x.client.namespace)
	case len(same)+len(other) == 0:
		x.say("None of the live replicas has the job's code, so that nobody can run it.")
	case len(same) == 0:
		x.say("The live replicas that have the job's code, %s, have another definition of it than is in force.", quoted(other))
	case len(other) == 0:
		x.say("Live replicas that have the job's code: %s.", quoted(same))
	default:
		x.say("Live replicas that have the job's code: %s. Another definition of it than is in force, which they do not run, have %s.", quoted(same), quoted(other))
	}
}

// tellEntry says what holds for the whole job now.
func (x *explainer) tellEntry() {
	e := x.entry
	// The record is the better word: a pause begins where the one before did, if dues of that were not decided yet.
	said := slices.ContainsFunc(x.commands, func(c idempotency.Command) bool {
		return c.Kind == idempotency.Pause && c.Changed > 0 && !c.At.Before(e.PausedFrom)
	})
	if paused(e) && !said {
		x.say("The job is paused since %s.", instant(e.PausedFrom))
	}
	if e.InForce != "" && e.InForce != e.Hash {
		x.say("A newer definition of the job has come in force: a replica that has it decides the dues up to then by this schedule, and then takes it over.")
	}
	if !e.Retired.IsZero() {
		x.say("The job was retired at %s, since no live replica had had its code for long; a replica that has it brings it back.", instant(e.Retired))
	}
}
