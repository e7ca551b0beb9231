package storetest

import (
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

var finishLaws = []law{
	{"OlderFenceIsFenced", olderFenceIsFenced},
	{"RepeatedIsAlready", finishRepeatedIsAlready},
	{"DoneIsCompleted", doneIsCompleted},
	{"WaitingWithMyFenceIsAlready", waitingWithMyFenceIsAlready},
	{"NeedsNoLiveSession", finishNeedsNoLiveSession},
	{"WritesTheEnd", finishWritesTheEnd},
	{"OfNoRowIsFenced", finishOfNoRowIsFenced},
	{"EachOfABatchAlone", finishEachAlone},
}

var fenceLaws = []law{
	{"RisesPerKey", fenceRisesPerKey},
	{"RisesAcrossReopen", fenceRisesAcrossReopen},
}

// I4, F10: the store itself refuses the overtaken holder.
func olderFenceIsFenced(b *bundle) {
	r := b.ready("a", "h1")
	x := r.runs(1, b.ago(time.Minute))[0]
	b.finishes(idempotency.Finished, waits(x.ID, x.Fence, b.ago(time.Minute)))
	fence := r.wins(r.takeUp(x.ID, x.Fence)).Fence
	for _, f := range []idempotency.Finish{done(x.ID, x.Fence), waits(x.ID, x.Fence, b.ago(time.Minute)), done(x.ID, fence+1)} {
		b.finishes(idempotency.Fenced, f)
		want(b.T, "state", b.row(x.ID).State, idempotency.Running)
	}
	b.finishes(idempotency.Finished, done(x.ID, fence))
	b.finishes(idempotency.Fenced, done(x.ID, x.Fence))
}

// F44: an unanswered finish is repeated as it was, and changes nothing more.
func finishRepeatedIsAlready(b *bundle) {
	r := b.ready("a", "h1")
	x := r.runs(1, b.ago(time.Minute))[0]
	f := done(x.ID, x.Fence)
	b.finishes(idempotency.Finished, f)
	before := b.row(x.ID)
	b.finishes(idempotency.Already, f, f)
	f.Attempt, f.Text = 9, "another"
	b.finishes(idempotency.Already, f)
	after := b.row(x.ID)
	want(b.T, "outcome", after.Outcome, idempotency.Done)
	want(b.T, "attempts", after.Attempt, 1)
	want(b.T, "text", after.Text, before.Text)
	wantTime(b, "finished", after.Finished, before.Finished)
}

// A run that its handler completed in a transaction of its own stays done, and who has heard otherwise learns it. F05.
func doneIsCompleted(b *bundle) {
	r := b.ready("a", "h1")
	runs := r.runs(2, b.ago(2*time.Minute), b.ago(time.Minute))
	x, other := runs[0], runs[1]
	b.finishes(idempotency.Finished, done(x.ID, x.Fence))
	failed := done(x.ID, x.Fence)
	failed.Outcome, failed.Attempt, failed.Text = idempotency.Failed, 9, "another"
	b.finishes(idempotency.Completed, failed, waits(x.ID, x.Fence, b.ago(time.Minute)))
	b.finishes(idempotency.Fenced, waits(x.ID, x.Fence+100, b.ago(time.Minute)))
	row := b.row(x.ID)
	want(b.T, "outcome", row.Outcome, idempotency.Done)
	want(b.T, "attempts", row.Attempt, 1)

	fence := r.wins(r.takeUp(other.ID, 0)).Fence
	failed.ID, failed.Fence = other.ID, fence
	b.finishes(idempotency.Finished, failed)
	b.finishes(idempotency.Already, failed, waits(other.ID, fence, b.ago(time.Minute)))
	b.finishes(idempotency.Fenced, done(other.ID, fence))
}

// R5: a late done of a run that was released does not end it, and is told so.
func waitingWithMyFenceIsAlready(b *bundle) {
	r := b.ready("a", "h1")
	x := r.runs(1, b.ago(time.Minute))[0]
	b.finishes(idempotency.Finished, waits(x.ID, x.Fence, b.ago(time.Minute)))
	b.finishes(idempotency.Fenced, done(x.ID, x.Fence))
	b.finishes(idempotency.Already, waits(x.ID, x.Fence, b.ago(-time.Hour)))
	row := b.row(x.ID)
	want(b.T, "state", row.State, idempotency.Waiting)
	want(b.T, "fence", row.Fence, x.Fence)
	wantTime(b, "wake", row.Wake, b.ago(time.Minute))
	want(b.T, "mine", len(r.mine()), 0)
}

// R4: a finish is by its fence alone.
func finishNeedsNoLiveSession(b *bundle) {
	lapsed, closed := b.ready("lapsed", "h1", b.brief), b.ready("closed", "h1")
	due := b.ago(time.Minute)
	closed.opens(due)
	c, d := lapsed.insert("k", due), closed.insert("l", due)
	x, y := lapsed.wins(c).Fence, closed.wins(d).Fence
	closed.close()
	lapsed.lapse()
	b.open("witness").mark(lapsed)
	b.finishes(idempotency.Finished, done(c.ID, x), done(d.ID, y))
	want(b.T, "outcome", b.row(c.ID).Outcome, idempotency.Done)
}

func finishWritesTheEnd(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	r.opens(due)
	for i, o := range []idempotency.Outcome{idempotency.Done, idempotency.Failed, idempotency.Skipped, idempotency.Wait} {
		c := r.insert(string(rune('a'+i)), due)
		fence := r.wins(c).Fence
		f := idempotency.Finish{ID: c.ID, Fence: fence, Outcome: o, Attempt: i + 1, Reason: "because", Text: "a long story"}
		if o == idempotency.Wait {
			f.Wake = due.Add(time.Microsecond)
		}
		b.finishes(idempotency.Finished, f)
		row := b.row(c.ID)
		want(b.T, "attempts", row.Attempt, i+1)
		want(b.T, "reason", row.Reason, "because")
		want(b.T, "text", row.Text, "a long story")
		want(b.T, "fence", row.Fence, fence)
		want(b.T, "session", row.Session, r.session.ID)
		want(b.T, "replica", row.Replica, "a")
		if o == idempotency.Wait {
			want(b.T, "state", row.State, idempotency.Waiting)
			want(b.T, "outcome", row.Outcome, 0)
			wantTime(b, "wake", row.Wake, f.Wake)
			continue
		}
		want(b.T, "state", row.State, idempotency.Ended)
		want(b.T, "outcome", row.Outcome, o)
		if row.Finished.Before(row.Started) || row.Started.Before(r.now) {
			b.Fatalf("opened at %v, started at %v, finished at %v", r.now, row.Started, row.Finished)
		}
	}
}

func finishOfNoRowIsFenced(b *bundle) {
	b.finishes(idempotency.Fenced, done(key("k", time.Unix(1e9, 0)), 1)) // nor a namespace
	r := b.ready("a", "h1")
	x := r.runs(0, b.ago(time.Minute))[0]
	b.finishes(idempotency.Fenced, done(x.ID, 1), done(key("k", x.ID.Due), 1))
	want(b.T, "state of the row that nobody claimed", b.row(x.ID).State, idempotency.Waiting)
}

func finishEachAlone(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	r.opens(due)
	x, y := r.wins(r.insert("x", due)).Fence, r.wins(r.insert("y", due)).Fence
	f := []idempotency.Finish{done(key("y", due), x), done(key("x", due), x), done(key("none", due), y), done(key("x", due), x), done(key("y", due), y)}
	got, err := b.Store.Finish(b.Context(), namespace, f)
	if err != nil {
		b.Fatal(err)
	}
	for i, a := range []idempotency.FinishAnswer{idempotency.Fenced, idempotency.Finished, idempotency.Fenced, idempotency.Already, idempotency.Finished} {
		want(b.T, "answer", got[i], a)
	}
}

// I3: every later claim of a key has a higher fence, however it came about.
func fenceRisesPerKey(b *bundle) {
	a := b.ready("a", "h1")
	due := b.ago(time.Minute)
	last := int64(0)
	rises := func(how string, fence int64) {
		b.Helper()
		if fence <= last {
			b.Fatalf("fence of %s: %d, not above %d", how, fence, last)
		}
		last = fence
	}
	for i := range 3 {
		x := a.runs(1, due.Add(time.Duration(i)*time.Second))[0]
		rises("a decision", x.Fence)
		b.finishes(idempotency.Finished, waits(x.ID, x.Fence, due))
		rises("a take-up after waiting", a.wins(a.takeUp(x.ID, last)).Fence)
		gone := b.ready("gone", "h1")
		b.finishes(idempotency.Finished, waits(x.ID, last, due))
		rises("another's take-up", gone.wins(gone.takeUp(x.ID, last)).Fence)
		gone.close()
		rises("a take-up after a crash", a.wins(a.takeUp(x.ID, last)).Fence)
		b.finishes(idempotency.Finished, done(x.ID, last))
	}
	a.opens(due, due.Add(time.Second))
	seen := map[int64]bool{}
	for i := range 2 {
		for _, k := range []string{"k", "l", "m"} {
			c := a.insert(k, due.Add(time.Duration(i)*time.Second))
			fence := a.wins(c).Fence
			rises("an insert", fence)
			b.finishes(idempotency.Finished, done(c.ID, fence))
			want(b.T, "fence used twice", seen[fence], false)
			seen[fence] = true
		}
	}
}

// I3, F33: also across a restart of the store, and when the row with the
// highest fence was pruned before it.
func fenceRisesAcrossReopen(b *bundle) {
	if b.Reopen == nil {
		b.Skip("the driver forgets")
	}
	r := b.ready("a", "h1")
	last := int64(0)
	for i := range 4 {
		x := r.runs(1, b.ago(time.Duration(60-i)*time.Minute))[0]
		if x.Fence <= last {
			b.Fatalf("fence %d, not above %d", x.Fence, last)
		}
		last = x.Fence
		b.finishes(idempotency.Finished, done(x.ID, x.Fence))
		short := b.open("short", func(o *idempotency.Opening) { o.Horizon, o.Retention = time.Second, 2*time.Second })
		if _, err := short.store.Prune(b.Context(), short.session, 100); err != nil {
			b.Fatal(err)
		}
		want(b.T, "state of the pruned row", b.row(x.ID).State, 0)
		b.Store = b.Reopen(b.T)
		r.store = b.Store
	}
}
