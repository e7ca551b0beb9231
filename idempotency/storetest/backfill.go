package storetest

import (
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

var backfillLaws = []law{
	{"RunsWhatDidNot", backfillRunsWhatDidNot},
	{"OneKey", backfillOfOneKey},
	{"AllKeysOpenTheDue", backfillOfAllKeys},
	{"AllKeysOfASkippedDue", backfillOfASkippedDue},
	{"AllKeysBeyondTheHorizonIsRejected", backfillBeyondTheHorizon},
	{"UndecidedIsRejected", backfillOfUndecidedDues},
	{"PrunedIsRejected", backfillOfPrunedDues},
	{"PrunedRangeIsRejected", backfillOfAPrunedRange},
	{"EfficiencyJobIsRejected", backfillOfAnEfficiencyJob},
}

func fill(request string, id idempotency.ID, dues ...time.Time) idempotency.Command {
	c := ask(request, idempotency.Backfill, id)
	c.Dues = dues
	return c
}

// DESIGN §5.12: missed or skipped -> waiting; no row -> waiting; nothing that ran runs again.
func backfillRunsWhatDidNot(b *bundle) {
	r := b.ready("a", "h1")
	due := repeat(8, func(i int) time.Time { return b.ago(time.Duration(60-i) * time.Minute) })
	at := func(i int) idempotency.ID { return idempotency.ID{Job: plain, Key: plain, Due: due[i]} }
	end := func(i int, o idempotency.Outcome, attempts int) {
		x := r.runs(1, due[i])[0]
		f := done(x.ID, x.Fence)
		f.Outcome, f.Attempt, f.Reason, f.Text = o, attempts, "said so", "as it was"
		b.finishes(idempotency.Finished, f)
	}
	end(0, idempotency.Done, 1)
	end(1, idempotency.Failed, 5)
	end(2, idempotency.Skipped, 2)
	r.runs(0, due[3])
	r.runs(1, due[4])
	b.skips(r.runs(1, due[5])[0].ID, "overlap")
	d := r.decision(plain)
	d.Opened = due[7] // due[6] and due[7] have no row
	d.Ranges = []idempotency.Range{{Job: plain, From: due[6], To: due[7], Count: 2, Outcome: idempotency.Missed, Reason: "late"}}
	want(b.T, "won", r.decide(d).Won, true)
	old := b.row(at(2))

	c := b.submit(fill("b1", idempotency.ID{Job: plain}, due...))
	want(b.T, "changed", c.Changed, 4)
	b.ends(at(0), idempotency.Done, "said so")
	b.ends(at(1), idempotency.Failed, "said so")
	b.in(at(4), idempotency.Running)
	want(b.T, "reason of what waited before", b.in(at(3), idempotency.Waiting).Reason, "")
	for _, i := range []int{2, 5, 6, 7} {
		x := b.in(at(i), idempotency.Waiting)
		want(b.T, "reason", x.Reason, "by hand")
		want(b.T, "text", x.Text, "")
		want(b.T, "outcome", x.Outcome, 0)
		want(b.T, "attempts and crashes", x.Attempt+x.Crashes, 0)
		wantTime(b, "wake", x.Wake, c.At)
		want(b.T, "finished", x.Finished.IsZero(), true)
	}
	want(b.T, "fence of what ran before", b.row(at(2)).Fence, old.Fence)
	want(b.T, "ranges", len(b.ranges(plain)), 1) // what was, was
	want(b.T, "changed by another", b.submit(fill("b2", idempotency.ID{Job: plain, Key: plain}, due...)).Changed, 0)
}

func backfillOfOneKey(b *bundle) {
	r := b.ready("a", "h1")
	open, closed, missed := b.ago(3*time.Minute), b.ago(2*time.Minute), b.ago(time.Minute)
	r.opens(open, closed)
	c := r.insert("k", closed)
	b.finishes(idempotency.Finished, done(c.ID, r.wins(c).Fence))
	r.finishedAll(closed)
	d := r.decision(keyed)
	d.Opened = missed
	want(b.T, "won", r.decide(d).Won, true)
	want(b.T, "changed", b.submit(fill("b", idempotency.ID{Job: keyed, Key: "k"}, open, closed, missed)).Changed, 2)
	b.in(key("k", open), idempotency.Waiting)
	b.in(key("k", missed), idempotency.Waiting)
	b.ends(c.ID, idempotency.Done, "")
	r.gets(idempotency.Taken, r.insert("k", open)) // the pass finds it settled
	want(b.T, "open dues", len(r.lag(all()).Open), 1)
	long := b.ago(900 * time.Hour) // one key may be older than the horizon
	want(b.T, "changed by an old one", b.submit(fill("b2", idempotency.ID{Job: keyed, Key: "k"}, long)).Changed, 1)
	r.wins(r.takeUp(key("k", long), 0))
}

func backfillOfAllKeys(b *bundle) {
	r := b.ready("a", "h1")
	due := repeat(4, func(i int) time.Time { return b.ago(time.Duration(10-i) * time.Minute) })
	r.opens(due[0], due[1])
	r.finishedAll(due[0])
	d := r.decision(keyed)
	d.Opened = due[3]
	want(b.T, "won", r.decide(d).Won, true)
	c := b.submit(fill("b1", idempotency.ID{Job: keyed}, due...))
	want(b.T, "changed", c.Changed, 2)
	open := r.lag(all()).Open
	want(b.T, "open dues", len(open), 3)
	for i, x := range open {
		wantTime(b, "due", x.Due, due[i+1])
		want(b.T, "catch up", x.CatchUp, i > 0)
		want(b.T, "by hand", x.ByHand, i > 0)
		if i > 0 {
			wantTime(b, "opened", x.Opened, c.At)
		}
	}
	want(b.T, "changed by another", b.submit(fill("b2", idempotency.ID{Job: keyed}, due...)).Changed, 0)
	r.wins(r.insert("k", due[3]))
	r.gets(idempotency.Closed, r.insert("k", due[0]))
}

// A due that was skipped by hand was never open.
func backfillOfASkippedDue(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	b.submit(ask("s", idempotency.Skip, idempotency.ID{Job: keyed, Due: due}))
	r.opens(due, due.Add(time.Second))
	c := b.submit(fill("b", idempotency.ID{Job: keyed}, due, due.Add(time.Second)))
	want(b.T, "changed", c.Changed, 1)
	open := r.lag(all()).Open
	want(b.T, "open dues", len(open), 2)
	wantTime(b, "due", open[0].Due, due)
	wantTime(b, "opened", open[0].Opened, c.At)
	want(b.T, "catch up", open[0].CatchUp, true)
	for i, x := range open {
		want(b.T, "by hand", x.ByHand, i == 0)
	}
	r.wins(r.insert("k", due))
	r.finishedAll(due)
	want(b.T, "changed once it was open", b.submit(fill("b2", idempotency.ID{Job: keyed}, due)).Changed, 0)
	dues := b.dues(keyed, time.Time{}, time.Time{})
	want(b.T, "dues that were opened", len(dues), 2)
	wantTime(b, "opened", dues[0].Opened, c.At)
}

// No key of such a due could be claimed. The horizon is that of the session that was opened last.
func backfillBeyondTheHorizon(b *bundle) {
	r := b.ready("a", "h1")
	due := []time.Time{b.ago(2 * time.Hour), b.ago(time.Hour)}
	r.opens(b.ago(30 * time.Minute))
	b.rejects("a due beyond the horizon", fill("b", idempotency.ID{Job: keyed}, due...))
	b.open("long", func(o *idempotency.Opening) { o.Horizon, o.Retention = 3*time.Hour, 4*time.Hour }).close()
	want(b.T, "changed with a longer horizon", b.submit(fill("b", idempotency.ID{Job: keyed}, due...)).Changed, 2)
	b.open("short", forgetful)
	want(b.T, "changed of what is open", b.submit(fill("b2", idempotency.ID{Job: keyed}, due...)).Changed, 0)
}

func backfillOfUndecidedDues(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	r.runs(0, due)
	for _, id := range []idempotency.ID{{Job: plain}, {Job: keyed, Key: "k"}, {Job: keyed}} {
		b.rejects("dues of which one is not decided", fill("b", id, due.Add(-time.Second), due.Add(time.Second)))
	}
	want(b.T, "changed", b.submit(fill("b", idempotency.ID{Job: plain}, due.Add(-time.Second), due)).Changed, 1)
}

// F13: what retention has removed may have been done.
func backfillOfPrunedDues(b *bundle) {
	r := b.ready("a", "h1")
	r.ended(b.ago(12*time.Hour), b.ago(10*time.Hour), b.ago(time.Hour))
	r.opens(b.ago(time.Minute))
	long := b.ago(20 * time.Hour)
	want(b.T, "changed before", b.submit(fill("b1", idempotency.ID{Job: keyed, Key: "k"}, long)).Changed, 1)
	want(b.T, "removed", r.prune(1), 1)
	b.rejects("what was removed", fill("b2", idempotency.ID{Job: plain}, b.ago(12*time.Hour)))
	want(b.T, "changed above it", b.submit(fill("b2", idempotency.ID{Job: plain}, b.ago(11*time.Hour))).Changed, 1)
	want(b.T, "removed", r.prune(1), 1)
	b.rejects("a due below what was removed", fill("b3", idempotency.ID{Job: plain}, b.ago(11*time.Hour), b.ago(2*time.Hour)))
	b.rejects("another job's", fill("b3", idempotency.ID{Job: keyed, Key: "l"}, b.ago(11*time.Hour))) // its instant is the namespace's
	want(b.T, "changed", b.submit(fill("b3", idempotency.ID{Job: plain}, b.ago(9*time.Hour), b.ago(2*time.Hour))).Changed, 2)
	for _, x := range b.list(idempotency.Filter{Job: keyed}) {
		wantTime(b, "what waits is not removed", x.ID.Due, long)
	}
}

// The same for closed dues and ranges.
func backfillOfAPrunedRange(b *bundle) {
	r := b.ready("a", "h1")
	r.opens(b.ago(12*time.Hour), b.ago(time.Minute))
	r.finishedAll(b.ago(12 * time.Hour))
	r.skipped(plain, b.ago(11*time.Hour), b.ago(10*time.Hour))
	r.ended(b.ago(time.Minute))
	want(b.T, "removed", r.prune(1), 1)
	b.rejects("a due that was removed", fill("b", idempotency.ID{Job: keyed, Key: "k"}, b.ago(12*time.Hour)))
	want(b.T, "changed", b.submit(fill("b", idempotency.ID{Job: plain}, b.ago(12*time.Hour).Add(time.Second))).Changed, 1)
	want(b.T, "removed", r.prune(1), 1)
	b.rejects("the end of a range that was removed", fill("b2", idempotency.ID{Job: plain}, b.ago(10*time.Hour)))
}

func backfillOfAnEfficiencyJob(b *bundle) {
	b.efficient("a", "h1")
	b.rejects("an efficiency job", fill("b", idempotency.ID{Job: plain}, b.ago(time.Hour)))
}
