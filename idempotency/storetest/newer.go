package storetest

import (
	"fmt"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

var newerLaws = []law{
	{"ClaimWaitsForANewerDue", claimWaitsForANewerDue},
	{"ClaimOfTheSameDueDoesNotWait", claimOfTheSameDue},
	{"ClaimJudgesEachOfABatch", claimJudgesEachOfABatch},
	{"DecideWaitsForANewerDue", decideWaitsForANewerDue},
	{"DecideOfTheSameDueDoesNotWait", decideOfTheSameDue},
	{"BadOnNewerIsRefused", badOnNewerIsRefused},
}

// skipping is an insert that is skipped where the key is held.
func (r *replica) skipping(k string, due time.Time) idempotency.Claim {
	c := r.insert(k, due)
	c.OnBusy = &idempotency.Finish{Outcome: idempotency.Skipped, Reason: "overlap", Text: "still running"}
	return c
}

// orWaits is the claim that waits where the run that holds the key has a newer due.
func orWaits(c idempotency.Claim) idempotency.Claim {
	c.OnNewer = &idempotency.Finish{Outcome: idempotency.Wait, Wake: c.ID.Due, Reason: "late", Text: "a newer one runs"}
	return c
}

// records wants an insert to find its key held, and to be recorded so.
func (r *replica) records(c idempotency.Claim, o idempotency.Outcome) {
	r.Helper()
	a := r.claim(c)[0]
	want(r.T, "verdict", a.Verdict, idempotency.Busy)
	want(r.T, "recorded", a.Recorded, o)
}

// Whatever it would be otherwise, an older due that comes late waits, and ends nothing.
func claimWaitsForANewerDue(b *bundle) {
	r := b.ready("a", "h1")
	due := repeat(7, func(i int) time.Time { return b.ago(time.Duration(60-i) * time.Second) })
	r.opens(due...)
	held := r.insert("k", due[4])
	fence := r.wins(held).Fence
	for i, c := range []idempotency.Claim{r.skipping("k", due[0]), r.queues("k", due[1]), r.overtakes("k", due[2])} {
		r.records(orWaits(c), idempotency.Wait)
		x := b.in(key("k", due[i]), idempotency.Waiting)
		want(b.T, "reason and text", x.Reason+", "+x.Text, "late, a newer one runs")
		wantTime(b, "wake", x.Wake, due[i])
		again := r.claim(orWaits(c))[0]
		want(b.T, "verdict", again.Verdict, idempotency.Taken)
		want(b.T, "recorded", again.Recorded, 0)
	}
	want(b.T, "mark", b.in(held.ID, idempotency.Running).Cancel, "")
	r.records(r.skipping("k", due[3]), idempotency.Skipped) // it does not ask for it
	r.records(r.insert("k", due[6]), 0)

	// One that is newer is as it ever was.
	r.records(orWaits(r.skipping("k", due[5])), idempotency.Skipped)
	b.skips(key("k", due[5]), "overlap")
	r.records(orWaits(r.queues("k", due[6])), idempotency.Skipped)
	b.skips(key("k", due[6]), "overlap")
	b.finishes(idempotency.Finished, done(held.ID, fence))
	second := r.wins(r.takeUp(key("k", due[1]), 0)).Fence
	r.gets(idempotency.Busy, r.takeUp(key("k", due[0]), 0)) // one that waits holds nothing
	b.finishes(idempotency.Finished, done(key("k", due[1]), second))
	r.wins(r.takeUp(key("k", due[0]), 0))
}

// Of one due, another request is not newer.
func claimOfTheSameDue(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	r.opens(due)
	r.wins(r.insert("k", due))
	r.wins(r.insert("l", due))
	other := orWaits(r.skipping("k", due))
	other.ID.Request = "r"
	r.records(other, idempotency.Skipped)
	b.skips(other.ID, "overlap")
	other = orWaits(r.overtakes("l", due))
	other.ID.Request = "r"
	r.records(other, idempotency.Wait)
	want(b.T, "text", b.in(other.ID, idempotency.Waiting).Text, "")
	want(b.T, "mark", b.in(key("l", due), idempotency.Running).Cancel, idempotency.Overtaken)
}

// Of another key, or one that is not exclusive, a newer run is none; and each of a batch is judged alone.
func claimJudgesEachOfABatch(b *bundle) {
	r := b.ready("a", "h1")
	due := repeat(4, func(i int) time.Time { return b.ago(time.Duration(60-i) * time.Second) })
	r.opens(due...)
	r.wins(r.insert("k", due[1]))
	r.wins(r.insert("l", due[3]))
	beside := r.insert("k", due[3])
	beside.Exclusive = false
	r.wins(beside)
	batch := []idempotency.Claim{
		orWaits(r.skipping("k", due[0])), orWaits(r.skipping("k", due[2])), orWaits(r.skipping("l", due[2])), r.skipping("l", due[0]), orWaits(r.overtakes("l", due[1])),
	}
	recorded := []idempotency.Outcome{idempotency.Wait, idempotency.Skipped, idempotency.Wait, idempotency.Skipped, idempotency.Wait}
	for i, a := range r.claim(batch...) {
		want(b.T, "verdict", a.Verdict, idempotency.Busy)
		want(b.T, "recorded of "+names([]idempotency.Run{{ID: batch[i].ID}}), a.Recorded, recorded[i])
		if recorded[i] == idempotency.Skipped {
			b.skips(batch[i].ID, "overlap")
		} else {
			want(b.T, "text", b.in(batch[i].ID, idempotency.Waiting).Text, "a newer one runs")
		}
	}
}

// asked is a run of the job without keys that a person asked for, of the second of the store's now, and at work.
func (r *replica) asked(request string) idempotency.Run {
	r.Helper()
	x := r.triggered(r.submit(ask(request, idempotency.Trigger, idempotency.ID{Job: plain})), plain)
	x.Fence = r.wins(r.takeUp(x.ID, 0)).Fence
	return x
}

// A run of a newer due is one that a person asked for before an opening that came late.
func decideWaitsForANewerDue(b *bundle) {
	r := b.ready("a", "h1", lax)
	held := r.asked("r")
	at := func(seconds int) time.Time { return held.ID.Due.Add(time.Duration(seconds) * time.Second) }
	older := r.overlaps(idempotency.OverlapSkip, at(-20), at(-15))
	older = append(older, r.overlaps(idempotency.OverlapQueue, at(-10))...)
	older = append(older, r.overlaps(idempotency.OverlapCancel, at(-5))...)
	for _, x := range older {
		want(b.T, "reason", b.in(x.ID, idempotency.Waiting).Reason, "")
	}
	want(b.T, "mark", b.in(held.ID, idempotency.Running).Cancel, "")
	b.in(r.overlaps(idempotency.OverlapAllow, at(-4))[0].ID, idempotency.Running)

	// Each of one decision is judged by its own due.
	parts := r.overlaps(idempotency.OverlapSkip, at(-1), at(1))
	b.in(parts[0].ID, idempotency.Waiting)
	b.skips(parts[1].ID, "overlap")
	parts = r.overlaps(idempotency.OverlapCancel, at(2), at(3))
	for _, x := range parts {
		b.in(x.ID, idempotency.Waiting)
	}
	for _, x := range older {
		b.skips(x.ID, idempotency.Overtaken)
	}
	want(b.T, "mark", b.in(held.ID, idempotency.Running).Cancel, idempotency.Overtaken)
}

func decideOfTheSameDue(b *bundle) {
	r := b.ready("a", "h1", lax)
	held := r.asked("r")
	b.skips(r.overlaps(idempotency.OverlapSkip, held.ID.Due)[0].ID, "overlap")
}

func badOnNewerIsRefused(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	r.opens(due)
	claim, errs := r.badly()
	claim("a newer due alone", orWaits(r.insert("k", due)), func(*idempotency.Claim) {})
	claim("a newer due that is no wait", orWaits(r.skipping("k", due)), func(c *idempotency.Claim) { c.OnNewer = c.OnBusy })
	claim("a newer due of a claim that holds no key", orWaits(r.skipping("k", due)), func(c *idempotency.Claim) { c.Exclusive = false })
	claim("a newer due that waits for ever", orWaits(r.skipping("k", due)), func(c *idempotency.Claim) { c.OnNewer.Wake = time.Time{} })
	claim("a take-up with a newer due", r.takeUp(key("k", due), 0), func(c *idempotency.Claim) { *c = orWaits(*c) })
	b.refused(errs)
}

// Claimers of one key and as many dues: one runs; those of newer dues record a skip, those of older ones wait, and all say so.
func olderDuesWaitForTheWinner(b *bundle) {
	a := b.ready("a", "h1")
	due := repeat(racers, func(i int) time.Time { return b.ago(time.Duration(60-i) * time.Second) })
	a.opens(due...)
	var got [racers]idempotency.Answer
	race(b, func(i int, r *replica) error {
		answers, err := r.store.Claim(b.Context(), r.session, 1, []idempotency.Claim{orWaits(r.skipping("k", due[i]))})
		if err == nil {
			got[i] = answers[0]
		}
		return err
	})
	var winner time.Time
	for _, x := range b.list(idempotency.Filter{State: idempotency.Running}) {
		want(b.T, "runs of two dues", winner.IsZero(), true)
		winner = x.ID.Due
	}
	for i, at := range due {
		what := fmt.Sprintf("due %d, at %v, the winner %v", i, at, winner)
		switch {
		case at.Before(winner):
			b.in(key("k", at), idempotency.Waiting)
			want(b.T, what, got[i].Recorded, idempotency.Wait)
		case at.After(winner):
			b.skips(key("k", at), "overlap")
			want(b.T, what, got[i].Recorded, idempotency.Skipped)
		default:
			want(b.T, what, got[i].Verdict, idempotency.Won)
		}
	}
}
