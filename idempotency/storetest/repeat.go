package storetest

import (
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// What was won is told again to whoever still holds it, also where its definition would win nothing any more (R3 before F8).
// A session that is told of a stale definition instead lets go of a run that is under its name: then it may take up a second
// one that kills its process (I10).
var repeatLaws = []law{
	{"InsertAfterReplaced", func(b *bundle) { b.repeatedInsert(replaced) }},
	{"InsertAfterWithdrawn", func(b *bundle) { b.repeatedInsert(withdrawn) }},
	{"InsertAfterDeclaredAnew", func(b *bundle) { b.repeatedInsert(declaredAnew) }},
	{"TakeUpAfterReplaced", func(b *bundle) { b.repeatedTakeUp(replaced) }},
	{"TakeUpAfterWithdrawn", func(b *bundle) { b.repeatedTakeUp(withdrawn) }},
	{"TakeUpAfterDeclaredAnew", func(b *bundle) { b.repeatedTakeUp(declaredAnew) }},
	{"DecisionAfterReplaced", func(b *bundle) { b.repeatedDecision(replaced) }},
	{"DecisionAfterWithdrawn", func(b *bundle) { b.repeatedDecision(withdrawn) }},
	{"DecisionAfterDeclaredAnew", func(b *bundle) { b.repeatedDecision(declaredAnew) }},
}

// replaced brings other definitions of both jobs in force, by another session.
func replaced(r *replica) {
	z := r.ready("newer", "h2")
	for _, job := range []string{keyed, plain} {
		want(r.T, "won by the new definition", z.decide(z.decision(job)).Won, true)
	}
}

// withdrawn makes the session announce nothing any more. What the entries have stays as it is.
func withdrawn(r *replica) { r.declare(r.hash) }

// declaredAnew makes the session announce other definitions, which are in force, but not yet the entries'.
func declaredAnew(r *replica) { r.declare("h2", keyed, plain) }

func (b *bundle) repeatedInsert(stale func(*replica)) {
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	r.opens(due)
	held, ended, fresh := r.insert("held", due), r.insert("ended", due), r.insert("fresh", due)
	first := r.claimAs(7, held, ended)
	b.finishes(idempotency.Finished, done(ended.ID, first[1].Fence))
	stale(r)
	again := r.claimAs(7, held, ended, fresh)
	want(b.T, "verdict", again[0].Verdict, idempotency.Won)
	want(b.T, "fence", again[0].Fence, first[0].Fence)
	want(b.T, "verdict of what has ended", again[1].Verdict, idempotency.StaleDefinition)
	want(b.T, "verdict of what was not claimed", again[2].Verdict, idempotency.StaleDefinition)
	want(b.T, "fence, asked alone", r.claimAs(7, held)[0].Fence, first[0].Fence)
	want(b.T, "verdict under another nonce", r.claimAs(8, held)[0].Verdict, idempotency.StaleDefinition)
	want(b.T, "mine", keys(r.mine()), "[held]")
	want(b.T, "rows", len(b.list(idempotency.Filter{})), 2)
}

func (b *bundle) repeatedTakeUp(stale func(*replica)) {
	r, dead := b.ready("a", "h1"), b.ready("dead", "h1")
	waiting, orphan := r.runs(0, b.ago(time.Minute))[0], b.ago(time.Minute)
	dead.opens(orphan)
	fence := dead.wins(dead.insert("k", orphan)).Fence
	dead.close()
	batch := []idempotency.Claim{r.takeUp(key("k", orphan), fence), r.takeUp(waiting.ID, 0)}
	first := r.claimAs(7, batch...)
	stale(r)
	again := r.claimAs(7, batch...)
	for i := range batch {
		want(b.T, "verdict", again[i].Verdict, idempotency.Won)
		want(b.T, "fence", again[i].Fence, first[i].Fence)
		want(b.T, "crashes", again[i].Crashes, first[i].Crashes)
	}
	want(b.T, "crashes of the orphan", again[0].Crashes, 1)
	want(b.T, "verdict under another nonce", r.claimAs(8, batch[0])[0].Verdict, idempotency.StaleDefinition)
	b.finishes(idempotency.Finished, waits(waiting.ID, again[1].Fence, b.ago(time.Minute)))
	want(b.T, "verdict of what waits again", r.claimAs(7, batch[1])[0].Verdict, idempotency.StaleDefinition)
	want(b.T, "mine", keys(r.mine()), "[k]")
}

func (b *bundle) repeatedDecision(stale func(*replica)) {
	r := b.ready("a", "h1")
	d := r.decision(plain, b.ago(time.Minute))
	d.Claim = 1
	first := r.decideAs(77, d)
	want(b.T, "won", first.Won, true)
	stale(r)
	again := r.decideAs(77, d)
	want(b.T, "won again", again.Won, true)
	want(b.T, "runs", len(again.Runs), 1)
	want(b.T, "state", again.Runs[0].State, idempotency.Running)
	want(b.T, "fence", again.Runs[0].Fence, first.Runs[0].Fence)
	want(b.T, "won under another nonce", r.decideAs(78, d).Won, false)
	want(b.T, "rows", len(b.list(idempotency.Filter{})), 1)
}
