package storetest

import (
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

var skipLaws = []law{
	{"DueOfAJobWithoutKeys", skipOfAJobWithoutKeys},
	{"OneKey", skipOfOneKey},
	{"AllKeys", skipOfAllKeys},
	{"DecidedIsRejected", skipOfADecidedDue},
	{"OpenedIsRejected", skipOfAnOpenedDue},
	{"EfficiencyJobIsRejected", skipOfAnEfficiencyJob},
}

// lax may decide dues of the next hours.
func lax(o *idempotency.Opening) { o.Tolerance = 24 * time.Hour }

func skipOfAJobWithoutKeys(b *bundle) {
	r := b.ready("a", "h1", lax)
	due := b.ago(-time.Hour)
	c := b.submit(ask("s1", idempotency.Skip, idempotency.ID{Job: plain, Due: due}))
	want(b.T, "changed", c.Changed, 1)
	id := idempotency.ID{Job: plain, Key: plain, Due: due}
	x := b.ends(id, idempotency.Skipped, "by hand")
	want(b.T, "fence", x.Fence, 0)
	wantTime(b, "finished", x.Finished, c.At)
	want(b.T, "changed by another", b.submit(ask("s2", idempotency.Skip, id)).Changed, 0)

	d := r.decision(plain, due.Add(-time.Second), due, due.Add(time.Second))
	d.Claim = 3
	for _, x := range r.decide(d).Runs {
		want(b.T, "the due is among those that run", x.ID.Due.Equal(due), false)
	}
	b.ends(id, idempotency.Skipped, "by hand")
	want(b.T, "rows", len(b.list(idempotency.Filter{})), 3)
	b.in(idempotency.ID{Job: plain, Key: plain, Due: due.Add(-time.Second)}, idempotency.Running)
}

// The others of the due run.
func skipOfOneKey(b *bundle) {
	r := b.ready("a", "h1", lax)
	due := b.ago(-time.Hour)
	want(b.T, "changed", b.submit(ask("s1", idempotency.Skip, key("k", due))).Changed, 1)
	want(b.T, "changed by another", b.submit(ask("s2", idempotency.Skip, key("k", due))).Changed, 0)
	r.opens(due)
	r.gets(idempotency.Taken, r.insert("k", due))
	r.wins(r.insert("l", due))
	b.ends(key("k", due), idempotency.Skipped, "by hand")
}

func skipOfAllKeys(b *bundle) {
	r := b.ready("a", "h1", lax)
	due := b.ago(-time.Hour)
	want(b.T, "changed", b.submit(ask("s1", idempotency.Skip, idempotency.ID{Job: keyed, Due: due})).Changed, 1)
	want(b.T, "changed by another", b.submit(ask("s2", idempotency.Skip, idempotency.ID{Job: keyed, Due: due})).Changed, 0)
	got := b.ranges(keyed)
	want(b.T, "ranges", len(got), 1)
	want(b.T, "range", got[0], idempotency.Range{Job: keyed, From: due, To: due, Count: 1, Outcome: idempotency.Skipped, Reason: "by hand"})
	want(b.T, "dues that were opened", len(b.dues(keyed, time.Time{}, time.Time{})), 0)

	r.opens(due, due.Add(time.Second))
	open := r.lag(all()).Open
	want(b.T, "open dues", len(open), 1)
	wantTime(b, "open due", open[0].Due, due.Add(time.Second))
	r.gets(idempotency.Closed, r.insert("k", due))
	want(b.T, "verdict of a pass", r.save(idempotency.Pass{Job: keyed, Due: due}), idempotency.Closed)
	want(b.T, "closed", r.closes(due, nil), true)
	want(b.T, "ranges", len(b.ranges("")), 1)
}

func skipOfADecidedDue(b *bundle) {
	r := b.ready("a", "h1")
	opened := r.entry(plain).Opened
	b.rejects("a due that is decided", ask("s", idempotency.Skip, idempotency.ID{Job: plain, Due: opened}))
	b.rejects("a due that is decided, of a key", ask("s", idempotency.Skip, key("k", opened)))
	b.rejects("a due that is decided, of all keys", ask("s", idempotency.Skip, idempotency.ID{Job: keyed, Due: opened}))
	want(b.T, "changed of the next", b.submit(ask("s", idempotency.Skip, idempotency.ID{Job: plain, Due: opened.Add(time.Second)})).Changed, 1)
}

// A trigger may have opened the due's second before.
func skipOfAnOpenedDue(b *bundle) {
	r := b.ready("a", "h1")
	due := b.submit(ask("t", idempotency.Trigger, idempotency.ID{Job: keyed})).ID.Due
	b.rejects("a due that was opened", ask("s", idempotency.Skip, idempotency.ID{Job: keyed, Due: due}))
	c := r.insert("k", due)
	fence := r.wins(c).Fence
	b.rejects("a key that runs", ask("s", idempotency.Skip, c.ID))
	f := done(c.ID, fence)
	f.Outcome, f.Reason = idempotency.Skipped, "handler"
	b.finishes(idempotency.Finished, f)
	b.rejects("a key that was skipped by its handler", ask("s", idempotency.Skip, c.ID))
	want(b.T, "changed of a key that was not claimed", b.submit(ask("s", idempotency.Skip, key("l", due))).Changed, 1)
	r.finishedAll(due)
	b.rejects("a due that was closed", ask("s2", idempotency.Skip, idempotency.ID{Job: keyed, Due: due}))
}

func skipOfAnEfficiencyJob(b *bundle) {
	b.efficient("a", "h1")
	b.rejects("an efficiency job", ask("s", idempotency.Skip, idempotency.ID{Job: plain, Due: b.ago(-time.Hour)}))
}
