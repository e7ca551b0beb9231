package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

var sessionLaws = []law{
	{"RenewalKeepsAlive", renewalKeepsAlive},
	{"LapsedNeverLivesAgain", lapsedNeverLivesAgain},
	{"CloseIsDeath", closeIsDeath},
	{"MarkDeadSparesTheLiving", markDeadSparesTheLiving},
	{"UnknownIsDead", unknownIsDead},
	{"DeadDoesNothing/Lapsed", deadDoesNothing(func(b *bundle, dying *replica) { dying.lapse() })},
	{"DeadDoesNothing/Closed", deadDoesNothing(func(b *bundle, dying *replica) { dying.close() })},
	{"DeadDoesNothing/Marked", deadDoesNothing(func(b *bundle, dying *replica) {
		dying.lapse()
		b.open("witness").mark(dying)
	})},
	{"FirstFixesPartitions", firstFixesPartitions},
	{"OneIdentity", oneIdentity},
	{"HighestNeverFalls", highestNeverFalls},
	{"NamespacesAreApart", namespacesAreApart},
	{"EndedContextDoesNothing", endedContextDoesNothing},
	{"ReopenKeepsAll", reopenKeepsAll},
}

// A renewed session outlives its first lease.
func renewalKeepsAlive(b *bundle) {
	r := b.open("a", b.brief)
	var last time.Time
	b.eventually("three leases pass", func() bool {
		renewal, err := r.store.RenewSession(b.Context(), r.session)
		r.alive("renew", err)
		if renewal.Now.Before(last) || !renewal.Now.Equal(renewal.Now.Truncate(time.Microsecond)) {
			b.Fatalf("the store's clock went from %v to %v", last, renewal.Now)
		}
		last = renewal.Now
		return last.After(r.now.Add(3 * b.lease))
	})
	wantTime(b, "now", last, last)
}

// DESIGN §2: a lapsed session is dead for good. F11.
func lapsedNeverLivesAgain(b *bundle) {
	r := b.open("a", b.brief)
	r.lapse()
	for range 3 {
		if _, err := r.store.RenewSession(b.Context(), r.session); !errors.Is(err, idempotency.ErrSessionDead) {
			b.Fatalf("renewing a lapsed session: %v, want ErrSessionDead", err)
		}
	}
	if _, err := r.store.Mine(b.Context(), r.session); !errors.Is(err, idempotency.ErrSessionDead) {
		b.Fatalf("after the renewals: %v, want ErrSessionDead", err)
	}
}

// A closed session is dead at once, and closing it again is no error.
func closeIsDeath(b *bundle) {
	r := b.open("a")
	r.close()
	if _, err := r.store.RenewSession(b.Context(), r.session); !errors.Is(err, idempotency.ErrSessionDead) {
		b.Fatalf("renewing a closed session: %v, want ErrSessionDead", err)
	}
	r.close()
	lapsed := b.open("b", b.brief)
	lapsed.lapse()
	lapsed.close()
}

// R17: the mark is conditional on "not live".
func markDeadSparesTheLiving(b *bundle) {
	a, other, gone := b.open("a"), b.open("b"), b.open("c")
	gone.close()
	a.mark(a, other, gone)
	for _, r := range []*replica{a, other} {
		if _, err := r.store.RenewSession(b.Context(), r.session); err != nil {
			b.Fatalf("a live session was marked dead: %v", err)
		}
	}
	if err := a.store.MarkDead(b.Context(), a.session, []int64{1 << 60, -1, 0}); err != nil {
		b.Fatalf("marking sessions that do not exist: %v", err)
	}
}

