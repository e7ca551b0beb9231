package storetest

import (
	"fmt"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

var retireLaws = []law{
	{"CountsWhatNobodyAnnounces", retireCounts},
	{"CountsTwoMinutesAtMost", retireCountsTwoMinutesAtMost},
	{"EveryCountIsOneClock", retireEveryCountIsOneClock},
	{"AnnouncedCountsFromZero", retireAnnouncedCountsFromZero},
	{"EndsWhatIsLeft", retireEndsWhatIsLeft},
	{"LeavesOtherJobs", retireLeavesOtherJobs},
	{"LeavesRunsOfTheLiving", retireLeavesRunsOfTheLiving},
	{"AnnouncedAgainMissesTheRange", retiredIsAnnouncedAgain},
	{"AnnouncedWithinASecondMissesNothing", retiredIsAnnouncedWithinASecond},
	{"OpenedNeverBack", retiredOpenedNeverBack},
	{"EfficiencyJob", retireEfficiencyJob},
	{"RejectsCommands", retiredRejectsCommands},
}

func (r *replica) retires(after time.Duration) []idempotency.Orphan {
	r.Helper()
	o, err := r.store.Retire(r.Context(), r.session, after)
	r.alive("retire", err)
	return o
}

// retired makes the job one that nobody announces, and retires it.
func (r *replica) retired(job string) {
	r.Helper()
	var left []string
	for _, d := range r.defs {
		if d.Job != job {
			left = append(left, d.Job)
		}
	}
	r.declare(r.hash, left...)
	for _, o := range r.retires(0) {
		want(r.T, "retired "+o.Job, o.Retired, o.Job == job)
	}
}

// passes waits until so much time has passed by the store's clock.
func (r *replica) passes(d time.Duration) {
	r.Helper()
	end := r.renewed().Add(d)
	r.eventually("time passes", func() bool { return !r.renewed().Before(end) })
}

func orphans(list []idempotency.Orphan) string {
	s := ""
	for _, o := range list {
		s += o.Job + " "
	}
	return s
}

func retireCounts(b *bundle) {
	r := b.ready("a", "h1")
	want(b.T, "jobs that nobody announces", len(r.retires(time.Hour)), 0)
	r.declare("h1")
	b.ready("gone", "h1").close() // it is not live
	r.retires(time.Hour)
	r.passes(10 * time.Millisecond)
	got := r.retires(time.Hour)
	want(b.T, "jobs that nobody announces", orphans(got), "keyed plain ")
	for _, o := range got {
		want(b.T, "retired", o.Retired, false)
		if o.For < 10*time.Millisecond {
			b.Fatalf("%s was announced by nobody for %v, want 10ms or more", o.Job, o.For)
		}
	}
	r.passes(10 * time.Millisecond)
	again := r.retires(got[0].For + 10*time.Millisecond)
	want(b.T, "jobs that are retired", orphans(again), "keyed plain ")
	for i, o := range again {
		want(b.T, "retired", o.Retired, true)
		if o.For < got[i].For+10*time.Millisecond {
			b.Fatalf("%s was announced by nobody for %v, want 10ms more than %v", o.Job, o.For, got[i].For)
		}
	}
	want(b.T, "jobs after they were retired", len(r.retires(0)), 0)
	overview := b.overview()
	for _, e := range overview.Entries {
		if e.Retired.Before(r.now) || e.Retired.After(overview.Now) {
			b.Fatalf("%s was retired at %v", e.Job, e.Retired)
		}
	}
}

// F9: a fleet that was down for a day has retired nothing.
func retireCountsTwoMinutesAtMost(b *bundle) {
	if b.Advance == nil {
		b.Skip("two minutes do not pass by themselves")
	}
	r := b.open("a", func(o *idempotency.Opening) { o.Lease = 48 * time.Hour })
	r.declare("h1", plain)
	r.declare("h1")
	want(b.T, "first count", r.retires(time.Hour)[0].For, 0)
	b.Advance(24 * time.Hour)
	want(b.T, "count after a day", r.retires(time.Hour)[0].For, 2*time.Minute)
	b.Advance(-time.Hour)
	want(b.T, "count after the clock stepped back", r.retires(time.Hour)[0].For, 2*time.Minute)
	b.Advance(time.Minute)
	want(b.T, "count a minute later", r.retires(time.Hour)[0].For, 3*time.Minute)
}

// Replicas count in turn: what one has counted the other does not count again.
func retireEveryCountIsOneClock(b *bundle) {
	a, z := b.open("a"), b.open("z")
	a.declare("h1", plain)
	a.declare("h1")
	start := a.renewed()
	var last time.Duration
	for i := range 6 {
		r := []*replica{a, z}[i%2]
		a.passes(3 * time.Millisecond)
		got := r.retires(time.Hour)[0].For
		if passed := a.renewed().Sub(start); got < last || got > passed {
			b.Fatalf("count %d: %v after %v, when %v had passed", i, got, last, passed)
		}
		last = got
	}
	if last < 12*time.Millisecond {
		b.Fatalf("six counts came to %v", last)
	}
}

func retireAnnouncedCountsFromZero(b *bundle) {
	r := b.open("a")
	r.declare("h1", plain, "other")
	r.declare("h1")
	r.retires(time.Hour)
	r.passes(20 * time.Millisecond)
	before := r.retires(time.Hour)[0].For
	b.open("brief").declare("h1", plain)
	want(b.T, "jobs that nobody announces", orphans(r.retires(time.Hour)), "other ")
	back := b.open("back")
	back.declare("h1", "other")
	back.close() // it was announced between two counts
	got := r.retires(time.Hour)
	want(b.T, "jobs that nobody announces", orphans(got), "other ")
	now := r.renewed()
	if got[0].For >= before && b.Advance != nil {
		b.Fatalf("at %v: announced by nobody for %v, as if it had not been announced after %v", now, got[0].For, before)
	}
}

// DESIGN §5.11: nothing of the job is left without an end.
func retireEndsWhatIsLeft(b *bundle) {
	r, gone, lapsed := b.ready("a", "h1"), b.ready("gone", "h1"), b.ready("lapsed", "h1", b.brief)
	due := b.ago(time.Minute)
	r.opens(due, due.Add(time.Second))
	r.save(idempotency.Pass{Job: keyed, Due: due, Finished: bitmap(1), Keys: 3})
	gone.save(idempotency.Pass{Job: keyed, Due: due, Finished: bitmap(2), Keys: 4})
	waiting, ended, orphan, late := r.insert("waiting", due), r.insert("ended", due), gone.insert("orphan", due), lapsed.insert("late", due)
	f := waits(waiting.ID, r.wins(waiting).Fence, b.ago(-time.Hour))
	f.Attempt, f.Text = 2, "failed twice"
	b.finishes(idempotency.Finished, f, done(ended.ID, r.wins(ended).Fence))
	fence, lateFence := gone.wins(orphan).Fence, lapsed.wins(late).Fence
	gone.close()
	lapsed.lapse()
	r.retired(keyed)

	x := b.ends(waiting.ID, idempotency.Skipped, "retired")
	want(b.T, "attempts", x.Attempt, 2)
	want(b.T, "text", x.Text, "failed twice")
	b.ends(ended.ID, idempotency.Done, "")
	x = b.ends(orphan.ID, idempotency.Failed, "abandoned")
	want(b.T, "crashes", x.Crashes, 0)
	b.ends(late.ID, idempotency.Failed, "abandoned")
	b.finishes(idempotency.Already, waits(orphan.ID, fence, due), waits(late.ID, lateFence, due))
	b.finishes(idempotency.Fenced, done(orphan.ID, fence))
	for i, got := range b.ranges(keyed) {
		at := due.Add(time.Duration(i) * time.Second)
		want(b.T, "range", got, idempotency.Range{Job: keyed, From: at, To: at, Count: 1, Outcome: idempotency.Missed, Reason: "retired"})
	}
	want(b.T, "ranges", len(b.ranges("")), 2)
	dues := b.dues(keyed, time.Time{}, time.Time{})
	want(b.T, "dues", len(dues), 2)
	want(b.T, "closed", dues[0].Closed.IsZero() || dues[1].Closed.IsZero(), false)
	want(b.T, "keys", dues[0].Keys, 7)
	want(b.T, "open dues", len(b.overview().Open), 0)
}

func retireLeavesOtherJobs(b *bundle) {
	r, gone := b.ready("a", "h1"), b.ready("gone", "h1")
	due := b.ago(time.Minute)
	r.opens(due)
	gone.wins(gone.insert("orphan", due))
	waiting := r.insert("waiting", due)
	b.finishes(idempotency.Finished, waits(waiting.ID, r.wins(waiting).Fence, due))
	gone.close()
	r.retired(plain)
	lag := r.lag(all())
	want(b.T, "open, waiting and orphaned", fmt.Sprint(len(lag.Open), len(lag.Waiting), len(lag.Orphaned)), "1 1 1")
	want(b.T, "ranges", len(b.ranges("")), 0)
}

// A replica that drains announces nothing and ends what it holds. What it leaves ends at a later count.
func retireLeavesRunsOfTheLiving(b *bundle) {
	r, draining := b.ready("a", "h1"), b.ready("draining", "h1")
	due := b.ago(time.Minute)
	r.opens(due)
	released, lost, ended := draining.insert("released", due), draining.insert("lost", due), draining.insert("ended", due)
	a := draining.claim(released, lost, ended)
	draining.declare("h1")
	r.retired(keyed)
	for _, c := range []idempotency.Claim{released, lost, ended} {
		b.in(c.ID, idempotency.Running)
	}
	b.finishes(idempotency.Finished, done(ended.ID, a[2].Fence), waits(released.ID, a[0].Fence, due))
	draining.close()
	want(b.T, "jobs to report", len(r.retires(0)), 0)
	b.ends(ended.ID, idempotency.Done, "")
	b.ends(released.ID, idempotency.Skipped, "retired")
	b.ends(lost.ID, idempotency.Failed, "abandoned")
}

func retiredIsAnnouncedAgain(b *bundle) {
	r := b.ready("a", "h1")
	opened := r.entry(plain).Opened
	r.retired(plain)
	back := b.open("back")
	d := b.definition(plain, "h2")
	d.Opened, d.Next = b.ago(time.Minute), b.ago(0)
	back.hash, back.defs = "h2", []idempotency.Declaration{d}
	for range 2 { // a repetition changes nothing
		e := back.entry(plain)
		wantTime(b, "opened", e.Opened, d.Opened)
		wantTime(b, "next", e.Next, d.Next)
		want(b.T, "retired", e.Retired.IsZero(), true)
		want(b.T, "hash", e.Hash, "h1")
		want(b.T, "in force", e.InForce, "h2")
	}
	got := b.ranges(plain)
	want(b.T, "ranges", len(got), 1)
	want(b.T, "range", got[0], idempotency.Range{Job: plain, From: opened.Add(time.Second), To: d.Opened, Count: 1, Outcome: idempotency.Missed, Reason: "retired"})
	want(b.T, "won", back.decide(back.decision(plain)).Won, true)
	want(b.T, "jobs that nobody announces", len(r.retires(0)), 0)
}

// No due lies between two instants of one second. Where one lies between, the range is from it on.
func retiredIsAnnouncedWithinASecond(b *bundle) {
	r := b.open("a")
	d := b.definition(plain, "h1")
	for i, opened := range []time.Duration{0, 400 * time.Millisecond, 900 * time.Millisecond, 1100 * time.Millisecond} {
		d.Opened, d.Next = b.ago(time.Hour).Add(opened), b.ago(0)
		r.hash, r.defs = "h1", []idempotency.Declaration{d}
		wantTime(b, "opened", r.entry(plain).Opened, d.Opened)
		if ranges := b.ranges(plain); i < 3 {
			want(b.T, "ranges", len(ranges), 0)
		} else {
			want(b.T, "ranges", len(ranges), 1)
			wantTime(b, "from", ranges[0].From, b.ago(time.Hour).Add(time.Second))
			wantTime(b, "to", ranges[0].To, d.Opened)
		}
		r.retired(plain)
	}
}

// Whose clock is behind must not have decided dues run again.
func retiredOpenedNeverBack(b *bundle) {
	r := b.ready("a", "h1")
	x := r.runs(1, b.ago(time.Minute))[0]
	b.finishes(idempotency.Finished, done(x.ID, x.Fence))
	was := r.entry(plain)
	r.retired(plain)
	r.declare("h1", keyed, plain) // with an older opening
	e := r.entry(plain)
	wantTime(b, "opened", e.Opened, was.Opened)
	wantTime(b, "next", e.Next, was.Next)
	want(b.T, "retired", e.Retired.IsZero(), true)
	want(b.T, "ranges", len(b.ranges("")), 0)
}

func retireEfficiencyJob(b *bundle) {
	r := b.efficient("a", "h1")
	b.submit(ask("t", idempotency.Trigger, idempotency.ID{Job: plain}))
	r.retired(plain)
	b.skips(b.list(idempotency.Filter{})[0].ID, "retired")
	e := b.efficient("back", "h1").entry(plain)
	want(b.T, "retired", e.Retired.IsZero(), true)
	want(b.T, "opened", e.Opened.IsZero(), true)
	want(b.T, "ranges", len(b.ranges("")), 0)
}

func retiredRejectsCommands(b *bundle) {
	r := b.ready("a", "h1")
	first := b.submit(ask("p", idempotency.Pause, idempotency.ID{Job: plain}))
	r.retired(plain)
	b.rejects("a retired job", ask("t", idempotency.Trigger, idempotency.ID{Job: plain}))
	want(b.T, "a repetition", b.submit(ask("p", idempotency.Pause, idempotency.ID{Job: plain})).At, first.At)
	b.submit(ask("t", idempotency.Trigger, idempotency.ID{Job: keyed, Key: "k"}))
}
