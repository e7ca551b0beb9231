package storetest

import (
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

var cancelLaws = []law{
	{"WaitingRunIsSkipped", cancelOfAWaitingRun},
	{"RunningRunIsTold", cancelOfARunningRun},
	{"EndedRunIsRejected", cancelOfAnEndedRun},
	{"RunFromWhenTheJobHadKeys", cancelOfAnOldKey},
	{"BeatsOvertaken", cancelBeatsOvertaken},
	{"ToldRunDoesNotWait", toldRunDoesNotWait},
	{"ToldRunEndsAsItsHolderSays", toldRunEndsAsItsHolderSays},
	{"TakeUpEndsAToldOrphan", takeUpEndsAToldOrphan},
	{"RetryMakesAFailedRunWait", retryMakesAFailedRunWait},
	{"RetryOfOthersIsRejected", retryOfOthersIsRejected},
	{"RetriedRunIsNotItsOldHolders", retriedRunIsNotItsOldHolders},
}

func cancelOfAWaitingRun(b *bundle) {
	r := b.ready("a", "h1")
	x := r.runs(1, b.ago(time.Minute))[0]
	f := waits(x.ID, x.Fence, b.ago(-time.Hour))
	f.Attempt, f.Text = 2, "failed twice"
	b.finishes(idempotency.Finished, f)
	id := x.ID
	id.Key = "" // of a job without keys it is its name
	want(b.T, "changed", b.submit(ask("c", idempotency.Cancel, id)).Changed, 1)
	got := b.ends(x.ID, idempotency.Skipped, "by hand")
	want(b.T, "attempts", got.Attempt, 2)
	want(b.T, "text", got.Text, "failed twice")
	want(b.T, "waiting", len(r.lag(all()).Waiting), 0)
	r.gets(idempotency.Taken, r.takeUp(x.ID, x.Fence))
}

func cancelOfARunningRun(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	r.opens(due)
	c := r.insert("k", due)
	c.ID.Request = "by-hand"
	r.wins(c)
	r.wins(r.insert("other", due))
	want(b.T, "changed", b.submit(ask("c1", idempotency.Cancel, c.ID)).Changed, 1)
	want(b.T, "changed again", b.submit(ask("c2", idempotency.Cancel, c.ID)).Changed, 0)
	want(b.T, "mark", b.in(c.ID, idempotency.Running).Cancel, idempotency.Canceled)
	for _, x := range r.mine() {
		want(b.T, "mark in the holder's listing", x.Cancel == idempotency.Canceled, x.ID == c.ID)
	}
}

func cancelOfAnEndedRun(b *bundle) {
	r := b.ready("a", "h1")
	x := r.runs(1, b.ago(time.Minute))[0]
	b.finishes(idempotency.Finished, done(x.ID, x.Fence))
	b.rejects("a run that has ended", ask("c", idempotency.Cancel, x.ID))
	b.rejects("a run that is not there", ask("c", idempotency.Cancel, key("k", x.ID.Due)))
	x.ID.Request = "r"
	b.rejects("a request that is not there", ask("c", idempotency.Cancel, x.ID))
}

// The job lost its keys in a deploy. Its runs by key are still there, and people can end them and have them run again.
func cancelOfAnOldKey(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	r.opens(due)
	waiting, running, failed := r.insert("waiting", due), r.insert("running", due), r.insert("failed", due)
	f := done(failed.ID, r.wins(failed).Fence)
	f.Outcome = idempotency.Failed
	b.finishes(idempotency.Finished, f, waits(waiting.ID, r.wins(waiting).Fence, due))
	r.wins(running)

	z := b.open("z")
	z.declare("h2", keyed)
	z.defs[0].Keyed = false
	d := z.decision(keyed, due.Add(time.Second))
	d.Definition.Keyed, d.Keyed = false, false
	after := z.decide(d)
	want(b.T, "keyed after the deploy", after.Entry.Keyed, false)
	want(b.T, "runs after the deploy", names(after.Runs), names([]idempotency.Run{{ID: idempotency.ID{Job: keyed, Key: keyed, Due: d.Run[0]}}}))

	want(b.T, "changed of the one that waits", b.submit(ask("c1", idempotency.Cancel, waiting.ID)).Changed, 1)
	b.ends(waiting.ID, idempotency.Skipped, "by hand")
	want(b.T, "changed of the one at work", b.submit(ask("c2", idempotency.Cancel, running.ID)).Changed, 1)
	want(b.T, "mark", b.in(running.ID, idempotency.Running).Cancel, idempotency.Canceled)
	want(b.T, "changed of the one that failed", b.submit(ask("r", idempotency.Retry, failed.ID)).Changed, 1)
	b.in(failed.ID, idempotency.Waiting)
	want(b.T, "changed of the one since, without a key", b.submit(ask("c3", idempotency.Cancel, idempotency.ID{Job: keyed, Due: d.Run[0]})).Changed, 1)
	b.ends(after.Runs[0].ID, idempotency.Skipped, "by hand")
	b.rejects("a key that never ran", ask("c4", idempotency.Cancel, key("k", due)))
	b.rejects("a key for a new run", ask("t", idempotency.Trigger, failed.ID))
}

func cancelBeatsOvertaken(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	x := r.runs(1, due)[0]
	r.overlaps(idempotency.OverlapCancel, due.Add(time.Second))
	want(b.T, "mark", b.row(x.ID).Cancel, idempotency.Overtaken)
	want(b.T, "changed", b.submit(ask("c", idempotency.Cancel, x.ID)).Changed, 1)
	want(b.T, "mark after it", b.row(x.ID).Cancel, idempotency.Canceled)
}

// told makes two runs of the job with keys: one canceled, one overtaken.
func told(b *bundle, r *replica) (canceled, overtaken idempotency.ID, fences [2]int64) {
	b.Helper()
	due := b.ago(time.Minute)
	r.opens(due, due.Add(time.Second))
	c, o := r.insert("canceled", due), r.insert("overtaken", due)
	fences = [2]int64{r.wins(c).Fence, r.wins(o).Fence}
	b.submit(ask("c", idempotency.Cancel, c.ID))
	r.gets(idempotency.Busy, r.overtakes("overtaken", due.Add(time.Second)))
	return c.ID, o.ID, fences
}

// A handler that was told to end and failed is not tried again, nor is one that a leaving replica releases.
func toldRunDoesNotWait(b *bundle) {
	r := b.ready("a", "h1")
	canceled, overtaken, fences := told(b, r)
	for i, id := range []idempotency.ID{canceled, overtaken} {
		f := waits(id, fences[i], b.ago(0))
		f.Attempt, f.Reason, f.Text = 3, "error", "context canceled"
		b.finishes(idempotency.Finished, f)
		b.finishes(idempotency.Already, f)
	}
	x := b.ends(canceled, idempotency.Failed, idempotency.Canceled)
	want(b.T, "attempts", x.Attempt, 3)
	want(b.T, "text", x.Text, "context canceled")
	x = b.ends(overtaken, idempotency.Skipped, idempotency.Overtaken)
	want(b.T, "attempts", x.Attempt, 3)
	want(b.T, "text", x.Text, "context canceled")
	want(b.T, "waiting", keys(r.lag(all()).Waiting), "[overtaken]") // the one that overtook it
}

func toldRunEndsAsItsHolderSays(b *bundle) {
	r := b.ready("a", "h1")
	canceled, overtaken, fences := told(b, r)
	f := done(overtaken, fences[1])
	f.Outcome, f.Reason = idempotency.Failed, "exhausted"
	b.finishes(idempotency.Finished, done(canceled, fences[0]), f)
	b.ends(canceled, idempotency.Done, "")
	b.ends(overtaken, idempotency.Failed, "exhausted")
}

// Nobody starts it again. It is answered as what has ended is.
func takeUpEndsAToldOrphan(b *bundle) {
	r, gone := b.ready("a", "h1"), b.ready("gone", "h1")
	canceled, overtaken, fences := told(b, gone)
	ids := []idempotency.ID{canceled, overtaken}
	for i, id := range ids {
		r.gets(idempotency.Taken, r.takeUp(id, fences[i]))
		b.in(id, idempotency.Running) // its session lives
	}
	gone.close()
	r.gets(idempotency.Taken, r.takeUp(canceled, fences[0]+1)) // not as it was seen
	b.in(canceled, idempotency.Running)
	want(b.T, "orphans", len(r.lag(all()).Orphaned), 2)
	for i, a := range r.claim(r.takeUp(canceled, fences[0]), r.takeUp(overtaken, fences[1])) {
		want(b.T, "verdict", a.Verdict, idempotency.Taken)
		outcome, reason := idempotency.Failed, idempotency.Canceled
		if i == 1 {
			outcome, reason = idempotency.Skipped, idempotency.Overtaken
		}
		x := b.ends(ids[i], outcome, reason)
		want(b.T, "crashes and attempts", x.Crashes+x.Attempt, 0)
		want(b.T, "fence", x.Fence, fences[i])
	}
	want(b.T, "orphans after it", len(r.lag(all()).Orphaned), 0)
	r.wins(r.takeUp(key("overtaken", overtaken.Due.Add(time.Second)), 0)) // the key is free
	b.finishes(idempotency.Already, waits(canceled, fences[0], b.ago(0)))
	b.finishes(idempotency.Fenced, done(canceled, fences[0]), done(overtaken, fences[1])) // its holder was not gone, and is late
}

// DESIGN §5.12: failed -> waiting, by hand, with all attempts. It keeps its fence, so that later ones are higher.
func retryMakesAFailedRunWait(b *bundle) {
	r, gone := b.ready("a", "h1"), b.ready("gone", "h1")
	x := gone.runs(1, b.ago(time.Hour))[0]
	gone.close()
	fence := r.wins(r.takeUp(x.ID, x.Fence)).Fence
	f := done(x.ID, fence)
	f.Outcome, f.Attempt, f.Reason, f.Text = idempotency.Failed, 5, "exhausted", "no route"
	b.finishes(idempotency.Finished, f)
	want(b.T, "changed", b.submit(ask("r1", idempotency.Retry, x.ID)).Changed, 1)
	got := b.in(x.ID, idempotency.Waiting)
	want(b.T, "attempts and crashes", got.Attempt+got.Crashes, 0)
	want(b.T, "outcome", got.Outcome, 0)
	want(b.T, "reason", got.Reason, "by hand")
	want(b.T, "text", got.Text, "")
	want(b.T, "fence", got.Fence, fence)
	if !got.Finished.IsZero() || got.Wake.Before(r.now) {
		b.Fatalf("times of a run that is retried: %+v", got)
	}
	want(b.T, "waiting", names(r.lag(all()).Waiting), names([]idempotency.Run{got}))
	b.rejects("a run that waits", ask("r2", idempotency.Retry, x.ID))
	a := r.wins(r.takeUp(x.ID, fence))
	want(b.T, "attempts and crashes of the take-up", a.Attempt+a.Crashes, 0)
	if a.Fence <= fence {
		b.Fatalf("fence %d of a retry, not above %d", a.Fence, fence)
	}
	b.finishes(idempotency.Finished, done(x.ID, a.Fence))
	b.ends(x.ID, idempotency.Done, "")
}

func retryOfOthersIsRejected(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	x := r.runs(1, due)[0]
	b.rejects("a run at work", ask("r", idempotency.Retry, x.ID))
	b.finishes(idempotency.Finished, done(x.ID, x.Fence))
	b.rejects("a run that is done", ask("r", idempotency.Retry, x.ID))
	b.rejects("a run that is not there", ask("r", idempotency.Retry, key("k", due)))
	waiting := r.runs(0, due.Add(time.Second))[0]
	b.submit(ask("c", idempotency.Cancel, waiting.ID))
	b.rejects("a run that was skipped", ask("r", idempotency.Retry, waiting.ID))
}

// A finish or a claim that comes late, or again, changes nothing of a run that waits again.
func retriedRunIsNotItsOldHolders(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	r.opens(due)
	c := r.insert("k", due)
	fence := r.claimAs(7, c)[0].Fence
	f := done(c.ID, fence)
	f.Outcome = idempotency.Failed
	b.finishes(idempotency.Finished, f)
	b.submit(ask("r", idempotency.Retry, c.ID))
	want(b.T, "verdict of the old claim", r.claimAs(7, c)[0].Verdict, idempotency.Taken)
	b.finishes(idempotency.Already, f)
	b.in(c.ID, idempotency.Waiting)
}