// A session is one of its namespace.
func unknownIsDead(b *bundle) {
	r := b.open("a")
	b.open("b", func(o *idempotency.Opening) { o.Namespace = "other" })
	for _, s := range []idempotency.Session{
		{Namespace: namespace, ID: r.session.ID + 1000}, {Namespace: namespace},
		{Namespace: "other", ID: r.session.ID}, {Namespace: "nowhere", ID: r.session.ID},
	} {
		if _, err := r.store.RenewSession(b.Context(), s); !errors.Is(err, idempotency.ErrSessionDead) {
			b.Fatalf("renewing session %+v: %v, want ErrSessionDead", s, err)
		}
	}
}

// I4, I9; the late call of a holder that was overtaken, whatever it is.
func deadDoesNothing(die func(b *bundle, dying *replica)) func(*bundle) {
	return func(b *bundle) {
		r := b.ready("a", "h1")
		due := b.ago(time.Minute)
		r.opens(due, due.Add(time.Second))
		waiting := r.runs(0, due)[0]
		dying := b.ready("dying", "h1", b.brief)
		decision := dying.decision(plain, due.Add(time.Second))
		if v := dying.save(idempotency.Pass{Job: keyed, Due: due, Mine: bitmap(1)}); v != idempotency.Won {
			b.Fatalf("pass: verdict %d", v)
		}
		die(b, dying)
		for name, call := range dying.calls(due, waiting, decision) {
			if err := call(b.Context()); !errors.Is(err, idempotency.ErrSessionDead) {
				b.Fatalf("%s of a dead session: %v, want ErrSessionDead", name, err)
			}
		}
		want(b.T, "rows", names(b.list(idempotency.Filter{})), names([]idempotency.Run{waiting}))
		want(b.T, "state of the row it wanted to take up", b.row(waiting.ID).State, idempotency.Waiting)
		want(b.T, "ranges", len(b.ranges("")), 0)
		wantTime(b, "opened", r.entry(plain).Opened, due)
		want(b.T, "in force", r.entry(plain).InForce, "h1")
		open := r.lag(all()).Open
		want(b.T, "open dues", len(open), 2)
		want(b.T, "finished bits", open[0].Finished[0], 0)
		r.renewed() // the one it wanted to mark
		b.nobodyLeads()
	}
}

// calls are all calls that demand a live session, each of which would change
// or show something.
func (r *replica) calls(due time.Time, waiting idempotency.Run, d idempotency.Decision) map[string]func(context.Context) error {
	missed := &idempotency.Range{Job: keyed, From: due, To: due, Count: 1, Outcome: idempotency.Missed}
	full := idempotency.Pass{Job: keyed, Due: due, Finished: bitmap(0, 1, 2, 3, 4, 5, 6, 7)}
	calls := map[string]func(context.Context) error{
		"RenewSession": func(ctx context.Context) error { _, err := r.store.RenewSession(ctx, r.session); return err },
		"MarkDead":     func(ctx context.Context) error { return r.store.MarkDead(ctx, r.session, []int64{1, 2, 3}) },
		"Declare": func(ctx context.Context) error {
			defs := slices.Clone(r.defs)
			for i := range defs {
				defs[i].Hash, defs[i].Revision = "h2", 9
			}
			_, err := r.store.Declare(ctx, r.session, 0, defs)
			return err
		},
		"Decide": func(ctx context.Context) error {
			d.Ranges = []idempotency.Range{{Job: plain, From: due, To: due, Count: 1, Outcome: idempotency.Missed}}
			_, err := r.store.Decide(ctx, r.session, 900, []idempotency.Decision{d})
			return err
		},
		"Lagging": func(ctx context.Context) error { _, err := r.store.Lagging(ctx, r.session, all()); return err },
		"Claim": func(ctx context.Context) error {
			_, err := r.store.Claim(ctx, r.session, 901, []idempotency.Claim{r.insert("late", due), r.takeUp(waiting.ID, 0)})
			return err
		},
		"Mine":  func(ctx context.Context) error { _, err := r.store.Mine(ctx, r.session); return err },
		"Prune": func(ctx context.Context) error { _, err := r.store.Prune(ctx, r.session, 10); return err },
		"SavePass": func(ctx context.Context) error {
			_, err := r.store.SavePass(ctx, r.session, []idempotency.Pass{full})
			return err
		},
		"CloseDue": func(ctx context.Context) error {
			_, err := r.store.CloseDue(ctx, r.session, keyed, due, missed)
			return err
		},
	}
	if l, ok := r.store.(idempotency.Leaders); ok {
		calls["Lead"] = func(ctx context.Context) error { _, err := l.Lead(ctx, r.session, 7); return err }
	}
	return calls
}

