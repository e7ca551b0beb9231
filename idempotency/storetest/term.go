package storetest

import (
	"slices"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// The leader's term is recorded with the run.
var termLaws = []law{
	{"OfAnOpening", termOfAnOpening},
	{"OfAnInsert", termOfAnInsert},
	{"OfATakeUp", termOfATakeUp},
	{"KeptByEnds", termIsKeptByEnds},
	{"OfADefinition", leaderOfADefinition},
}

// in7 is a claim that its maker makes as the leader of term 7.
func in7(c idempotency.Claim) idempotency.Claim {
	c.Term = 7
	return c
}

func (b *bundle) term(id idempotency.ID, term int64) {
	b.Helper()
	want(b.T, "term", b.row(id).Term, term)
}

// A run that waits was claimed by nobody.
func termOfAnOpening(b *bundle) {
	r := b.ready("a", "h1")
	d := r.decision(plain, b.ago(5*time.Minute), b.ago(4*time.Minute))
	d.Claim = 1
	dueOf := func(i int) idempotency.ID { return idempotency.ID{Job: plain, Key: plain, Due: d.Run[i]} }
	for _, term := range []int64{1 << 62, 7} { // repeated, it is the first that counts
		d.Term = term
		a := r.decideAs(50, d)
		want(b.T, "runs", len(a.Runs), 2)
		want(b.T, "term of the run that is claimed", a.Runs[0].Term, 1<<62)
		want(b.T, "term of the run that waits", a.Runs[1].Term, 0)
	}
	want(b.T, "term of what is mine", r.mine()[0].Term, 1<<62)
	b.term(dueOf(0), 1<<62)
	b.term(dueOf(1), 0)
	b.finishes(idempotency.Finished, done(dueOf(0), r.mine()[0].Fence))
	r.wins(r.takeUp(dueOf(1), 0))
	none := r.decision(plain, b.ago(3*time.Minute))
	none.Claim, none.Overlap = 1, idempotency.OverlapAllow
	want(b.T, "term where no leader decides", r.decide(none).Runs[0].Term, 0)
	both := r.decision(plain, b.ago(2*time.Minute), b.ago(time.Minute))
	both.Claim, both.Term, both.Overlap = 2, 7, idempotency.OverlapAllow
	for _, x := range r.decide(both).Runs {
		want(b.T, "term where several are claimed", x.Term, 7)
	}
}

// Who loses leaves it as it is; what is recorded and not claimed has none.
func termOfAnInsert(b *bundle) {
	r, z := b.ready("a", "h1"), b.ready("z", "h1")
	due := b.ago(time.Minute)
	r.opens(due, due.Add(time.Second))
	c := in7(r.insert("k", due))
	want(b.T, "verdict", r.claimAs(60, c)[0].Verdict, idempotency.Won)
	b.term(c.ID, 7)
	again := c
	again.Term = 8
	want(b.T, "verdict of a repetition", r.claimAs(60, again)[0].Verdict, idempotency.Won)
	z.gets(idempotency.Taken, again)
	b.term(c.ID, 7)
	busy := in7(z.insert("k", due.Add(time.Second)))
	busy.OnBusy = &idempotency.Finish{Outcome: idempotency.Wait, Wake: due}
	z.gets(idempotency.Busy, busy)
	b.term(busy.ID, 0)
	other := z.insert("l", due)
	z.wins(other)
	b.term(other.ID, 0)
}

// The last claim's counts, also where that is no leader's.
func termOfATakeUp(b *bundle) {
	r, z := b.ready("a", "h1"), b.ready("z", "h1")
	due := b.ago(time.Minute)
	r.opens(due)
	c := in7(r.insert("k", due))
	fence := r.wins(c).Fence
	b.finishes(idempotency.Finished, waits(c.ID, fence, due))
	want(b.T, "term of a run that waits again", z.lag(all()).Waiting[0].Term, 7)
	up := z.takeUp(c.ID, fence+1)
	up.Term = 9
	z.gets(idempotency.Taken, up)
	b.term(c.ID, 7)
	up.Seen = fence
	fence = z.wins(up).Fence
	b.term(c.ID, 9)
	z.close()
	r.mark(z)
	want(b.T, "term of an orphan", r.lag(all()).Orphaned[0].Term, 9)
	fence = r.wins(r.takeUp(c.ID, fence)).Fence
	b.term(c.ID, 0)
	b.finishes(idempotency.Finished, done(c.ID, fence))
	b.term(c.ID, 0)
}

// However it ends, and where a person lets it wait again.
func termIsKeptByEnds(b *bundle) {
	r, z := b.ready("a", "h1"), b.ready("z", "h1")
	due := b.ago(time.Minute)
	r.opens(due)
	for _, k := range []string{"done", "failed", "canceled", "told"} {
		c := in7(r.insert(k, due))
		fence := r.wins(c).Fence
		f := done(c.ID, fence)
		switch k {
		case "done":
			b.finishes(idempotency.Finished, f)
		case "failed":
			f.Outcome = idempotency.Failed
			b.finishes(idempotency.Finished, f)
			want(b.T, "changed by a retry", b.submit(ask("retry", idempotency.Retry, c.ID)).Changed, 1)
		case "canceled":
			b.finishes(idempotency.Finished, waits(c.ID, fence, due))
			want(b.T, "changed by a cancel", b.submit(ask("cancel", idempotency.Cancel, c.ID)).Changed, 1)
		case "told":
			want(b.T, "changed by a cancel", b.submit(ask("tell", idempotency.Cancel, c.ID)).Changed, 1)
			r.close()
			z.mark(r)
			z.gets(idempotency.Taken, z.takeUp(c.ID, fence))
			want(b.T, "state", b.row(c.ID).State, idempotency.Ended)
		}
		b.term(c.ID, 7)
	}
}

// That a job's dues are the leader's stands with its definition: in the declaration, and in the entry that a decision puts it into.
func leaderOfADefinition(b *bundle) {
	stands := func(r *replica, what string, leader bool) {
		b.Helper()
		for _, list := range [][]idempotency.Entry{r.entries(), b.overview().Entries} {
			for _, e := range list {
				want(b.T, what+" of "+e.Job, e.Leader, leader && e.Job == plain)
			}
		}
	}
	declare := func(r *replica, hash string, leader bool) {
		b.Helper()
		r.hash, r.defs = hash, []idempotency.Declaration{b.definition(keyed, hash), b.definition(plain, hash)}
		r.defs[1].Leader = leader
		r.entries()
	}
	r := b.open("a")
	declare(r, "h1", true)
	stands(r, "declared", true)
	lag := r.lag(all()).Entries
	i := slices.IndexFunc(lag, func(e idempotency.Entry) bool { return e.Job == plain })
	want(b.T, "leader of what lags", lag[i].Leader, true)
	for i, leader := range []bool{false, true} {
		declare(r, []string{"h2", "h3"}[i], leader)
		stands(r, "declared and not decided", !leader)
		d := r.decision(plain)
		d.Leader = leader
		want(b.T, "won", r.decide(d).Won, true)
		stands(r, "decided", leader)
	}
	d := r.decision(plain) // of the same hash, which does not say it
	want(b.T, "won", r.decide(d).Won, true)
	stands(r, "decided by who does not say it", false)
}
