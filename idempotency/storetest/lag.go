package storetest

import (
	"fmt"
	"reflect"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

var lagLaws = []law{
	{"EntriesByRank", entriesByRank},
	{"EntriesOldestFirst", entriesOldestFirst},
	{"WaitingByRank", waitingByRank},
	{"OrphansByRank", orphansByRank},
	{"OrphanSinceLeaseEnded", orphanSinceLeaseEnded},
	{"OnlyItsPartitions", onlyItsPartitions},
	{"LimitCountsOnlyWhatItMayTake", limitCountsOnlyWhatItMayTake},
	{"OneSuspectOrphan", oneSuspectOrphan},
	{"OneSuspectWaiting", oneSuspectWaiting},
	{"BusyWaitingIsLeftOut", busyWaitingIsLeftOut},
	{"OtherHashIsLeftOut", otherHashIsLeftOut},
	{"OpenDues", openDues},
	{"ReadsOnly", lagReadsOnly},
	{"FullJobsAreNotAskedFor", fullJobsAreNotAskedFor},
	{"ControlsRise", controlsRise},
}

// late moves the job without keys on so that its next due came this long ago.
func (r *replica) late(ago time.Duration) {
	r.Helper()
	d := r.decision(plain)
	d.Next = r.ago(ago)
	want(r.T, "won", r.decide(d).Won, true)
}

// ranked is a question of a replica that has the rank everywhere.
func ranked(rank int, grace time.Duration) idempotency.LagQuery {
	q := all()
	q.Grace, q.Ranks = grace, make([][]byte, rank+1)
	q.Ranks[rank] = bitmap(0, 1, 2, 3, 4, 5, 6, 7)
	return q
}

// R14: an entry lags since its next due; rank r acts after r x grace.
func entriesByRank(b *bundle) {
	r := b.open("a")
	r.declare("h1", plain)
	r.late(90 * time.Second)
	for rank, listed := range []int{1, 1, 0, 0} {
		got := r.lag(ranked(rank, time.Minute)).Entries
		want(b.T, fmt.Sprintf("entries at rank %d", rank), len(got), listed)
		if listed == 1 {
			want(b.T, "entry", got[0], r.entry(plain))
		}
	}
	want(b.T, "entries without a rank", len(r.lag(idempotency.LagQuery{Limit: 9}).Entries), 0)
	r.late(-time.Hour)
	want(b.T, "entries that are not due", len(r.lag(all()).Entries), 0)
	d := r.decision(plain)
	d.Next = time.Time{}
	want(b.T, "won", r.decide(d).Won, true)
	want(b.T, "entries that never are", len(r.lag(all()).Entries), 0)
}

func entriesOldestFirst(b *bundle) {
	r := b.open("a")
	for i, job := range []string{"c", "a", "b"} {
		d := b.definition(job, "h1")
		d.Next = b.ago(time.Duration(i+1) * time.Minute)
		r.defs = append(r.defs, d)
	}
	r.entries()
	got := ""
	for _, e := range r.lag(all()).Entries {
		got += e.Job
	}
	want(b.T, "entries", got, "bac")
}

// R14: a waiting run lags since its wake time.
func waitingByRank(b *bundle) {
	r := b.ready("a", "h1")
	x := r.runs(1, b.ago(time.Hour))[0]
	b.finishes(idempotency.Finished, waits(x.ID, x.Fence, b.ago(90*time.Second)))
	for rank, listed := range []int{1, 1, 0} {
		got := r.lag(ranked(rank, time.Minute)).Waiting
		want(b.T, fmt.Sprintf("waiting at rank %d", rank), len(got), listed)
		if listed == 1 {
			want(b.T, "fence", got[0].Fence, x.Fence)
			wantTime(b, "wake", got[0].Wake, b.ago(90*time.Second))
		}
	}
	x.Fence = r.wins(r.takeUp(x.ID, x.Fence)).Fence
	b.finishes(idempotency.Finished, waits(x.ID, x.Fence, b.ago(-time.Hour)))
	want(b.T, "waiting before its time", len(r.lag(all()).Waiting), 0)
}

// R14: an orphan lags since its session's mark, if that came before its lease's
// end; a running run of a live session never does.
func orphansByRank(b *bundle) {
	a, z := b.ready("a", "h1"), b.ready("z", "h1")
	x := z.runs(1, b.ago(time.Hour))[0]
	want(b.T, "orphans of the living", len(a.lag(all()).Orphaned), 0)
	z.close()
	got := a.lag(all()).Orphaned
	want(b.T, "orphans", names(got), names([]idempotency.Run{x}))
	want(b.T, "session", got[0].Session, z.session.ID)
	want(b.T, "fence", got[0].Fence, x.Fence)
	want(b.T, "replica", got[0].Replica, "z")
	want(b.T, "orphans at rank 1 before its grace", len(a.lag(ranked(1, time.Hour)).Orphaned), 0)
	b.eventually("rank 1 may act", func() bool { return len(a.lag(ranked(1, b.lease)).Orphaned) == 1 })
}

// A lapsed session's runs are orphans, before anybody marked it.
func orphanSinceLeaseEnded(b *bundle) {
	a, z := b.ready("a", "h1"), b.ready("z", "h1", b.brief)
	x := z.runs(1, b.ago(time.Hour))[0]
	z.lapse()
	want(b.T, "orphans", names(a.lag(all()).Orphaned), names([]idempotency.Run{x}))
	want(b.T, "orphans at rank 1 before its grace", len(a.lag(ranked(1, time.Hour)).Orphaned), 0)
	b.eventually("rank 1 may act", func() bool { return len(a.lag(ranked(1, b.lease)).Orphaned) == 1 })
	b.eventually("rank 2 may act", func() bool { return len(a.lag(ranked(2, b.lease)).Orphaned) == 1 })
	a.mark(z)
	want(b.T, "orphans that lag since the lease's end, not the later mark", len(a.lag(ranked(2, b.lease)).Orphaned), 1)
}

// scattered makes one waiting run and one orphan in every partition, and
// returns their keys by partition.
func scattered(a, z *replica, due time.Time) (waiting, orphaned [partitions]string) {
	a.Helper()
	a.opens(due)
	for i := 0; ; i++ {
		k := fmt.Sprintf("key-%d", i)
		p := idempotency.Slot(k) % partitions
		switch {
		case waiting[p] == "":
			c := a.insert(k, due)
			a.finishes(idempotency.Finished, waits(c.ID, a.wins(c).Fence, due))
			waiting[p] = k
		case orphaned[p] == "":
			z.wins(z.insert(k, due))
			orphaned[p] = k
		}
		full := true
		for p := range partitions {
			full = full && waiting[p] != "" && orphaned[p] != ""
		}
		if full {
			z.close()
			return waiting, orphaned
		}
	}
}

// A replica is shown what is in the partitions of its ranks, and no other. The
// first bitmap that has a partition says the rank.
func onlyItsPartitions(b *bundle) {
	a, z := b.ready("a", "h1"), b.ready("z", "h1")
	waiting, orphaned := scattered(a, z, b.ago(time.Hour))
	for p := range partitions {
		q := all()
		q.Ranks = [][]byte{bitmap(p)}
		lag := a.lag(q)
		want(b.T, "waiting", keys(lag.Waiting), keys([]idempotency.Run{{ID: key(waiting[p], z.now)}}))
		want(b.T, "orphans", keys(lag.Orphaned), keys([]idempotency.Run{{ID: key(orphaned[p], z.now)}}))
	}
	q := all()
	q.Grace, q.Ranks = time.Hour, [][]byte{bitmap(1, 2), {}, bitmap(1, 3)}
	want(b.T, "orphans at several ranks", len(a.lag(q).Orphaned), 2)
	q.Ranks = nil
	want(b.T, "orphans without a rank", len(a.lag(q).Orphaned), 0)
}

// R15: the limit counts what this replica may take, oldest due first; else the
// first rows could be all somebody else's.
func limitCountsOnlyWhatItMayTake(b *bundle) {
	a, z := b.ready("a", "h1"), b.ready("z", "h1")
	waiting, _ := scattered(a, z, b.ago(time.Hour))
	q := all()
	q.Limit = 1
	for p := range partitions {
		q.Ranks = [][]byte{bitmap(p)}
		want(b.T, "waiting", keys(a.lag(q).Waiting), keys([]idempotency.Run{{ID: key(waiting[p], z.now)}}))
		want(b.T, "orphans", len(a.lag(q).Orphaned), 1)
	}
	q = all()
	q.Limit = 0
	want(b.T, "of limit 0", len(a.lag(q).Waiting)+len(a.lag(q).Orphaned), 0)

	next := b.ago(time.Minute)
	a.opens(next)
	for _, k := range waiting[:3] {
		c := a.insert(k, next)
		a.finishes(idempotency.Finished, waits(c.ID, a.wins(c).Fence, b.ago(2*time.Hour)))
	}
	q.Limit = partitions + 1
	got := a.lag(q).Waiting
	want(b.T, "waiting", len(got), partitions+1)
	for i, x := range got {
		due := b.ago(time.Hour)
		if i == partitions {
			due = next
		}
		wantTime(b, "due", x.ID.Due, due)
	}
}

// crash makes new processes take the run up and die of it, n times.
func crash(b *bundle, n int, ids ...idempotency.ID) {
	b.Helper()
	for i := range n {
		r := b.ready(fmt.Sprintf("victim-%d", i), "h1")
		for _, id := range ids {
			row := b.row(id)
			want(b.T, "crashes", r.wins(r.takeUp(id, row.Fence)).Crashes, i+1)
		}
		r.close()
	}
}

// F12, DESIGN §5.8: of what this take-up would make a poison suspect at most one.
func oneSuspectOrphan(b *bundle) {
	a, z := b.ready("a", "h1"), b.ready("z", "h1")
	due := b.ago(time.Hour)
	a.opens(due)
	for _, k := range []string{"calm", "calm2", "poison", "poison2"} {
		z.wins(z.insert(k, due))
	}
	z.close()
	want(b.T, "orphans that never crashed", len(a.lag(all()).Orphaned), 4)
	crash(b, 1, key("poison", due), key("poison2", due))
	got := a.lag(all()).Orphaned
	want(b.T, "orphans", keys(got), "[calm calm2 poison]")
	q := all()
	q.Limit = 3
	want(b.T, "orphans, the second suspect not counted", len(a.lag(q).Orphaned), 3)
}

// F12: of the waiting ones that crashed twice at most one.
func oneSuspectWaiting(b *bundle) {
	a, z := b.ready("a", "h1"), b.ready("z", "h1")
	due := b.ago(time.Hour)
	a.opens(due)
	poison := []idempotency.ID{key("p1", due), key("p2", due), key("once1", due), key("once2", due)}
	for _, id := range poison {
		z.wins(z.insert(id.Key, due))
	}
	z.close()
	crash(b, 1, poison[2:]...)
	crash(b, 2, poison[:2]...)
	for _, id := range poison {
		row := b.row(id)
		b.finishes(idempotency.Finished, waits(id, row.Fence, due))
	}
	want(b.T, "waiting", keys(a.lag(all()).Waiting), "[once1 once2 p1]")
}

// A waiting run whose key is held would only be answered busy.
func busyWaitingIsLeftOut(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(time.Hour)
	r.opens(due, due.Add(time.Second))
	first, second := r.insert("k", due), r.insert("k", due.Add(time.Second))
	b.finishes(idempotency.Finished, waits(first.ID, r.wins(first).Fence, due))
	want(b.T, "waiting", len(r.lag(all()).Waiting), 1)
	fence := r.wins(second).Fence
	want(b.T, "waiting beside an exclusive run", len(r.lag(all()).Waiting), 0)
	b.finishes(idempotency.Finished, done(second.ID, fence))
	want(b.T, "waiting after it", len(r.lag(all()).Waiting), 1)
}

// A replica is shown what it has the code for.
func otherHashIsLeftOut(b *bundle) {
	a, z := b.ready("a", "h1"), b.ready("z", "h2")
	due := b.ago(time.Hour)
	a.opens(due)
	a.runs(0, due)
	old := b.ready("old", "h1")
	old.wins(old.insert("k", due))
	old.close()
	lag := a.lag(all())
	want(b.T, "shown to who has it", len(lag.Open)+len(lag.Waiting)+len(lag.Orphaned), 3)
	lag = z.lag(all())
	want(b.T, "shown to who has another", len(lag.Open)+len(lag.Waiting)+len(lag.Orphaned), 0)
	want(b.T, "entries that it is to put in force", len(lag.Entries), 2)
	none := b.open("none")
	lag = none.lag(all())
	want(b.T, "shown to who has none", len(lag.Entries)+len(lag.Open)+len(lag.Waiting)+len(lag.Orphaned), 0)
}

// R10: the union has the bits of dead sessions too; the passes, which say what
// moves, are of live ones.
func openDues(b *bundle) {
	a, z, gone := b.ready("a", "h1"), b.ready("z", "h1"), b.ready("gone", "h1")
	due := b.ago(time.Hour)
	a.opens(due, due.Add(time.Second))
	for i, r := range []*replica{gone, a, z} {
		r.save(idempotency.Pass{Job: keyed, Due: due, Mine: bitmap(i, 5), Finished: bitmap(i), Keys: int64(10 * i)})
	}
	gone.close()
	q := idempotency.LagQuery{} // open dues are everybody's business
	open := z.lag(q).Open
	want(b.T, "open dues", len(open), 2)
	wantTime(b, "due", open[0].Due, due)
	want(b.T, "finished bits", open[0].Finished[0], bitmap(0, 1, 2)[0])
	want(b.T, "passes", len(open[0].Passes), 2)
	for i, p := range open[0].Passes {
		r := []*replica{a, z}[i]
		want(b.T, "session", p.Session, r.session.ID)
		want(b.T, "mine", p.Mine[0], bitmap(i+1, 5)[0])
		want(b.T, "finished", p.Finished[0], bitmap(i + 1)[0])
		want(b.T, "keys", p.Keys, int64(10*(i+1)))
		want(b.T, "job", p.Job, keyed)
		wantTime(b, "due of the pass", p.Due, due)
		if p.MovedAt.Before(r.now) {
			b.Fatalf("moved at %v, before the pass was saved", p.MovedAt)
		}
	}
	want(b.T, "passes of the second due", len(open[1].Passes), 0)
	want(b.T, "finished bits of the second due", open[1].Finished[0], 0)
}

// Asking changes nothing, so it can be repeated; nor does changing the answer.
func lagReadsOnly(b *bundle) {
	a, z := b.ready("a", "h1"), b.ready("z", "h1")
	scattered(a, z, b.ago(time.Hour))
	a.save(idempotency.Pass{Job: keyed, Due: b.ago(time.Hour), Mine: bitmap(1), Finished: bitmap(1)})
	first := a.lag(all())
	kept := a.lag(all())
	first.Open[0].Finished[0], first.Open[0].Passes[0].Mine[0] = 255, 255
	again := a.lag(all())
	kept.Now = again.Now
	if !reflect.DeepEqual(kept, again) {
		b.Fatalf("asked twice:\n%+v\n%+v", kept, again)
	}
}

// A job that is at its limit is not asked for; its entry and its open dues are.
func fullJobsAreNotAskedFor(b *bundle) {
	a, z := b.ready("a", "h1"), b.ready("z", "h1")
	due := b.ago(time.Hour)
	scattered(a, z, due)
	x := a.runs(0, due)[0]
	q := all()
	q.Full = []string{"unknown", keyed}
	lag := a.lag(q)
	want(b.T, "waiting", names(lag.Waiting), names([]idempotency.Run{x}))
	want(b.T, "orphans", len(lag.Orphaned), 0)
	want(b.T, "open dues", len(lag.Open), 1)
	want(b.T, "entries", len(lag.Entries), 2)
	q.Full, q.Limit = []string{plain}, partitions
	want(b.T, "waiting of the other job", len(a.lag(q).Waiting), partitions)
	want(b.T, "orphans of the other job", len(a.lag(q).Orphaned), partitions)
}

// Who sees it rise asks what has changed. What changes nothing does not raise it.
func controlsRise(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	x := r.runs(1, due)[0]
	last := r.lag(all()).Controls
	step := func(what string, rises bool) {
		b.Helper()
		now := r.lag(all()).Controls
		want(b.T, what+" raises it", now > last, rises)
		want(b.T, what+" lowers it", now < last, false)
		last = now
	}
	b.submit(ask("p1", idempotency.Pause, idempotency.ID{Job: plain}))
	step("a pause", true)
	b.submit(ask("p2", idempotency.Pause, idempotency.ID{Job: plain}))
	step("a pause of what is paused", false)
	b.submit(ask("p1", idempotency.Pause, idempotency.ID{Job: plain}))
	step("a repetition", false)
	b.rejects("an unknown job", ask("p3", idempotency.Pause, idempotency.ID{Job: "unknown"}))
	step("a command that is rejected", false)
	b.submit(ask("t1", idempotency.Trigger, idempotency.ID{Job: keyed, Key: "k"}))
	step("a trigger", true)
	d := r.decision(plain, due.Add(time.Second))
	d.Overlap = idempotency.OverlapCancel
	r.decide(d)
	step("a run that is told to end", true)
	d = r.decision(plain, due.Add(2*time.Second))
	d.Overlap = idempotency.OverlapCancel
	r.decide(d)
	step("one that is told again", false)
	b.submit(ask("c1", idempotency.Cancel, x.ID))
	step("a cancel", true)
	other := b.ready("o", "h1", func(o *idempotency.Opening) { o.Namespace = "other" })
	want(b.T, "controls of another namespace", other.lag(all()).Controls, 0)
}
