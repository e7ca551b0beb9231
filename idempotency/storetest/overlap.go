package storetest

import (
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

var overlapLaws = []law{
	{"DecideQueuesOne", decideQueuesOne},
	{"DecideQueuesBehindARetry", decideQueuesBehindARetry},
	{"DecideAllowRunsBeside", decideAllowRunsBeside},
	{"DecideCancelOvertakes", decideCancelOvertakes},
	{"DecideCancelOfAFreeKeyOvertakesNothing", decideCancelOfAFreeKey},
	{"DecideCatchUpOvertakesNothing", decideCatchUpOvertakesNothing},
	{"ClaimQueuesOne", claimQueuesOne},
	{"ClaimOvertakes", claimOvertakes},
	{"ClaimOvertakesNothingNewer", claimOvertakesNothingNewer},
	{"ClaimThatIsNotBusyOvertakesNothing", claimThatIsNotBusy},
	{"OvertakenKeepsACancel", overtakenKeepsACancel},
	{"BadClaimIsRefused", badOverlapClaimIsRefused},
}

// overlaps decides dues of the job without keys by a policy, with workers to spare.
func (r *replica) overlaps(o idempotency.Overlap, dues ...time.Time) []idempotency.Run {
	r.Helper()
	d := r.decision(plain, dues...)
	d.Claim, d.Overlap = len(dues), o
	a := r.decide(d)
	want(r.T, "won", a.Won, true)
	want(r.T, "runs", len(a.Runs), len(dues))
	return a.Runs
}

// skipped wants a run to have ended so.
func (b *bundle) skips(id idempotency.ID, reason string) {
	b.Helper()
	b.ends(id, idempotency.Skipped, reason)
}

func (b *bundle) ends(id idempotency.ID, o idempotency.Outcome, reason string) idempotency.Run {
	b.Helper()
	x := b.row(id)
	if x.State != idempotency.Ended || x.Outcome != o || x.Reason != reason || x.Finished.IsZero() || !x.Wake.IsZero() || x.Cancel != "" {
		b.Fatalf("run %v: %+v, want it ended %v (%s)", id, x, o, reason)
	}
	return x
}

func (b *bundle) in(id idempotency.ID, state idempotency.State) idempotency.Run {
	b.Helper()
	x := b.row(id)
	want(b.T, "state of "+id.Key+" due "+id.Due.Format(time.TimeOnly), x.State, state)
	return x
}

// JB-05: a due that finds a run at work waits; the next one finds that it waits, and is skipped.
func decideQueuesOne(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	first := r.overlaps(idempotency.OverlapQueue, due)[0]
	want(b.T, "state of the first", first.State, idempotency.Running)
	// Dues of one decision do not skip each other.
	both := r.overlaps(idempotency.OverlapQueue, due.Add(time.Second), due.Add(2*time.Second))
	for _, x := range both {
		b.in(x.ID, idempotency.Waiting)
	}
	third := r.overlaps(idempotency.OverlapQueue, due.Add(3*time.Second))[0]
	b.skips(third.ID, "overlap")
	b.finishes(idempotency.Finished, done(first.ID, first.Fence))
	fourth := r.overlaps(idempotency.OverlapQueue, due.Add(4*time.Second))[0]
	want(b.T, "state where nothing is at work", fourth.State, idempotency.Running)
}

// R9: a run that waits for its next attempt waits, too.
func decideQueuesBehindARetry(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	first := r.overlaps(idempotency.OverlapQueue, due)[0]
	b.finishes(idempotency.Finished, waits(first.ID, first.Fence, b.ago(-time.Hour)))
	second := r.overlaps(idempotency.OverlapQueue, due.Add(time.Second))[0]
	b.in(second.ID, idempotency.Running)
	third := r.overlaps(idempotency.OverlapQueue, due.Add(2*time.Second))[0]
	b.skips(third.ID, "overlap")
}

// Such runs hold no key, and are held up by none.
func decideAllowRunsBeside(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	held := r.runs(1, due)[0]
	d := r.decision(plain, due.Add(time.Second), due.Add(2*time.Second), due.Add(3*time.Second))
	d.Claim, d.Overlap = 2, idempotency.OverlapAllow
	runs := r.decide(d).Runs
	want(b.T, "runs", len(runs), 3)
	for i, x := range runs {
		state := idempotency.Running
		if i == 2 {
			state = idempotency.Waiting // no worker
		}
		b.in(x.ID, state)
	}
	want(b.T, "one fence for both", runs[0].Fence == runs[1].Fence, false)
	want(b.T, "mine", len(r.mine()), 3)
	b.finishes(idempotency.Finished, done(held.ID, held.Fence))
	next := r.runs(1, due.Add(4*time.Second))[0]
	b.in(next.ID, idempotency.Running) // nothing holds the key
	d = r.decision(plain, due.Add(5*time.Second))
	d.Claim, d.Overlap, d.CatchUp = 1, idempotency.OverlapAllow, true
	b.in(r.decide(d).Runs[0].ID, idempotency.Waiting)
}

// The run at work is told to end, older ones that wait end at once, and the new one waits for the key.
func decideCancelOvertakes(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	retried := r.runs(1, due)[0]
	f := waits(retried.ID, retried.Fence, b.ago(-time.Hour))
	f.Attempt, f.Text = 2, "failed twice"
	b.finishes(idempotency.Finished, f)
	first := r.overlaps(idempotency.OverlapCancel, due.Add(time.Second))[0]
	b.in(first.ID, idempotency.Running)
	b.in(retried.ID, idempotency.Waiting)

	both := r.overlaps(idempotency.OverlapCancel, due.Add(2*time.Second), due.Add(3*time.Second))
	old := b.ends(retried.ID, idempotency.Skipped, idempotency.Overtaken)
	want(b.T, "attempts of the older", old.Attempt, 2)
	want(b.T, "text of the older", old.Text, "failed twice")
	want(b.T, "fence of the older", old.Fence, retried.Fence)
	want(b.T, "mark", b.in(first.ID, idempotency.Running).Cancel, idempotency.Overtaken)
	want(b.T, "mark in the holder's listing", r.mine()[0].Cancel, idempotency.Overtaken)
	for _, x := range both { // none of one decision overtakes another
		b.in(x.ID, idempotency.Waiting)
	}
	third := r.overlaps(idempotency.OverlapCancel, due.Add(4*time.Second))[0]
	for _, x := range both {
		b.skips(x.ID, idempotency.Overtaken)
	}
	want(b.T, "waiting while the overtaken one runs", len(r.lag(all()).Waiting), 0)
	f = done(first.ID, first.Fence)
	f.Outcome, f.Reason = idempotency.Skipped, idempotency.Overtaken
	b.finishes(idempotency.Finished, f)
	r.wins(r.takeUp(third.ID, 0))
	want(b.T, "mark of the one that waited", b.in(third.ID, idempotency.Running).Cancel, "")
}

// Where nothing is at work the new run starts, and what waits may wait on.
func decideCancelOfAFreeKey(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	waiting := r.runs(0, due)[0]
	b.in(r.overlaps(idempotency.OverlapCancel, due.Add(time.Second))[0].ID, idempotency.Running)
	b.in(waiting.ID, idempotency.Waiting)
}

// F6: what catches up waits, and ends nothing.
func decideCatchUpOvertakesNothing(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	waiting, held := r.runs(0, due)[0], r.runs(1, due.Add(time.Second))[0]
	d := r.decision(plain, due.Add(2*time.Second))
	d.Overlap, d.CatchUp = idempotency.OverlapCancel, true
	b.in(r.decide(d).Runs[0].ID, idempotency.Waiting)
	b.in(waiting.ID, idempotency.Waiting)
	want(b.T, "mark", b.in(held.ID, idempotency.Running).Cancel, "")
}

// queues is an insert that waits where the key is held, but not behind another that does.
func (r *replica) queues(k string, due time.Time) idempotency.Claim {
	c := r.insert(k, due)
	c.OnBusy = &idempotency.Finish{Outcome: idempotency.Wait, Wake: due, Text: "queued"}
	c.OnQueued = &idempotency.Finish{Outcome: idempotency.Skipped, Reason: "overlap", Text: "another one waits"}
	return c
}

func claimQueuesOne(b *bundle) {
	r := b.ready("a", "h1")
	due := repeat(5, func(i int) time.Time { return b.ago(time.Duration(60-i) * time.Second) })
	r.opens(due...)
	first := r.wins(r.queues("k", due[0])).Fence
	r.wins(r.insert("other", due[0]))
	// In one batch, too, each in the light of those before it.
	for _, a := range r.claim(r.queues("k", due[1]), r.queues("k", due[2]), r.queues("other", due[1])) {
		want(b.T, "verdict", a.Verdict, idempotency.Busy)
	}
	want(b.T, "text", b.in(key("k", due[1]), idempotency.Waiting).Text, "queued")
	b.in(key("other", due[1]), idempotency.Waiting) // another key's wait is no matter
	b.skips(key("k", due[2]), "overlap")
	want(b.T, "text of the skipped", b.row(key("k", due[2])).Text, "another one waits")
	r.records(r.queues("k", due[3]), idempotency.Skipped)
	b.skips(key("k", due[3]), "overlap")
	r.gets(idempotency.Taken, r.queues("k", due[3]))

	b.finishes(idempotency.Finished, done(key("k", due[0]), first))
	second := r.wins(r.takeUp(key("k", due[1]), 0)).Fence
	r.records(r.queues("k", due[4]), idempotency.Wait)
	b.in(key("k", due[4]), idempotency.Waiting) // none waits any more
	b.finishes(idempotency.Finished, waits(key("k", due[1]), second, due[0]))
}

// overtakes is an insert that waits where the key is held, and tells who holds it to end.
func (r *replica) overtakes(k string, due time.Time) idempotency.Claim {
	c := r.insert(k, due)
	c.OnBusy, c.Overtake = &idempotency.Finish{Outcome: idempotency.Wait, Wake: due}, true
	return c
}

func claimOvertakes(b *bundle) {
	r, z := b.ready("a", "h1"), b.ready("z", "h1")
	due := repeat(4, func(i int) time.Time { return b.ago(time.Duration(60-i) * time.Second) })
	r.opens(due...)
	retried, held, other := r.insert("k", due[0]), r.insert("k", due[1]), r.insert("other", due[1])
	f := waits(retried.ID, r.wins(retried).Fence, due[0])
	f.Attempt, f.Text = 1, "failed once"
	b.finishes(idempotency.Finished, f)
	fence := r.wins(held).Fence
	r.wins(other)
	z.gets(idempotency.Busy, z.overtakes("k", due[2]))
	b.in(key("k", due[2]), idempotency.Waiting)
	old := b.ends(retried.ID, idempotency.Skipped, idempotency.Overtaken)
	want(b.T, "attempts of the older", old.Attempt, 1)
	want(b.T, "text of the older", old.Text, "failed once")
	for _, x := range r.mine() {
		mark := ""
		if x.ID.Key == "k" {
			mark = idempotency.Overtaken
		}
		want(b.T, "mark of "+x.ID.Key, x.Cancel, mark)
	}
	z.gets(idempotency.Busy, z.overtakes("k", due[3]))
	b.skips(key("k", due[2]), idempotency.Overtaken)
	b.finishes(idempotency.Finished, done(held.ID, fence)) // nil is done, told or not
	b.ends(held.ID, idempotency.Done, "")
	z.wins(z.takeUp(key("k", due[3]), 0))
}

// An older due that comes late waits for the newer one.
func claimOvertakesNothingNewer(b *bundle) {
	r := b.ready("a", "h1")
	due := repeat(3, func(i int) time.Time { return b.ago(time.Duration(60-i) * time.Second) })
	r.opens(due...)
	newest, newer := r.insert("k", due[2]), r.insert("k", due[1])
	b.finishes(idempotency.Finished, waits(newest.ID, r.wins(newest).Fence, due[0]))
	r.wins(newer)
	r.gets(idempotency.Busy, r.overtakes("k", due[0]))
	b.in(key("k", due[0]), idempotency.Waiting)
	b.in(newest.ID, idempotency.Waiting)
	want(b.T, "mark", b.in(newer.ID, idempotency.Running).Cancel, "")
}

func claimThatIsNotBusy(b *bundle) {
	r := b.ready("a", "h1")
	due := repeat(3, func(i int) time.Time { return b.ago(time.Duration(60-i) * time.Second) })
	r.opens(due[0], due[1])
	old, held := r.insert("k", due[0]), r.insert("l", due[0])
	b.finishes(idempotency.Finished, waits(old.ID, r.wins(old).Fence, due[0]))
	r.wins(held)
	r.wins(r.overtakes("k", due[1]))
	b.in(old.ID, idempotency.Waiting)
	r.gets(idempotency.Closed, r.overtakes("l", due[2]))
	want(b.T, "mark by a claim that is closed", b.in(held.ID, idempotency.Running).Cancel, "")
}

// A person's word stays: the run ends as canceled.
func overtakenKeepsACancel(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	r.opens(due, due.Add(time.Second))
	held := r.insert("k", due)
	r.wins(held)
	want(b.T, "changed", b.submit(ask("c", idempotency.Cancel, held.ID)).Changed, 1)
	r.gets(idempotency.Busy, r.overtakes("k", due.Add(time.Second)))
	want(b.T, "mark", b.in(held.ID, idempotency.Running).Cancel, idempotency.Canceled)
}

// badly makes claims, each after something was done to it that makes it bad, and keeps what was answered, by what is bad.
func (r *replica) badly() (claim func(what string, c idempotency.Claim, bad func(*idempotency.Claim)), errs map[string]error) {
	errs = make(map[string]error)
	return func(what string, c idempotency.Claim, bad func(*idempotency.Claim)) {
		bad(&c)
		_, errs[what] = r.store.Claim(r.Context(), r.session, 9, []idempotency.Claim{c})
	}, errs
}

func badOverlapClaimIsRefused(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	r.opens(due)
	claim, errs := r.badly()
	claim("a claim that queues without a wait", r.queues("k", due), func(c *idempotency.Claim) { c.OnBusy = nil })
	claim("a claim that overtakes without a wait", r.overtakes("k", due), func(c *idempotency.Claim) { c.OnBusy = &idempotency.Finish{Outcome: idempotency.Skipped} })
	claim("a claim that overtakes and holds no key", r.overtakes("k", due), func(c *idempotency.Claim) { c.Exclusive = false })
	claim("a claim that overtakes and queues", r.queues("k", due), func(c *idempotency.Claim) { c.Overtake = true })
	claim("a take-up that overtakes", r.takeUp(key("k", due), 0), func(c *idempotency.Claim) { c.Overtake = true })
	b.refused(errs)
}
