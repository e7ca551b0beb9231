package storetest

import (
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

var decideLaws = []law{
	{"ConditionalOnWhatWasSeen", conditionalOnWhatWasSeen},
	{"NeedsAnnouncedHash", needsAnnouncedHash},
	{"OpenedNeverBack", openedNeverBack},
	{"OpenedNeverAhead", openedNeverAhead},
	{"OpenedAheadTakesDefinition", openedAheadTakesDefinition},
	{"RepeatedIsWonAgain", repeatedIsWonAgain},
	{"RepeatedAfterAnotherIsWonAgain", repeatedAfterAnotherIsWonAgain},
	{"DuesOfOneNeverSkipEachOther", duesOfOneNeverSkipEachOther},
	{"WithoutWorkerWaits", withoutWorkerWaits},
	{"OlderOpeningsRunSkips", olderOpeningsRunSkips},
	{"EndedRunSkipsNothing", endedRunSkipsNothing},
	{"RangesAreRecorded", rangesAreRecorded},
	{"CatchUpWaitsForOlderRun", catchUpWaitsForOlderRun},
	{"KeyedOpensDues", keyedOpensDues},
	{"ClosedDueStaysClosed", closedDueStaysClosed},
	{"EachOfABatchAlone", eachOfABatchAlone},
}

// lost decides and wants it lost, without a trace.
func (r *replica) lost(why string, d idempotency.Decision) {
	r.Helper()
	before := r.entry(d.Job)
	rows, ranges := len(r.list(idempotency.Filter{})), len(r.ranges(""))
	open := len(r.lag(all()).Open)
	d.Ranges = append(d.Ranges, idempotency.Range{Job: d.Job, From: r.base, To: r.base, Count: 1, Outcome: idempotency.Skipped})
	a := r.decide(d)
	want(r.T, "won, "+why, a.Won, false)
	want(r.T, "runs, "+why, len(a.Runs), 0)
	want(r.T, "entry answered, "+why, a.Entry, before)
	want(r.T, "entry, "+why, r.entry(d.Job), before)
	want(r.T, "rows, "+why, len(r.list(idempotency.Filter{})), rows)
	want(r.T, "ranges, "+why, len(r.ranges("")), ranges)
	want(r.T, "open dues, "+why, len(r.lag(all()).Open), open)
}

// DESIGN §5.1: one conditional update; a loser writes nothing. F5 for the pause.
func conditionalOnWhatWasSeen(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	for _, job := range []string{plain, keyed} {
		d := r.decision(job, due)
		d.Claim = 1
		x := d
		x.Seen.Opened = d.Seen.Opened.Add(-time.Microsecond)
		r.lost("seen another opened", x)
		x = d
		x.Seen.Hash = "h0"
		r.lost("seen another hash", x)
		x = d
		x.Seen.PausedFrom = b.ago(time.Hour)
		r.lost("seen a pause", x)
		x = d
		x.Seen.PausedUntil = b.ago(time.Hour)
		r.lost("seen the end of a pause", x)
		x = d
		x.Seen.Job, x.Job, x.Run = "unknown", "unknown", nil
		a := r.decide(x)
		want(b.T, "won, of a job without entry", a.Won, false)
		want(b.T, "won, as it is", r.decide(d).Won, true)
		r.lost("decided already", d)
	}
}

// Who decides has announced the hash, and it is the entry's or in force.
func needsAnnouncedHash(b *bundle) {
	a := b.ready("a", "h1")
	old := b.ready("old", "h2")
	young := b.ready("young", "h3")

	d := old.decision(plain)
	old.lost("neither the entry's nor in force", d)
	d = a.decision(plain)
	d.Hash = "h3"
	a.lost("not announced by itself", d)
	want(b.T, "won with the entry's", a.decide(a.decision(plain)).Won, true)
	want(b.T, "won with the one in force", young.decide(young.decision(plain)).Won, true)
	a.lost("no longer the entry's", a.decision(plain))
}

// I13: opened never moves back.
func openedNeverBack(b *bundle) {
	r := b.ready("a", "h1")
	r.runs(0, b.ago(time.Minute))
	d := r.decision(plain)
	d.Opened = d.Seen.Opened.Add(-time.Second)
	r.lost("opened goes back", d)
	d.Opened = d.Seen.Opened
	want(b.T, "won where it stays", r.decide(d).Won, true)
}

// I13: opened never passes the store's now + tolerance.
func openedNeverAhead(b *bundle) {
	r := b.ready("a", "h1", func(o *idempotency.Opening) { o.Tolerance = 24 * time.Hour })
	d := r.decision(plain)
	d.Opened = r.now.Add(48 * time.Hour)
	r.lost("opened passes now + tolerance", d)
	d.Opened = r.now.Add(23 * time.Hour)
	a := r.decide(d)
	want(b.T, "won within the tolerance", a.Won, true)
	wantTime(b, "opened", a.Entry.Opened, d.Opened)
	wantTime(b, "next", a.Entry.Next, d.Next)
}

// F55: the clock was ahead when an entry was opened. A new definition comes in force all the same, else nobody could take
// up what the old one left until the clock has caught up. Opened stays.
func openedAheadTakesDefinition(b *bundle) {
	fast := b.ready("a", "h1", func(o *idempotency.Opening) { o.Tolerance = 24 * time.Hour })
	d := fast.decision(plain)
	d.Opened = fast.now.Add(23 * time.Hour)
	want(b.T, "won within the tolerance", fast.decide(d).Won, true)

	young := b.ready("young", "h2")
	x := young.decision(plain)
	x.Opened = x.Seen.Opened.Add(time.Second)
	young.lost("opened moves on, ahead of the clock", x)
	x.Opened = x.Seen.Opened.Add(-time.Second)
	young.lost("opened moves back", x)
	x.Opened = x.Seen.Opened
	a := young.decide(x)
	want(b.T, "won where it stays", a.Won, true)
	want(b.T, "hash", a.Entry.Hash, "h2")
	wantTime(b, "opened", a.Entry.Opened, d.Opened)
}

// F16: the reply was lost, and the call is repeated as it was.
func repeatedIsWonAgain(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	d := r.decision(plain, due)
	d.Claim = 1
	d.Ranges = []idempotency.Range{{Job: plain, From: b.ago(time.Hour), To: b.ago(time.Hour), Count: 1, Outcome: idempotency.Missed}}
	first := r.decideAs(77, d)
	again := r.decideAs(77, d)
	want(b.T, "won", again.Won, true)
	want(b.T, "runs", len(again.Runs), 1)
	want(b.T, "run", again.Runs[0].Fence, first.Runs[0].Fence)
	want(b.T, "state", again.Runs[0].State, idempotency.Running)
	want(b.T, "ranges", len(b.ranges("")), 1)
	want(b.T, "won under another nonce", r.decideAs(78, d).Won, false)

	b.finishes(idempotency.Finished, done(first.Runs[0].ID, first.Runs[0].Fence))
	ended := r.decideAs(77, d)
	want(b.T, "won after the run ended", ended.Won, true)
	for _, x := range ended.Runs {
		if x.State == idempotency.Running {
			b.Fatalf("a run that has ended is answered as running: %+v", x)
		}
	}
	other := b.ready("z", "h1")
	want(b.T, "won by another session with the nonce", other.decideAs(77, d).Won, false)
}

// A decision that was won stays won, whoever decided since.
func repeatedAfterAnotherIsWonAgain(b *bundle) {
	a, z := b.ready("a", "h1"), b.ready("z", "h1")
	d := a.decision(plain, b.ago(time.Minute))
	d.Claim = 1
	first := a.decideAs(77, d)
	want(b.T, "won", first.Won, true)
	z.runs(0, b.ago(time.Minute).Add(time.Second))
	again := a.decideAs(77, d)
	want(b.T, "won again", again.Won, true)
	want(b.T, "runs", len(again.Runs), 1)
	want(b.T, "fence", again.Runs[0].Fence, first.Runs[0].Fence)
	wantTime(b, "opened", again.Entry.Opened, z.entry(plain).Opened)
}

// F6: a catch-up is not eaten by its own overlap.
func duesOfOneNeverSkipEachOther(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	runs := r.runs(3, due, due.Add(time.Second), due.Add(2*time.Second))
	for i, x := range runs {
		wantTime(b, "due", x.ID.Due, due.Add(time.Duration(i)*time.Second))
		want(b.T, "key", x.ID.Key, plain)
		state := idempotency.Waiting
		if i == 0 {
			state = idempotency.Running
		}
		want(b.T, "state", x.State, state)
		want(b.T, "state of the row", b.row(x.ID).State, state)
	}
	want(b.T, "mine", len(r.mine()), 1)
	want(b.T, "waiting while the first runs", len(r.lag(all()).Waiting), 0)
	b.finishes(idempotency.Finished, done(runs[0].ID, runs[0].Fence))
	want(b.T, "waiting after it", names(r.lag(all()).Waiting), names(runs[1:]))
}

// F7: an opening needs no free worker.
func withoutWorkerWaits(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	x := r.runs(0, due)[0]
	want(b.T, "state", x.State, idempotency.Waiting)
	want(b.T, "fence", x.Fence, 0)
	want(b.T, "session", x.Session, 0)
	if x.Wake.Before(r.now) {
		b.Fatalf("wake time %v is before the decision, %v", x.Wake, r.now)
	}
	a := r.wins(r.takeUp(x.ID, 0))
	want(b.T, "crashes and attempts", a.Crashes+a.Attempt, 0)
}

// Overlap: a due that finds an older opening's run running is skipped.
func olderOpeningsRunSkips(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	first := r.runs(1, due)[0]
	for i, x := range r.runs(2, due.Add(time.Second), due.Add(2*time.Second)) {
		want(b.T, "state", x.State, idempotency.Ended)
		want(b.T, "outcome", x.Outcome, idempotency.Skipped)
		want(b.T, "reason", x.Reason, "overlap")
		wantTime(b, "due", x.ID.Due, due.Add(time.Duration(i+1)*time.Second))
		row := b.row(x.ID)
		want(b.T, "outcome of the row", row.Outcome, idempotency.Skipped)
		if row.Finished.Before(r.now) {
			b.Fatalf("a skipped run ended at %v, before the decision", row.Finished)
		}
	}
	want(b.T, "mine", names(r.mine()), names([]idempotency.Run{first}))
}

// F6: a catch-up waits for an older opening's run, and is not eaten by it.
func catchUpWaitsForOlderRun(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	first := r.runs(1, due)[0]
	d := r.decision(plain, due.Add(time.Second), due.Add(2*time.Second))
	d.Claim, d.CatchUp = 2, true
	for _, x := range r.decide(d).Runs {
		want(b.T, "state", x.State, idempotency.Waiting)
		want(b.T, "state of the row", b.row(x.ID).State, idempotency.Waiting)
	}
	want(b.T, "mine", names(r.mine()), names([]idempotency.Run{first}))
	b.finishes(idempotency.Finished, done(first.ID, first.Fence))
	want(b.T, "waiting after it", len(r.lag(all()).Waiting), 2)
}

func endedRunSkipsNothing(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	first := r.runs(1, due)[0]
	b.finishes(idempotency.Finished, waits(first.ID, first.Fence, b.ago(-time.Hour)))
	second := r.runs(1, due.Add(time.Second))[0]
	want(b.T, "state beside a waiting run", second.State, idempotency.Running)
	b.finishes(idempotency.Finished, done(second.ID, second.Fence))
	third := r.runs(1, due.Add(2*time.Second))[0]
	want(b.T, "state after an ended run", third.State, idempotency.Running)
}

// I2: what does not run is recorded, in the same transaction.
func rangesAreRecorded(b *bundle) {
	r := b.ready("a", "h1")
	d := r.decision(plain, b.ago(time.Minute))
	d.Ranges = []idempotency.Range{
		{Job: plain, From: b.ago(10 * time.Hour), To: b.ago(9 * time.Hour), Count: 3600, Outcome: idempotency.Missed, Reason: "outage"},
		{Job: plain, From: b.ago(8 * time.Hour), To: b.ago(8 * time.Hour), Count: 1, Outcome: idempotency.Skipped, Reason: "paused"},
	}
	want(b.T, "won", r.decide(d).Won, true)
	got := b.ranges(plain)
	want(b.T, "ranges", len(got), 2)
	for i, x := range got {
		want(b.T, "range", x, d.Ranges[i])
	}
}

// A job with keys gets open dues, and no runs yet.
func keyedOpensDues(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	d := r.decision(keyed, due, due.Add(time.Second))
	d.Claim, d.CatchUp = 5, true
	a := r.decide(d)
	want(b.T, "won", a.Won, true)
	want(b.T, "runs", len(a.Runs)+len(b.list(idempotency.Filter{})), 0)
	open := r.lag(all()).Open
	want(b.T, "open dues", len(open), 2)
	for i, x := range open {
		want(b.T, "job", x.Job, keyed)
		wantTime(b, "due", x.Due, d.Run[i])
		want(b.T, "catch up", x.CatchUp, true)
		want(b.T, "by hand", x.ByHand, false)
		if x.Opened.Before(r.now) {
			b.Fatalf("opened at %v, before the decision", x.Opened)
		}
		want(b.T, "finished bits", len(x.Finished), partitions/8)
		want(b.T, "passes", len(x.Passes), 0)
	}
	r.wins(r.insert("k", due))
}

// F2: what was closed stays closed, whatever is decided later.
func closedDueStaysClosed(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	r.opens(due)
	r.finishedAll(due)
	d := r.decision(keyed, due.Add(time.Second))
	want(b.T, "won", r.decide(d).Won, true)
	r.gets(idempotency.Closed, r.insert("k", due))
	open := r.lag(all()).Open
	want(b.T, "open dues", len(open), 1)
	wantTime(b, "due", open[0].Due, due.Add(time.Second))
	want(b.T, "catch up", open[0].CatchUp, false)
}

// Decisions of one batch are won or lost each for itself, in order.
func eachOfABatchAlone(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	won, lost := r.decision(plain, due), r.decision(keyed, due)
	lost.Seen.Hash = "h0"
	r.nonce++
	a, err := r.store.Decide(b.Context(), r.session, r.nonce, []idempotency.Decision{lost, won})
	r.alive("decide", err)
	want(b.T, "answers", len(a), 2)
	want(b.T, "won, first", a[0].Won, false)
	want(b.T, "job, first", a[0].Entry.Job, keyed)
	want(b.T, "won, second", a[1].Won, true)
	want(b.T, "job, second", a[1].Entry.Job, plain)
	want(b.T, "open dues", len(r.lag(all()).Open), 0)
	want(b.T, "rows", len(b.list(idempotency.Filter{})), 1)
}