// nobodyLeads is for laws that hold of stores without leaders too.
func (b *bundle) nobodyLeads() {
	b.Helper()
	if _, ok := b.Store.(idempotency.Leaders); ok {
		want(b.T, "leader", b.leader(), idempotency.Leader{})
	}
}

// DESIGN §6: P is written in the store, per namespace; another is refused.
func firstFixesPartitions(b *bundle) {
	b.open("a").close()
	o := b.open("b").opening
	o.Partitions = 2 * partitions
	if _, _, err := b.Store.OpenSession(b.Context(), o); !errors.Is(err, idempotency.ErrRefused) {
		b.Fatalf("another number of partitions: %v, want ErrRefused", err)
	}
	o.Namespace = "other"
	if _, _, err := b.Store.OpenSession(b.Context(), o); err != nil {
		b.Fatalf("another number of partitions in a namespace of its own: %v", err)
	}
}

// F37, F38: the identity is the store's, whoever asks.
func oneIdentity(b *bundle) {
	r := b.open("a")
	first, err := r.store.RenewSession(b.Context(), r.session)
	r.alive("renew", err)
	if first.Store == "" {
		b.Fatal("the store has no identity")
	}
	stores := []Store{b.second()}
	if b.Reopen != nil {
		b.Store = b.Reopen(b.T)
		stores = []Store{b.Store}
	}
	for _, s := range stores {
		again, err := s.RenewSession(b.Context(), r.session)
		r.alive("renew", err)
		want(b.T, "identity", again.Store, first.Store)
	}
}

// A replica finds out by it that a store was rolled back: so it covers every fence answered before, of all namespaces,
// and stays what it is as long as the store does. F37.
func highestNeverFalls(b *bundle) {
	r := b.ready("a", "h1")
	other := b.ready("z", "h1", func(o *idempotency.Opening) { o.Namespace = "other" })
	last := int64(0)
	covers := func(what string, x idempotency.Renewal, err error, fence int64) {
		b.Helper()
		r.alive(what, err)
		if x.Highest < last || x.Highest < fence {
			b.Fatalf("%s: Highest is %d; it was %d, and a fence is %d", what, x.Highest, last, fence)
		}
		last = x.Highest
	}
	due := b.ago(time.Minute)
	for _, x := range []*replica{r, other} {
		x.opens(due)
	}
	for i, x := range []*replica{r, other, r, other} {
		fence := x.wins(x.insert(fmt.Sprint("k", i), due)).Fence
		renewal, err := r.store.RenewSession(b.Context(), r.session)
		covers("renewal after a claim", renewal, err, fence)
	}
	fence := r.wins(r.insert("last", due)).Fence
	_, renewal, err := b.second().OpenSession(b.Context(), other.opening)
	covers("opening after a claim", renewal, err, fence)
	b.finishes(idempotency.Finished, done(key("last", due), fence))
	r.finishedAll(due)
	if b.Reopen != nil {
		r.store = b.Reopen(b.T)
	}
	renewal, err = r.store.RenewSession(b.Context(), r.session)
	covers("renewal of the store opened anew", renewal, err, fence)
	if last >= 1<<62 {
		b.Fatalf("Highest is %d, which cannot have been drawn", last)
	}
}

