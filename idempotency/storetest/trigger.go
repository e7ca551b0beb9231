package storetest

import (
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

var triggerLaws = []law{
	{"JobWithoutKeysWaits", triggerOfAJobWithoutKeys},
	{"OneKeyWaits", triggerOfOneKey},
	{"AllKeysOpenADue", triggerOfAllKeys},
	{"PayloadOfAllKeysIsRejected", triggerOfAllKeysWithPayload},
	{"EfficiencyJobRunsThroughTheStore", triggerOfAnEfficiencyJob},
	{"PausedJobRuns", triggerOfAPausedJob},
	{"IsNoDecision", triggerIsNoDecision},
}

// triggered wants the run that a command made to wait.
func (b *bundle) triggered(c idempotency.Command, key string) idempotency.Run {
	b.Helper()
	want(b.T, "changed", c.Changed, 1)
	wantTime(b, "due of the record", c.ID.Due, c.At.Truncate(time.Second))
	x := b.in(idempotency.ID{Job: c.ID.Job, Key: key, Request: c.Request, Due: c.ID.Due}, idempotency.Waiting)
	wantTime(b, "wake", x.Wake, c.At)
	want(b.T, "reason", x.Reason, "by hand")
	want(b.T, "fence", x.Fence, 0)
	want(b.T, "session", x.Session, 0)
	want(b.T, "replica", x.Replica, "")
	want(b.T, "attempts and crashes", x.Attempt+x.Crashes, 0)
	if !x.Started.IsZero() || !x.Finished.IsZero() {
		b.Fatalf("times of a run that was just asked for: %+v", x)
	}
	return x
}

func triggerOfAJobWithoutKeys(b *bundle) {
	r := b.ready("a", "h1")
	c := ask("r-1", idempotency.Trigger, idempotency.ID{Job: plain})
	c.Payload = []byte("{\x00\xff}")
	x := b.triggered(b.submit(c), plain)
	want(b.T, "payload", string(x.Payload), string(c.Payload))
	named := b.triggered(b.submit(ask("r-2", idempotency.Trigger, idempotency.ID{Job: plain, Key: plain})), plain)
	want(b.T, "payload of none", named.Payload == nil, true)
	want(b.T, "waiting", len(r.lag(all()).Waiting), 2)
	a := r.wins(r.takeUp(x.ID, 0))
	want(b.T, "payload of the answer", string(a.Payload), string(c.Payload))
	r.gets(idempotency.Busy, r.takeUp(named.ID, 0)) // one run of a key at a time
	b.finishes(idempotency.Finished, done(x.ID, a.Fence))
	r.wins(r.takeUp(named.ID, 0))
}

func triggerOfOneKey(b *bundle) {
	r := b.ready("a", "h1")
	x := b.triggered(b.submit(ask("r", idempotency.Trigger, idempotency.ID{Job: keyed, Key: "k"})), "k")
	want(b.T, "open dues", len(r.lag(all()).Open), 0)
	b.finishes(idempotency.Finished, done(x.ID, r.wins(r.takeUp(x.ID, 0)).Fence))
	b.ends(x.ID, idempotency.Done, "")
}

func triggerOfAllKeys(b *bundle) {
	r := b.ready("a", "h1")
	c := b.submit(ask("r1", idempotency.Trigger, idempotency.ID{Job: keyed}))
	want(b.T, "changed", c.Changed, 1)
	wantTime(b, "due of the record", c.ID.Due, c.At.Truncate(time.Second))
	open := r.lag(all()).Open
	want(b.T, "open dues", len(open), 1)
	wantTime(b, "due", open[0].Due, c.ID.Due)
	wantTime(b, "opened", open[0].Opened, c.At)
	want(b.T, "catch up", open[0].CatchUp, true)
	want(b.T, "by hand", open[0].ByHand, true)
	want(b.T, "by hand, for people", b.overview().Open[0].ByHand, true)
	want(b.T, "rows", len(b.list(idempotency.Filter{})), 0)

	again := b.submit(ask("r2", idempotency.Trigger, idempotency.ID{Job: keyed}))
	changed := 1
	if again.ID.Due.Equal(c.ID.Due) {
		changed = 0
	}
	want(b.T, "changed by another", again.Changed, changed)
	want(b.T, "open dues after it", len(r.lag(all()).Open), 1+changed)
	r.opens(c.ID.Due) // its schedule has that second too
	want(b.T, "by hand once it is decided", r.lag(all()).Open[0].ByHand, true)
	r.wins(r.insert("k", c.ID.Due))
	r.finishedAll(c.ID.Due)
}

func triggerOfAllKeysWithPayload(b *bundle) {
	b.ready("a", "h1")
	c := ask("r", idempotency.Trigger, idempotency.ID{Job: keyed})
	c.Payload = []byte("p")
	b.rejects("a payload for all keys", c)
}

// Its scheduled runs never touch the store; one by hand is claimed, run and finished there.
func triggerOfAnEfficiencyJob(b *bundle) {
	r := b.efficient("a", "h1")
	x := b.triggered(b.submit(ask("r", idempotency.Trigger, idempotency.ID{Job: plain})), plain)
	want(b.T, "waiting", names(r.lag(all()).Waiting), names([]idempotency.Run{x}))
	b.finishes(idempotency.Finished, done(x.ID, r.wins(r.takeUp(x.ID, 0)).Fence))
	b.ends(x.ID, idempotency.Done, "")
}

func triggerOfAPausedJob(b *bundle) {
	r := b.ready("a", "h1")
	b.pause("p", plain)
	x := b.triggered(b.submit(ask("r", idempotency.Trigger, idempotency.ID{Job: plain})), plain)
	r.wins(r.takeUp(x.ID, 0))
}

// It is a run beside the scheduled ones: no due is decided by it, or skipped for it.
func triggerIsNoDecision(b *bundle) {
	r := b.ready("a", "h1", func(o *idempotency.Opening) { o.Tolerance = time.Hour })
	before := r.entry(plain)
	x := b.triggered(b.submit(ask("r", idempotency.Trigger, idempotency.ID{Job: plain})), plain)
	want(b.T, "entry", r.entry(plain), before)
	b.in(r.runs(1, x.ID.Due)[0].ID, idempotency.Running) // the same second's due
}
