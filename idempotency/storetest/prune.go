package storetest

import (
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

var pruneLaws = []law{
	{"KeepsTheYounger", pruneKeepsTheYounger},
	{"EndedOnly", pruneEndedOnly},
	{"OldestFirstUpToLimit", pruneOldestFirst},
	{"NotAtOrAboveTheOldestOpenDue", pruneBelowTheOldestOpenDue},
	{"KeepsDeadSessionsBits", pruneKeepsDeadSessionsBits},
	{"KeepsOtherNamespaces", pruneKeepsOtherNamespaces},
	{"KeepsSessionsThatRunsName", pruneKeepsNamedSessions},
	{"RemovesOldCommands", pruneRemovesOldCommands},
}

// forgetful is a session with a retention of two seconds.
func forgetful(o *idempotency.Opening) { o.Horizon, o.Retention = time.Second, 2*time.Second }

func (r *replica) prune(limit int) int {
	r.Helper()
	n, err := r.store.Prune(r.Context(), r.session, limit)
	r.alive("prune", err)
	return n
}

// ended makes ended runs of the job without keys.
func (r *replica) ended(dues ...time.Time) {
	r.Helper()
	for _, due := range dues {
		x := r.runs(1, due)[0]
		r.finishes(idempotency.Finished, done(x.ID, x.Fence))
	}
}

// skipped records a range.
func (r *replica) skipped(job string, from, to time.Time) {
	r.Helper()
	d := r.decision(job)
	d.Ranges = []idempotency.Range{{Job: job, From: from, To: to, Count: 60, Outcome: idempotency.Skipped}}
	want(r.T, "won", r.decide(d).Won, true)
}

// The age is by the session's retention.
func pruneKeepsTheYounger(b *bundle) {
	r := b.ready("a", "h1")
	r.skipped(plain, b.ago(11*time.Hour), b.ago(10*time.Hour))
	r.skipped(plain, b.ago(11*time.Hour), b.ago(time.Hour)) // reaches over the line
	r.ended(b.ago(10*time.Hour), b.ago(9*time.Hour), b.ago(time.Hour))
	long := b.open("long", func(o *idempotency.Opening) { o.Retention = 20 * time.Hour })
	want(b.T, "older than 20 hours", long.prune(100), 0)
	want(b.T, "older than 2 hours", r.prune(100), 3)
	want(b.T, "again", r.prune(100), 0)
	want(b.T, "rows", len(b.list(idempotency.Filter{})), 1)
	got := b.ranges("")
	want(b.T, "ranges", len(got), 1)
	wantTime(b, "range", got[0].To, b.ago(time.Hour))
}

// DESIGN §5.13: running and waiting runs stay, however old, and can be finished.
func pruneEndedOnly(b *bundle) {
	r := b.ready("a", "h1")
	runs := r.runs(1, b.ago(9*time.Hour), b.ago(8*time.Hour))
	orphaned := b.ready("dead", "h1", func(o *idempotency.Opening) { o.Horizon, o.Retention = 20*time.Hour, 21*time.Hour })
	r.opens(b.ago(7 * time.Hour))
	orphan := orphaned.insert("k", b.ago(7*time.Hour))
	fence := orphaned.wins(orphan).Fence
	orphaned.finishedAll(b.ago(7 * time.Hour))
	orphaned.close()
	want(b.T, "removed", r.prune(100), 1) // the closed due
	want(b.T, "rows", len(b.list(idempotency.Filter{})), 3)
	b.finishes(idempotency.Finished, done(orphan.ID, fence), done(runs[0].ID, runs[0].Fence))
	second := r.wins(r.takeUp(runs[1].ID, 0)).Fence
	want(b.T, "removed after they ended", r.prune(100), 2)
	b.finishes(idempotency.Finished, done(runs[1].ID, second))
	b.finishes(idempotency.Fenced, done(orphan.ID, fence))
	want(b.T, "rows", len(b.list(idempotency.Filter{})), 1)
}

// Prune is called in small batches, and the oldest go first.
func pruneOldestFirst(b *bundle) {
	r := b.ready("a", "h1")
	r.skipped(plain, b.ago(12*time.Hour), b.ago(9*time.Hour+30*time.Minute))
	r.ended(b.ago(11*time.Hour), b.ago(10*time.Hour), b.ago(9*time.Hour), b.ago(8*time.Hour))
	want(b.T, "removed of limit 0", r.prune(0), 0)
	want(b.T, "removed of limit 2", r.prune(2), 2)
	left := b.list(idempotency.Filter{})
	want(b.T, "rows", len(left), 2)
	wantTime(b, "oldest", left[0].ID.Due, b.ago(9*time.Hour))
	want(b.T, "ranges", len(b.ranges("")), 1)
	want(b.T, "removed of limit 1", r.prune(1), 1)
	want(b.T, "ranges after the third", len(b.ranges("")), 0)
	want(b.T, "removed of the rest", r.prune(5), 2)
}

// DESIGN §5.13: never at or above the oldest open due of the job.
func pruneBelowTheOldestOpenDue(b *bundle) {
	r := b.ready("a", "h1")
	lax := b.ready("lax", "h1", func(o *idempotency.Opening) { o.Horizon, o.Retention = 20*time.Hour, 21*time.Hour })
	below, open, above := b.ago(9*time.Hour), b.ago(8*time.Hour), b.ago(7*time.Hour)
	r.opens(below, open, above)
	for _, due := range []time.Time{below, open, above} {
		c := lax.insert("k", due)
		b.finishes(idempotency.Finished, done(c.ID, lax.wins(c).Fence))
	}
	r.skipped(keyed, below, above)
	r.skipped(keyed, below, below)
	r.ended(above) // of another job
	r.finishedAll(below)
	r.finishedAll(above)
	want(b.T, "removed", r.prune(100), 4) // a run, a due and a range below, and the other job's run
	left := b.list(idempotency.Filter{Job: keyed})
	want(b.T, "rows", len(left), 2)
	wantTime(b, "oldest", left[0].ID.Due, open)
	want(b.T, "ranges", len(b.ranges(keyed)), 1)
	r.gets(idempotency.Taken, r.insert("k", open))
	want(b.T, "rows of the other job", len(b.list(idempotency.Filter{Job: plain})), 0)
	r.finishedAll(open)
	want(b.T, "removed once it is closed", r.prune(100), 5) // two runs, two dues, a range
	want(b.T, "rows", len(b.list(idempotency.Filter{})), 0)
}

// A dead session may go; what it finished of an open due stays finished.
func pruneKeepsDeadSessionsBits(b *bundle) {
	r, dead := b.ready("a", "h1", forgetful), b.ready("dead", "h1")
	due := b.ago(30 * time.Minute)
	r.opens(due)
	dead.save(idempotency.Pass{Job: keyed, Due: due, Finished: bitmap(0, 1, 2, 3)})
	dead.close()
	r.outlasts(3 * time.Second)
	open := r.lag(all()).Open[0]
	want(b.T, "union", open.Finished[0], bitmap(0, 1, 2, 3)[0])
	want(b.T, "passes of the living", len(open.Passes), 0)
	r.save(idempotency.Pass{Job: keyed, Due: due, Finished: bitmap(4, 5, 6, 7)})
	want(b.T, "closed", r.closes(due, nil), true)
}

func pruneKeepsOtherNamespaces(b *bundle) {
	r := b.ready("a", "h1")
	r.ended(b.ago(10 * time.Hour))
	z := b.ready("z", "h1", forgetful, func(o *idempotency.Opening) { o.Namespace = "other" })
	want(b.T, "removed", z.prune(100), 0)
	want(b.T, "rows", len(b.list(idempotency.Filter{})), 1)
}

// The take-up of a dead session's runs needs to know the session, however long
// it has been dead.
func pruneKeepsNamedSessions(b *bundle) {
	r, named := b.ready("a", "h1", forgetful), b.ready("named", "h1")
	x := named.runs(1, b.ago(time.Minute))[0]
	named.close()
	r.outlasts(3 * time.Second)
	a := r.wins(r.takeUp(x.ID, x.Fence))
	want(b.T, "crashes", a.Crashes, 1)
}

// outlasts prunes until so much time has passed by the store's clock.
func (r *replica) outlasts(d time.Duration) {
	r.Helper()
	end := r.renewed().Add(d)
	r.eventually("the session is long dead", func() bool {
		r.prune(100)
		return r.renewed().After(end)
	})
}

func (r *replica) renewed() time.Time {
	r.Helper()
	renewal, err := r.store.RenewSession(r.Context(), r.session)
	r.alive("renew", err)
	return renewal.Now
}

// A command's record is as old as the command, and goes as what is about its job goes.
func pruneRemovesOldCommands(b *bundle) {
	r := b.ready("a", "h1", forgetful)
	b.submit(ask("old", idempotency.Pause, idempotency.ID{Job: plain}))
	b.submit(ask("open", idempotency.Pause, idempotency.ID{Job: keyed}))
	want(b.T, "removed by who keeps them for longer", b.open("long").prune(100), 0)
	r.opens(b.ago(time.Minute))
	r.outlasts(3 * time.Second)
	b.submit(ask("young", idempotency.Resume, idempotency.ID{Job: plain}))
	want(b.T, "records", b.requests(""), "[young open]")
	b.submit(ask("old", idempotency.Resume, idempotency.ID{Job: plain})) // nobody knows it any more
	want(b.T, "records", len(b.commands("")), 3)
	r.finishedAll(b.ago(time.Minute))
	r.outlasts(time.Millisecond)
	want(b.T, "records once the due is closed", b.requests(keyed), "[]")
}