// Two services in one database never see each other. I12.
func namespacesAreApart(b *bundle) {
	other := func(o *idempotency.Opening) { o.Namespace = "other" }
	a, z := b.ready("a", "h1"), b.ready("z", "h2", other)
	due := b.ago(time.Minute)
	a.opens(due)
	claim := a.insert("k", due)
	fence := a.wins(claim).Fence
	a.runs(0, due)

	want(b.T, "in force there", z.entry(keyed).InForce, "h2")
	lag := z.lag(all())
	want(b.T, "open and waiting there", len(lag.Open)+len(lag.Waiting), 0)
	z.gets(idempotency.Closed, z.insert("k", due))
	z.opens(due)
	z.wins(z.insert("k", due))
	answers, err := b.Store.Finish(b.Context(), "other", []idempotency.Finish{done(claim.ID, fence)})
	if err != nil || answers[0] != idempotency.Fenced {
		b.Fatalf("finish by a fence of another namespace: %v %v, want fenced", answers, err)
	}
	z.mark(a)
	a.close()
	z.mark(a)
	want(b.T, "orphans there", len(z.lag(all()).Orphaned), 0)
	want(b.T, "rows there", len(z.mine()), 1)
	want(b.T, "rows here", len(b.list(idempotency.Filter{})), 2)
}

// An ended context's error is answered, and nothing is done.
func endedContextDoesNothing(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	r.opens(due)
	waiting := r.runs(0, due)[0]
	decision := r.decision(plain, due.Add(time.Second))
	ctx, cancel := context.WithCancel(b.Context())
	cancel()
	calls := r.calls(due, waiting, decision)
	calls["OpenSession"] = func(ctx context.Context) error { _, _, err := r.store.OpenSession(ctx, r.opening); return err }
	calls["CloseSession"] = func(ctx context.Context) error { return r.store.CloseSession(ctx, r.session) }
	calls["Finish"] = func(ctx context.Context) error {
		_, err := r.store.Finish(ctx, namespace, []idempotency.Finish{done(waiting.ID, 1)})
		return err
	}
	calls["List"] = func(ctx context.Context) (err error) {
		for _, err = range r.store.List(ctx, idempotency.Filter{Namespace: namespace}) {
			continue
		}
		return err
	}
	if l, ok := r.store.(idempotency.Leaders); ok {
		calls["Resign"] = func(ctx context.Context) error { return l.Resign(ctx, r.session, 1, "") }
		calls["Leader"] = func(ctx context.Context) error { _, err := l.Leader(ctx, namespace); return err }
	}
	for name, call := range calls {
		if err := call(ctx); !errors.Is(err, context.Canceled) {
			b.Fatalf("%s with an ended context: %v, want context.Canceled", name, err)
		}
	}
	want(b.T, "rows", len(b.list(idempotency.Filter{})), 1)
	want(b.T, "open dues", len(r.lag(all()).Open), 1)
	want(b.T, "in force", r.entry(plain).InForce, "h1")
	b.nobodyLeads()
}

// I3, I9: a restart of the store changes nothing.
func reopenKeepsAll(b *bundle) {
	if b.Reopen == nil {
		b.Skip("the driver forgets")
	}
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	r.opens(due)
	c := r.insert("k", due)
	fence := r.wins(c).Fence
	r.runs(0, due)
	r.save(idempotency.Pass{Job: keyed, Due: due, Finished: bitmap(3), Keys: 7})
	before := r.lag(all())

	b.Store = b.Reopen(b.T)
	r.store = b.Store
	after := r.lag(all())
	want(b.T, "waiting", names(after.Waiting), names(before.Waiting))
	want(b.T, "open dues", len(after.Open), 1)
	want(b.T, "finished bits", after.Open[0].Finished[0], bitmap(3)[0])
	want(b.T, "keys", after.Open[0].Passes[0].Keys, 7)
	want(b.T, "mine", names(r.mine()), names([]idempotency.Run{{ID: c.ID}}))
	r.finishedAll(due)
	b.finishes(idempotency.Finished, done(c.ID, fence))
	want(b.T, "state", b.row(c.ID).State, idempotency.Ended)
}
