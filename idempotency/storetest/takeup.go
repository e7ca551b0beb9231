package storetest

import (
	"fmt"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

var takeUpLaws = []law{
	{"DemandsTheMark", takeUpDemandsTheMark},
	{"Taken", takeUpTaken},
	{"RaisesCrashes", takeUpRaisesCrashes},
	{"SparesALivingProcess", takeUpSparesALivingProcess},
	{"WaitsForTheWakeTime", takeUpWaitsForTheWakeTime},
	{"NeverExpired", takeUpNeverExpired},
	{"RepeatedReturnsWhatItWon", takeUpRepeated},
	{"OrphanKeepsItsKey", orphanKeepsItsKey},
	{"SharedOrphanIsNoSecondHolder", sharedOrphanIsNoSecondHolder},
}

// R17: an orphan is taken up only after its session was marked: else a store
// clock that steps back would revive the session.
func takeUpDemandsTheMark(b *bundle) {
	a, dying := b.ready("a", "h1"), b.ready("dying", "h1", b.brief)
	x := dying.runs(1, b.ago(time.Minute))[0]
	a.gets(idempotency.Taken, a.takeUp(x.ID, x.Fence))
	dying.lapse()
	a.gets(idempotency.Taken, a.takeUp(x.ID, x.Fence))
	a.mark(dying)
	won := a.wins(a.takeUp(x.ID, x.Fence))
	want(b.T, "mine", a.mine()[0].Fence, won.Fence)
	want(b.T, "crashes", won.Crashes, 1)
	b.finishes(idempotency.Fenced, done(x.ID, x.Fence)) // the overtaken holder; I4, F09
	want(b.T, "state", b.row(x.ID).State, idempotency.Running)
}

// R2: what was not seen as it is, is not taken.
func takeUpTaken(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	r.opens(due)
	c := r.insert("k", due)
	r.gets(idempotency.Taken, r.takeUp(c.ID, 0)) // there is no row
	fence := r.wins(c).Fence
	r.gets(idempotency.Taken, r.takeUp(c.ID, fence)) // it runs
	b.finishes(idempotency.Finished, waits(c.ID, fence, due))
	r.gets(idempotency.Taken, r.takeUp(c.ID, fence+1)) // another fence
	r.gets(idempotency.Taken, r.takeUp(c.ID, 0))
	again := r.wins(r.takeUp(c.ID, fence)).Fence
	b.finishes(idempotency.Finished, done(c.ID, again))
	r.gets(idempotency.Taken, r.takeUp(c.ID, again)) // it has ended
}

// I10, F04: a take-up of a running row raises crashes, one of a waiting row
// does not, and neither raises attempt.
func takeUpRaisesCrashes(b *bundle) {
	first := b.ready("first", "h1")
	x := first.runs(1, b.ago(time.Minute))[0]
	f := waits(x.ID, x.Fence, b.ago(time.Minute))
	f.Attempt = 2
	b.finishes(idempotency.Finished, f)
	first.close()
	second := b.ready("second", "h1")
	a := second.wins(second.takeUp(x.ID, x.Fence))
	want(b.T, "crashes after waiting, its process dead", a.Crashes, 0)
	want(b.T, "attempts", a.Attempt, 2)
	second.close()
	for i := range 4 {
		r := b.ready(fmt.Sprintf("next-%d", i), "h1")
		a = r.wins(r.takeUp(x.ID, a.Fence))
		want(b.T, "crashes", a.Crashes, i+1)
		want(b.T, "attempts", a.Attempt, 2)
		r.close()
	}
	row := b.row(x.ID)
	want(b.T, "crashes of the row", row.Crashes, 4)
	want(b.T, "attempts of the row", row.Attempt, 2)
}

// DESIGN §5.8, R20: a process that lives has lost its lease, and did not crash.
func takeUpSparesALivingProcess(b *bundle) {
	same := func(o *idempotency.Opening) { o.Boot = "the same boot" }
	a, old := b.ready("a", "h1"), b.ready("z", "h1", same)
	due := b.ago(time.Minute)
	a.opens(due)
	var fences []int64
	for _, k := range []string{"k", "l", "m"} {
		fences = append(fences, old.wins(old.insert(k, due)).Fence)
	}
	old.close()
	newer := b.ready("z", "h1", same)
	want(b.T, "crashes, taken up by itself", newer.wins(newer.takeUp(key("k", due), fences[0])).Crashes, 0)
	want(b.T, "crashes, taken up by another", a.wins(a.takeUp(key("l", due), fences[1])).Crashes, 0)
	newer.close()
	want(b.T, "crashes, once it is dead", a.wins(a.takeUp(key("m", due), fences[2])).Crashes, 1)
}

// A retry does not start before its time, by the store's clock.
func takeUpWaitsForTheWakeTime(b *bundle) {
	r := b.ready("a", "h1")
	x := r.runs(1, b.ago(time.Minute))[0]
	b.finishes(idempotency.Finished, waits(x.ID, x.Fence, b.ago(-time.Hour)))
	a := r.gets(idempotency.Early, r.takeUp(x.ID, x.Fence))
	if a.Retry <= 0 || a.Retry > 2*time.Hour {
		b.Fatalf("ask again in %v, want about an hour", a.Retry)
	}

	y := r.runs(1, b.ago(time.Second))[0]
	wake := r.renewed().Add(b.lease)
	b.finishes(idempotency.Finished, waits(y.ID, y.Fence, wake))
	b.eventually("the wake time comes", func() bool {
		v := r.claim(r.takeUp(y.ID, y.Fence))[0].Verdict
		if v != idempotency.Early && v != idempotency.Won {
			b.Fatalf("verdict %d, want early or won", v)
		}
		return v == idempotency.Won
	})
	if started := b.row(y.ID).Started; started.Before(wake) {
		b.Fatalf("started at %v, before its wake time, %v", started, wake)
	}
}

// F14: rows older than the horizon could else neither be taken nor pruned.
func takeUpNeverExpired(b *bundle) {
	r, z := b.ready("a", "h1"), b.ready("z", "h1")
	due := b.ago(50 * time.Hour)
	waiting := r.runs(0, due)[0]
	r.wins(r.takeUp(waiting.ID, 0))
	lax := b.ready("lax", "h1", func(o *idempotency.Opening) { o.Horizon, o.Retention = 60*time.Hour, 70*time.Hour })
	r.opens(due)
	orphan := lax.insert("k", due)
	fence := lax.wins(orphan).Fence
	lax.close()
	z.wins(z.takeUp(orphan.ID, fence))
}

// R3: a repeated take-up returns what it won, and raises crashes once.
func takeUpRepeated(b *bundle) {
	a, dead := b.ready("a", "h1"), b.ready("dead", "h1")
	x := dead.runs(1, b.ago(time.Minute))[0]
	dead.close()
	first := a.claimAs(7, a.takeUp(x.ID, x.Fence))[0]
	again := a.claimAs(7, a.takeUp(x.ID, x.Fence))[0]
	want(b.T, "verdict", again.Verdict, idempotency.Won)
	want(b.T, "fence", again.Fence, first.Fence)
	want(b.T, "crashes", again.Crashes, 1)
	a.gets(idempotency.Taken, a.takeUp(x.ID, first.Fence))
}

// An orphan holds its key until it ends, also through its take-up.
func orphanKeepsItsKey(b *bundle) {
	a, dead := b.ready("a", "h1"), b.ready("dead", "h1")
	due := b.ago(time.Minute)
	a.opens(due, due.Add(time.Second))
	c, next := dead.insert("k", due), a.insert("k", due.Add(time.Second))
	fence := dead.wins(c).Fence
	dead.close()
	a.gets(idempotency.Busy, next)
	fence = a.wins(a.takeUp(c.ID, fence)).Fence
	a.gets(idempotency.Busy, next)
	b.finishes(idempotency.Finished, done(c.ID, fence))
	a.wins(next)
}

// A run that was not exclusive, and is taken up as one that is, must not become
// the second exclusive run of its key.
func sharedOrphanIsNoSecondHolder(b *bundle) {
	a, dead := b.ready("a", "h1"), b.ready("dead", "h1")
	due := b.ago(time.Minute)
	a.opens(due, due.Add(time.Second))
	shared, holder := dead.insert("k", due), a.insert("k", due.Add(time.Second))
	shared.Exclusive = false
	fence := dead.wins(shared).Fence
	dead.close()
	held := a.wins(holder).Fence
	a.gets(idempotency.Busy, a.takeUp(shared.ID, fence))
	b.finishes(idempotency.Finished, done(holder.ID, held))
	a.wins(a.takeUp(shared.ID, fence))
}
