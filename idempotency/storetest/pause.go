package storetest

import (
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

var pauseLaws = []law{
	{"BeginsNowAndIsOpen", pauseBeginsNow},
	{"IsSeenByDecisions", pauseIsSeenByDecisions},
	{"ResumeEndsIt", resumeEndsThePause},
	{"BeginsWhereAnUndecidedOneDid", pauseBeginsWhereAnUndecidedOneDid},
	{"BeginsAnewWhereAllIsDecided", pauseBeginsAnewWhereAllIsDecided},
	{"EfficiencyJobBeginsAnew", pauseOfEfficiencyJobBeginsAnew},
}

func (b *bundle) pause(request, job string) idempotency.Command {
	b.Helper()
	return b.submit(ask(request, idempotency.Pause, idempotency.ID{Job: job}))
}

func (b *bundle) resume(request, job string) idempotency.Command {
	b.Helper()
	return b.submit(ask(request, idempotency.Resume, idempotency.ID{Job: job}))
}

func (b *bundle) window(e idempotency.Entry, from, until time.Time) {
	b.Helper()
	if !e.PausedFrom.Equal(from) || !e.PausedUntil.Equal(until) {
		b.Fatalf("paused from %v until %v, want from %v until %v", e.PausedFrom, e.PausedUntil, from, until)
	}
}

func pauseBeginsNow(b *bundle) {
	r := b.ready("a", "h1")
	for _, job := range []string{plain, keyed} {
		first := b.pause("p1-"+job, job)
		want(b.T, "changed", first.Changed, 1)
		if first.At.Before(r.now) {
			b.Fatalf("paused at %v, before it was asked for", first.At)
		}
		b.window(r.entry(job), first.At, time.Time{})
		r.passes(time.Millisecond)
		want(b.T, "changed by another", b.pause("p2-"+job, job).Changed, 0)
		b.window(r.entry(job), first.At, time.Time{})
	}
}

// F5: who decides has seen the pause, or loses; the entry lags on.
func pauseIsSeenByDecisions(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	for i, change := range []func(){
		func() { b.pause("p", plain) },
		func() { b.resume("r", plain) },
	} {
		d := r.decision(plain, due.Add(time.Duration(i)*time.Second))
		change()
		r.lost("seen another window", d)
		found := 0
		for _, e := range r.lag(all()).Entries {
			if e.Job == plain {
				found++
				want(b.T, "entry that lags", e, r.entry(plain))
			}
		}
		want(b.T, "entries that lag", found, 1)
		d.Seen = r.entry(plain)
		won := r.decide(d)
		want(b.T, "won as it is", won.Won, true)
		b.window(won.Entry, d.Seen.PausedFrom, d.Seen.PausedUntil) // it stays on the entry
	}
}

func resumeEndsThePause(b *bundle) {
	r := b.ready("a", "h1")
	want(b.T, "changed where there is none", b.resume("r0", plain).Changed, 0)
	b.window(r.entry(plain), time.Time{}, time.Time{})
	from := b.pause("p", plain).At
	r.passes(time.Millisecond)
	until := b.resume("r1", plain)
	want(b.T, "changed", until.Changed, 1)
	b.window(r.entry(plain), from, until.At)
	r.passes(time.Millisecond)
	want(b.T, "changed by another", b.resume("r2", plain).Changed, 0)
	b.window(r.entry(plain), from, until.At)
	b.window(r.entry(keyed), time.Time{}, time.Time{})
}

// An entry has one window: dues of the last pause that are not decided yet stay in it.
func pauseBeginsWhereAnUndecidedOneDid(b *bundle) {
	r := b.ready("a", "h1")
	from := b.pause("p1", plain).At
	r.passes(time.Millisecond)
	b.resume("r1", plain)
	r.passes(time.Millisecond)
	want(b.T, "changed", b.pause("p2", plain).Changed, 1)
	b.window(r.entry(plain), from, time.Time{})
}

func pauseBeginsAnewWhereAllIsDecided(b *bundle) {
	r := b.ready("a", "h1", func(o *idempotency.Opening) { o.Tolerance = time.Hour })
	b.pause("p1", plain)
	r.passes(time.Millisecond)
	until := b.resume("r1", plain).At
	d := r.decision(plain)
	d.Opened = until
	want(b.T, "won", r.decide(d).Won, true)
	r.passes(time.Millisecond)
	again := b.pause("p2", plain)
	want(b.T, "changed", again.Changed, 1)
	b.window(r.entry(plain), again.At, time.Time{})
}

// The store decides none of its dues, so that none is left of the last pause.
func pauseOfEfficiencyJobBeginsAnew(b *bundle) {
	r := b.efficient("a", "h1")
	first := b.pause("p1", plain)
	b.window(r.entry(plain), first.At, time.Time{})
	r.passes(time.Millisecond)
	b.resume("r1", plain)
	r.passes(time.Millisecond)
	again := b.pause("p2", plain)
	want(b.T, "it begins later", again.At.After(first.At), true)
	b.window(r.entry(plain), again.At, time.Time{})
}
