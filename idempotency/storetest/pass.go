package storetest

import (
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

var passLaws = []law{
	{"SaveOrsItsBits", saveOrsItsBits},
	{"RepeatedSaveMovesOnly", repeatedSaveMovesOnly},
	{"SaveAfterCloseDoesNotRecreate", saveAfterClose},
	{"ClaimMovesThePass", claimMovesThePass},
	{"ClosesOnTheFullUnion", closesOnTheFullUnion},
	{"DeadSessionsBitsCount", deadSessionsBitsCount},
	{"ClosesMissedBeyondTheHorizon", closesMissed},
	{"FullUnionIsNotMissed", fullUnionIsNotMissed},
	{"FewPartitions", fewPartitions},
}

// own returns the session's pass over the only open due.
func (r *replica) own() idempotency.Pass {
	r.Helper()
	open := r.lag(all()).Open
	if len(open) != 1 {
		r.Fatalf("%d open dues, want one", len(open))
	}
	for _, p := range open[0].Passes {
		if p.Session == r.session.ID {
			return p
		}
	}
	r.Fatalf("no pass of session %d in %+v", r.session.ID, open[0])
	return idempotency.Pass{}
}

// R12: bits are never lost, whatever comes late; keys are a total.
func saveOrsItsBits(b *bundle) {
	a, z := b.ready("a", "h1"), b.ready("z", "h1")
	due := b.ago(time.Minute)
	a.opens(due)
	for _, p := range []idempotency.Pass{
		{Mine: bitmap(0, 1), Keys: 0},
		{Mine: bitmap(1, 2), Finished: bitmap(0), Keys: 5, Session: 99, MovedAt: due},
		{Finished: bitmap(1), Keys: 3},
		{Mine: bitmap(), Finished: bitmap()},
	} {
		p.Job, p.Due = keyed, due
		want(b.T, "verdict", a.save(p), idempotency.Won)
	}
	z.save(idempotency.Pass{Job: keyed, Due: due, Mine: bitmap(7), Finished: bitmap(7)})
	p := a.own()
	want(b.T, "mine", p.Mine[0], bitmap(0, 1, 2)[0])
	want(b.T, "finished", p.Finished[0], bitmap(0, 1)[0])
	want(b.T, "keys", p.Keys, 5)
	want(b.T, "union", a.lag(all()).Open[0].Finished[0], bitmap(0, 1, 7)[0])
	p = z.own()
	want(b.T, "mine of the other", p.Mine[0], bitmap(7)[0])
	want(b.T, "verdict of an unknown due", a.save(idempotency.Pass{Job: keyed, Due: due.Add(time.Second)}), idempotency.Closed)
	want(b.T, "open dues", len(a.lag(all()).Open), 1)
}

func repeatedSaveMovesOnly(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	r.opens(due)
	p := idempotency.Pass{Job: keyed, Due: due, Mine: bitmap(0, 3), Finished: bitmap(3), Keys: 4}
	r.save(p)
	first := r.own()
	b.eventually("the pass moves", func() bool {
		want(b.T, "verdict", r.save(p), idempotency.Won)
		return r.own().MovedAt.After(first.MovedAt)
	})
	again := r.own()
	want(b.T, "mine", again.Mine[0], first.Mine[0])
	want(b.T, "finished", again.Finished[0], first.Finished[0])
	want(b.T, "keys", again.Keys, 4)
}

// F3: closing refuses all that come after.
func saveAfterClose(b *bundle) {
	a, z := b.ready("a", "h1"), b.ready("z", "h1")
	due := b.ago(time.Minute)
	a.opens(due)
	z.save(idempotency.Pass{Job: keyed, Due: due, Mine: bitmap(1)})
	a.finishedAll(due)
	for range 2 {
		want(b.T, "verdict", z.save(idempotency.Pass{Job: keyed, Due: due, Finished: bitmap(1)}), idempotency.Closed)
		want(b.T, "open dues", len(a.lag(all()).Open), 0)
	}
	want(b.T, "closed again", z.closes(due, nil), true)
}

// A pass moves when a batch is answered: also one that won nothing.
func claimMovesThePass(b *bundle) {
	r, z := b.ready("a", "h1"), b.ready("z", "h1")
	due := b.ago(time.Minute)
	r.opens(due)
	z.wins(z.insert("k", due))
	want(b.T, "passes of who saved none", len(r.lag(all()).Open[0].Passes), 0)
	for _, x := range []*replica{r, z} {
		x.save(idempotency.Pass{Job: keyed, Due: due, Mine: bitmap(1), Keys: 2})
	}
	first, other := r.own(), z.own()
	b.eventually("the pass moves", func() bool {
		r.gets(idempotency.Taken, r.insert("k", due))
		return r.own().MovedAt.After(first.MovedAt)
	})
	p := r.own()
	want(b.T, "mine", p.Mine[0], first.Mine[0])
	want(b.T, "keys", p.Keys, 2)
	wantTime(b, "the other's pass moved", z.own().MovedAt, other.MovedAt)
}

// R13: the union is tested where the due is closed.
func closesOnTheFullUnion(b *bundle) {
	a, z := b.ready("a", "h1"), b.ready("z", "h1")
	due := b.ago(time.Minute)
	a.opens(due)
	want(b.T, "closed without a pass", a.closes(due, nil), false)
	a.save(idempotency.Pass{Job: keyed, Due: due, Mine: bitmap(0, 1, 2, 3, 4, 5, 6, 7), Finished: bitmap(0, 1, 2, 3)})
	z.save(idempotency.Pass{Job: keyed, Due: due, Finished: bitmap(3, 4, 5, 6)})
	want(b.T, "closed but for one partition", z.closes(due, nil), false)
	want(b.T, "open dues", len(a.lag(all()).Open), 1)
	z.save(idempotency.Pass{Job: keyed, Due: due, Finished: bitmap(7)})
	want(b.T, "closed", a.closes(due, nil), true)
	want(b.T, "closed again", z.closes(due, nil), true)
	want(b.T, "open dues", len(a.lag(all()).Open), 0)
	want(b.T, "ranges", len(b.ranges("")), 0)
}

// A partition that a dead session finished is finished.
func deadSessionsBitsCount(b *bundle) {
	a, dead := b.ready("a", "h1"), b.ready("dead", "h1")
	due := b.ago(time.Minute)
	a.opens(due)
	dead.save(idempotency.Pass{Job: keyed, Due: due, Finished: bitmap(0, 1, 2, 3)})
	dead.close()
	a.save(idempotency.Pass{Job: keyed, Due: due, Finished: bitmap(4, 5, 6, 7)})
	want(b.T, "closed", a.closes(due, nil), true)
}

// F4: a due that reaches the horizon open is closed, with one missed row.
func closesMissed(b *bundle) {
	r := b.ready("a", "h1")
	old, young := b.ago(2*time.Hour), b.ago(30*time.Minute)
	r.opens(old, young)
	missed := func(due time.Time) *idempotency.Range {
		return &idempotency.Range{Job: keyed, From: due, To: due, Count: 1, Outcome: idempotency.Missed, Reason: "source"}
	}
	want(b.T, "closed before the horizon", r.closes(young, missed(young)), false)
	want(b.T, "closed without a record", r.closes(old, nil), false)
	want(b.T, "ranges", len(b.ranges("")), 0)
	r.save(idempotency.Pass{Job: keyed, Due: old, Finished: bitmap(0)})
	want(b.T, "closed", r.closes(old, missed(old)), true)
	want(b.T, "closed again", r.closes(old, missed(old)), true)
	got := b.ranges(keyed)
	want(b.T, "ranges", len(got), 1)
	want(b.T, "range", got[0], *missed(old))
	want(b.T, "open dues", len(r.lag(all()).Open), 1)
}

// What is finished is not missed, however late it is closed.
func fullUnionIsNotMissed(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(2 * time.Hour)
	r.opens(due)
	r.save(idempotency.Pass{Job: keyed, Due: due, Finished: bitmap(0, 1, 2, 3, 4, 5, 6, 7)})
	missed := idempotency.Range{Job: keyed, From: due, To: due, Count: 1, Outcome: idempotency.Missed}
	want(b.T, "closed", r.closes(due, &missed), true)
	want(b.T, "ranges", len(b.ranges("")), 0)
}

// With fewer partitions than bits in a byte the union is full at the last one.
func fewPartitions(b *bundle) {
	for _, p := range []int{1, 2, 4} {
		r := b.open("a", func(o *idempotency.Opening) { o.Namespace, o.Partitions = string(rune('a'+p)), p })
		r.declare("h1", keyed)
		due := b.ago(time.Minute)
		r.opens(due)
		full := byte(1<<p - 1)
		r.save(idempotency.Pass{Job: keyed, Due: due, Mine: []byte{full}, Finished: []byte{full >> 1}})
		want(b.T, "closed but for one partition", r.closes(due, nil), false)
		q := all()
		q.Ranks[0] = []byte{full}
		want(b.T, "union", r.lag(q).Open[0].Finished[0], full>>1)
		r.finishedAllOf(due, full)
	}
}

func (r *replica) finishedAllOf(due time.Time, full byte) {
	r.Helper()
	r.save(idempotency.Pass{Job: keyed, Due: due, Finished: []byte{full}})
	want(r.T, "closed", r.closes(due, nil), true)
}
