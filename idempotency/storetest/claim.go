package storetest

import (
	"context"
	"sync"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

var claimLaws = []law{
	{"WonRowRuns", wonRowRuns},
	{"RepeatedReturnsWhatItWon", repeatedReturnsWhatItWon},
	{"RepeatedAfterMovedOnIsTaken", repeatedAfterMovedOnIsTaken},
	{"UnansweredIsFoundByMine", unansweredIsFoundByMine},
	{"TakenBeforeAllElse", takenBeforeAllElse},
	{"TwoDuesOfOneKeyAreBusy", twoDuesOfOneKeyAreBusy},
	{"BusyRecordsInTheSameTransaction", busyRecords},
	{"SharedIsNeverBusy", sharedIsNeverBusy},
	{"Early", early},
	{"ExpiredRecords", expiredRecords},
	{"ExpiredOfClosedDueRecordsNothing", expiredOfClosedDueRecordsNothing},
	{"ClosedAfterClose", closedAfterClose},
	{"StaleDefinition", staleDefinition},
	{"RequestsAreOccurrencesOfTheirOwn", requestsAreApart},
	{"AnswersInOrder", claimAnswersInOrder},
}

func wonRowRuns(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	r.opens(due)
	c := r.insert("k", due)
	a := r.wins(c)
	want(b.T, "attempt and crashes", a.Attempt+a.Crashes, 0)
	row := b.row(c.ID)
	want(b.T, "state", row.State, idempotency.Running)
	want(b.T, "fence", row.Fence, a.Fence)
	want(b.T, "session", row.Session, r.session.ID)
	want(b.T, "replica", row.Replica, "a")
	want(b.T, "outcome", row.Outcome, 0)
	if row.Started.Before(r.now) || !row.Finished.IsZero() || !row.Wake.IsZero() {
		b.Fatalf("times of a run that was just claimed: %+v", row)
	}
	wantTime(b, "due", row.ID.Due, due)
	want(b.T, "mine", names(r.mine()), names([]idempotency.Run{row}))
}

// R3: a claim that was not answered is repeated as it was.
func repeatedReturnsWhatItWon(b *bundle) {
	r, z := b.ready("a", "h1"), b.ready("z", "h1")
	due := b.ago(time.Minute)
	r.opens(due)
	batch := []idempotency.Claim{r.insert("k", due), r.insert("l", due)}
	first := r.claimAs(7, batch...)
	again := r.claimAs(7, batch...)
	for i := range batch {
		want(b.T, "verdict", again[i].Verdict, idempotency.Won)
		want(b.T, "fence", again[i].Fence, first[i].Fence)
	}
	want(b.T, "verdict under another nonce", r.claimAs(8, batch[0])[0].Verdict, idempotency.Taken)
	want(b.T, "verdict of another session with the nonce", z.claimAs(7, batch[0])[0].Verdict, idempotency.Taken)
	want(b.T, "rows", len(r.mine()), 2)
}

// R3: won only while the row is still held under the nonce.
func repeatedAfterMovedOnIsTaken(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	r.opens(due)
	ended, waiting, retaken := r.insert("ended", due), r.insert("waiting", due), r.insert("retaken", due)
	a := r.claimAs(7, ended, waiting, retaken)
	b.finishes(idempotency.Finished, done(ended.ID, a[0].Fence), waits(waiting.ID, a[1].Fence, due), waits(retaken.ID, a[2].Fence, due))
	want(b.T, "verdict of the take-up", r.claimAs(8, r.takeUp(retaken.ID, a[2].Fence))[0].Verdict, idempotency.Won)
	for _, x := range r.claimAs(7, ended, waiting, retaken) {
		want(b.T, "verdict", x.Verdict, idempotency.Taken)
		want(b.T, "fence", x.Fence, 0)
	}
}

// A claim whose client gave up may commit all the same: then the session's own
// listing finds it, and its repetition is won. F02, F34, F10.
func unansweredIsFoundByMine(b *bundle) {
	const n = 40
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	r.opens(due)
	var wg sync.WaitGroup
	claims := make([]idempotency.Claim, n)
	for i := range claims {
		claims[i] = r.insert(string(rune('A'+i)), due)
		ctx, cancel := context.WithCancel(b.Context())
		gate := make(chan struct{})
		wg.Go(func() {
			close(gate)
			// The answer is lost, whatever it is.
			_, _ = r.store.Claim(ctx, r.session, int64(1000+i), claims[i:i+1])
		})
		wg.Go(func() {
			<-gate
			if i%2 == 0 {
				cancel()
			}
		})
		defer cancel()
	}
	wg.Wait()
	found := make(map[string]int64)
	for _, x := range r.mine() {
		found[x.ID.Key] = x.Fence
	}
	for i, c := range claims {
		fence, ok := found[c.ID.Key]
		if i%2 == 1 && !ok {
			b.Fatalf("claim %d committed and is not in the listing", i)
		}
		a := r.claimAs(int64(1000+i), c)[0]
		want(b.T, "verdict of the repetition", a.Verdict, idempotency.Won)
		if ok {
			want(b.T, "fence of the repetition", a.Fence, fence)
		}
		b.finishes(idempotency.Finished, done(c.ID, a.Fence))
	}
	want(b.T, "mine", len(r.mine()), 0)
}

// R1: taken comes before early, expired, closed and busy: a key that was
// settled stays settled.
func takenBeforeAllElse(b *bundle) {
	r := b.ready("a", "h1")
	strict := b.ready("strict", "h1", func(o *idempotency.Opening) { o.Horizon = time.Second })
	due := b.ago(time.Minute)
	r.opens(due, due.Add(time.Second))
	c := r.insert("k", due)
	fence := r.wins(c).Fence
	r.gets(idempotency.Busy, r.insert("k", due.Add(time.Second)))
	r.gets(idempotency.Taken, c)
	strict.gets(idempotency.Taken, c)
	r.finishedAll(due)
	r.gets(idempotency.Taken, c)
	b.finishes(idempotency.Finished, done(c.ID, fence))
	r.gets(idempotency.Taken, c)
}

// Two claimers of one key and two dues: one runs. I1.
func twoDuesOfOneKeyAreBusy(b *bundle) {
	a, z := b.ready("a", "h1"), b.ready("z", "h1")
	due := b.ago(time.Minute)
	a.opens(due, due.Add(time.Second))
	first, second := a.insert("k", due), z.insert("k", due.Add(time.Second))
	fence := a.wins(first).Fence
	z.gets(idempotency.Busy, second)
	want(b.T, "state of the busy one's row", b.row(second.ID).State, 0)
	z.wins(z.insert("other", due.Add(time.Second)))

	// An orphan is still running: exclusiveness ends with running alone.
	a.close()
	z.gets(idempotency.Busy, second)
	b.finishes(idempotency.Finished, waits(first.ID, fence, due))
	fence = z.wins(second).Fence
	z.gets(idempotency.Busy, z.takeUp(first.ID, b.row(first.ID).Fence))
	b.finishes(idempotency.Finished, done(second.ID, fence))
	z.wins(z.takeUp(first.ID, b.row(first.ID).Fence))
}

// R7: the claim carries what to write where it is busy.
func busyRecords(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	r.opens(due, due.Add(time.Second), due.Add(2*time.Second))
	r.wins(r.insert("k", due))

	skip := r.insert("k", due.Add(time.Second))
	skip.OnBusy = &idempotency.Finish{Outcome: idempotency.Skipped, Reason: "overlap", Text: "still running"}
	skip.OnExpired = &idempotency.Finish{Outcome: idempotency.Missed, Reason: "late"}
	r.records(skip, idempotency.Skipped)
	row := b.row(skip.ID)
	want(b.T, "state", row.State, idempotency.Ended)
	want(b.T, "outcome", row.Outcome, idempotency.Skipped)
	want(b.T, "reason", row.Reason, "overlap")
	want(b.T, "text", row.Text, "still running")
	want(b.T, "fence", row.Fence, 0)
	want(b.T, "session", row.Session, 0)
	if row.Finished.Before(r.now) || !row.Started.IsZero() {
		b.Fatalf("times of a run that was skipped: %+v", row)
	}
	r.gets(idempotency.Taken, skip)

	wait := r.insert("k", due.Add(2*time.Second))
	wait.OnBusy = &idempotency.Finish{Outcome: idempotency.Wait, Wake: due.Add(5 * time.Second)}
	r.records(wait, idempotency.Wait)
	row = b.row(wait.ID)
	want(b.T, "state", row.State, idempotency.Waiting)
	want(b.T, "fence", row.Fence, 0)
	wantTime(b, "wake", row.Wake, due.Add(5*time.Second))
	r.gets(idempotency.Taken, wait)
	r.gets(idempotency.Busy, r.takeUp(wait.ID, 0))
}

// OverlapAllow: such runs neither hold the key nor ask for it.
func sharedIsNeverBusy(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	r.opens(due, due.Add(time.Second), due.Add(2*time.Second))
	shared := func(i int) idempotency.Claim {
		c := r.insert("k", due.Add(time.Duration(i)*time.Second))
		c.Exclusive = false
		return c
	}
	r.wins(shared(0))
	r.wins(r.insert("k", due.Add(time.Second)))
	r.wins(shared(2))
	want(b.T, "mine", len(r.mine()), 3)
}

// I8: never early, by the store's clock.
func early(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(-time.Hour)
	a := r.gets(idempotency.Early, r.insert("k", due))
	if a.Retry <= 0 || a.Retry > 2*time.Hour {
		b.Fatalf("ask again in %v, want about an hour", a.Retry)
	}
	want(b.T, "rows", len(b.list(idempotency.Filter{})), 0)
	lax := b.ready("lax", "h1", func(o *idempotency.Opening) { o.Tolerance = 24 * time.Hour })
	lax.gets(idempotency.Closed, lax.insert("k", due))
	lax.opens(due)
	r.gets(idempotency.Early, r.insert("k", due))
	lax.wins(lax.insert("k", due))
}

// F58: the horizon blocks what retention may have removed, and the claim
// carries what to write.
func expiredRecords(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(2 * time.Hour)
	r.opens(due)
	silent := r.insert("silent", due)
	silent.OnBusy = &idempotency.Finish{Outcome: idempotency.Skipped}
	r.gets(idempotency.Expired, silent)
	want(b.T, "state of the row without a record", b.row(silent.ID).State, 0)

	c := r.insert("k", due)
	c.OnExpired = &idempotency.Finish{Outcome: idempotency.Missed, Reason: "horizon"}
	r.gets(idempotency.Expired, c)
	row := b.row(c.ID)
	want(b.T, "outcome", row.Outcome, idempotency.Missed)
	want(b.T, "reason", row.Reason, "horizon")
	r.gets(idempotency.Taken, c)
	lax := b.ready("lax", "h1", func(o *idempotency.Opening) { o.Horizon, o.Retention = 3*time.Hour, 4*time.Hour })
	lax.wins(lax.insert("silent", due))
}

// F3: of a due that is closed nothing is recorded: its key may have been done
// and pruned.
func expiredOfClosedDueRecordsNothing(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(2 * time.Hour)
	r.opens(due)
	r.finishedAll(due)
	c := r.insert("k", due)
	c.OnExpired = &idempotency.Finish{Outcome: idempotency.Missed, Reason: "horizon"}
	c.OnBusy = &idempotency.Finish{Outcome: idempotency.Skipped, Reason: "overlap"}
	if a := r.claim(c)[0]; a.Verdict != idempotency.Expired && a.Verdict != idempotency.Closed {
		b.Fatalf("claim of a closed due older than the horizon: %+v", a)
	}
	want(b.T, "rows", len(b.list(idempotency.Filter{})), 0)
}

// F2, F3: a claim that comes after its due was closed.
func closedAfterClose(b *bundle) {
	a, z := b.ready("a", "h1"), b.ready("z", "h1")
	due := b.ago(time.Minute)
	a.gets(idempotency.Closed, a.insert("k", due))
	a.opens(due, due.Add(time.Second))
	waiting := a.insert("w", due)
	fence := a.wins(waiting).Fence
	b.finishes(idempotency.Finished, waits(waiting.ID, fence, due))
	a.finishedAll(due)
	late := z.insert("k", due)
	late.OnBusy = &idempotency.Finish{Outcome: idempotency.Skipped}
	z.gets(idempotency.Closed, late)
	want(b.T, "state", b.row(late.ID).State, 0)
	// A waiting run of a closed due is taken up all the same.
	z.wins(z.takeUp(waiting.ID, fence))
}

// F8, R18: claims are by the definition that the entry has.
func staleDefinition(b *bundle) {
	a, z := b.ready("a", "h1"), b.ready("z", "h2")
	due := b.ago(time.Minute)
	a.opens(due)
	c := a.insert("k", due)
	fence := a.wins(c).Fence
	z.gets(idempotency.StaleDefinition, z.insert("l", due))
	forged := z.insert("l", due)
	forged.Hash = "h1"
	z.gets(idempotency.StaleDefinition, forged) // it never announced it
	unknown := a.insert("k", due)
	unknown.ID.Job = "unknown"
	a.gets(idempotency.StaleDefinition, unknown)

	want(b.T, "won", z.decide(z.decision(keyed)).Won, true)
	a.gets(idempotency.StaleDefinition, a.insert("l", due))
	a.gets(idempotency.StaleDefinition, c) // before taken
	b.finishes(idempotency.Finished, waits(c.ID, fence, due))
	a.gets(idempotency.StaleDefinition, a.takeUp(c.ID, fence))
	z.wins(z.takeUp(c.ID, fence))
	z.wins(z.insert("l", due))
}

// I12: the request is part of the identity.
func requestsAreApart(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	r.opens(due)
	scheduled := r.insert("k", due)
	byHand := r.insert("k", due)
	scheduled.Exclusive, byHand.Exclusive, byHand.ID.Request = false, false, "r-1"
	first, second := r.wins(scheduled).Fence, r.wins(byHand).Fence
	r.gets(idempotency.Taken, byHand)
	b.finishes(idempotency.Fenced, done(scheduled.ID, second), done(byHand.ID, first))
	b.finishes(idempotency.Finished, done(scheduled.ID, first), done(byHand.ID, second))
}

func claimAnswersInOrder(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	r.opens(due, due.Add(time.Second))
	stale := r.insert("s", due)
	stale.Hash = "h0"
	got := r.claim(
		r.insert("z", due), stale, r.insert("z", due.Add(time.Second)), r.insert("a", due),
		r.insert("e", b.ago(-time.Hour)), r.insert("c", due.Add(-time.Second)), r.takeUp(key("none", due), 0),
	)
	for i, v := range []idempotency.Verdict{
		idempotency.Won, idempotency.StaleDefinition, idempotency.Busy, idempotency.Won,
		idempotency.Early, idempotency.Closed, idempotency.Taken,
	} {
		want(b.T, "verdict", got[i].Verdict, v)
	}
	want(b.T, "fence of the first", b.row(key("z", due)).Fence, got[0].Fence)
	want(b.T, "fence of the fourth", b.row(key("a", due)).Fence, got[3].Fence)
	want(b.T, "answers to nothing", len(r.claim()), 0)
}
