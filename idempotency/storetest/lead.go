package storetest

import (
	"errors"
	"strings"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// Who leads, for a store that is idempotency.Leaders. F52, LD-06.
var leadLaws = []law{
	{"NobodyLedBefore", nobodyLedBefore},
	{"WhoLeadsStays", whoLeadsStays},
	{"HigherTermLeads", higherTermLeads},
	{"ResignedIsFollowed", resignedIsFollowed},
	{"ResignOfWhoDoesNotLead", resignOfWhoDoesNotLead},
	{"EndedSessionIsFollowed/Lapsed", endedSessionIsFollowed(func(b *bundle, dying *replica) { dying.lapse() })},
	{"EndedSessionIsFollowed/Closed", endedSessionIsFollowed(func(b *bundle, dying *replica) { dying.close() })},
	{"EndedSessionIsFollowed/Marked", endedSessionIsFollowed(func(b *bundle, dying *replica) {
		dying.lapse()
		b.open("witness").mark(dying)
	})},
	{"LapsedIsMarkedDead", lapsedLeaderIsMarkedDead},
	{"LivingIsNotMarkedDead", livingLeaderIsNotMarkedDead},
	{"TermsRise", termsRise},
	{"NamespacesAreApart", leadersAreApart},
	{"BytesRoundTrip", leaderRoundTrips},
	{"Refusals", leadRefusals},
	{"PruneKeepsItsSession", pruneKeepsTheLeader},
	{"ReopenKeepsIt", reopenKeepsTheLeader},
}

// power is the store as one that knows leaders. A law of a driver that does not is skipped.
func (b *bundle) power(s Store) idempotency.Leaders {
	b.Helper()
	l, ok := s.(idempotency.Leaders)
	if !ok {
		b.Skip("the store knows no leaders")
	}
	return l
}

func (b *bundle) leader() idempotency.Leader {
	b.Helper()
	l, err := b.power(b.Store).Leader(b.Context(), namespace)
	if err != nil {
		b.Fatalf("leader: %v", err)
	}
	return l
}

// stands asks to lead, and returns who does, which is somebody.
func (r *replica) stands(term int64) idempotency.Leader {
	r.Helper()
	l, err := r.power(r.store).Lead(r.Context(), r.session, term)
	r.alive("lead", err)
	if l.Term < 1 || !l.Until.IsZero() {
		r.Fatalf("lead: %+v does not lead", l)
	}
	return l
}

// leads asks to lead, and begins to: in that term, or where it is 0 in one of the store's, for that reason.
func (r *replica) leads(term int64, why string) idempotency.Leader {
	r.Helper()
	before := r.renewed()
	l := r.stands(term)
	if l.Since.Before(before) || l.Since.After(r.renewed()) {
		r.Fatalf("leads since %v, and was asked at %v", l.Since, before)
	}
	if term == 0 {
		term = l.Term
	}
	want(r.T, "leader", l, idempotency.Leader{Term: term, Session: r.session.ID, Replica: r.opening.Replica, Since: l.Since, Why: why})
	want(r.T, "leader, to those who only ask", r.leader(), l)
	return l
}

func (r *replica) resigns(term int64, why string) {
	r.Helper()
	if err := r.power(r.store).Resign(r.Context(), r.session, term, why); err != nil {
		r.Fatalf("resign: %v", err)
	}
}

// ledUntil wants the leader to have ended, between two instants of the store's clock.
func (b *bundle) ledUntil(l idempotency.Leader, from, to time.Time, why string) {
	b.Helper()
	got := b.leader()
	if got.Until.Before(from) || got.Until.After(to) || got.Until.Location() != time.UTC {
		b.Fatalf("led until %v, want between %v and %v", got.Until, from, to)
	}
	l.Until, l.Why = got.Until, why
	want(b.T, "leader that ended", got, l)
}

func wantDead(b *bundle, what string, err error) {
	b.Helper()
	if !errors.Is(err, idempotency.ErrSessionDead) {
		b.Fatalf("%s: %v, want ErrSessionDead", what, err)
	}
}

func nobodyLedBefore(b *bundle) {
	want(b.T, "leader where there was no session", b.leader(), idempotency.Leader{})
	a := b.open("a")
	want(b.T, "leader where nobody stood", b.leader(), idempotency.Leader{})
	a.resigns(1, "in vain")
	want(b.T, "leader after a resignation of nobody", b.leader(), idempotency.Leader{})
	a.leads(0, "nobody led before")
}

// A call that changes nothing writes nothing: it draws no fence either.
func whoLeadsStays(b *bundle) {
	a, z := b.open("a"), b.open("z")
	l := a.leads(0, "nobody led before")
	before, err := a.store.RenewSession(b.Context(), a.session)
	a.alive("renew", err)
	for _, term := range []int64{0, 1, l.Term - 1, l.Term} {
		if term >= 0 {
			want(b.T, "leader, to another", z.stands(term), l)
			want(b.T, "leader, to itself", a.stands(term), l)
		}
	}
	z.resigns(l.Term, "not mine")
	want(b.T, "leader", b.leader(), l)
	after, err := a.store.RenewSession(b.Context(), a.session)
	a.alive("renew", err)
	want(b.T, "highest number that was drawn", after.Highest, before.Highest)
}

// The terms of an elector: a higher one is followed, whoever has it.
func higherTermLeads(b *bundle) {
	a, z := b.open("a"), b.open("z")
	first := a.leads(0, "nobody led before")
	second := z.leads(first.Term+100, "a: a higher term")
	want(b.T, "leader, to the one that was overtaken", a.stands(0), second)
	want(b.T, "leader, to it in a term between", a.stands(first.Term+99), second)
	a.resigns(first.Term, "late")
	a.resigns(second.Term, "another's")
	want(b.T, "leader", b.leader(), second)
	third := z.leads(second.Term+1, "z: a higher term") // elected again
	z.resigns(second.Term, "late")
	want(b.T, "leader", b.leader(), third)
	a.leads(1<<62, "z: a higher term")
	a.resigns(1<<62, "")
	z.leads(5, "a: resigned") // nobody led
	a.leads(6, "z: a higher term")
}

// DP-07. Who resigned may lead again.
func resignedIsFollowed(b *bundle) {
	a, z := b.open("a"), b.open("z")
	l := a.leads(0, "nobody led before")
	before := a.renewed()
	a.resigns(l.Term, "draining")
	after := a.renewed()
	b.ledUntil(l, before, after, "resigned: draining")
	for range 3 {
		a.resigns(l.Term, "again")
	}
	z.resigns(l.Term, "not mine")
	b.ledUntil(l, before, after, "resigned: draining")
	next := z.leads(0, "a: resigned: draining")
	z.resigns(next.Term, "")
	want(b.T, "why", b.leader().Why, "resigned")
	again := z.leads(0, "z: resigned")
	z.resigns(next.Term, "late")
	want(b.T, "leader", b.leader(), again)
}

// It needs no live session, and is no error: a replica may resign after it has closed its session.
func resignOfWhoDoesNotLead(b *bundle) {
	a, z := b.open("a"), b.open("z")
	l := a.leads(0, "nobody led before")
	unknown := idempotency.Session{Namespace: namespace, ID: a.session.ID + 1000}
	for _, s := range []idempotency.Session{unknown, {Namespace: namespace}, {Namespace: "other", ID: a.session.ID}} {
		if err := b.power(b.Store).Resign(b.Context(), s, l.Term, "not mine"); err != nil {
			b.Fatalf("resign of session %+v: %v", s, err)
		}
	}
	a.resigns(l.Term+1, "not mine")
	want(b.T, "leader", b.leader(), l)
	before := z.renewed()
	a.close()
	after := z.renewed()
	a.resigns(l.Term, "late")
	b.ledUntil(l, before, after, "its session ended")
}

func endedSessionIsFollowed(die func(b *bundle, dying *replica)) func(*bundle) {
	return func(b *bundle) {
		z, dying := b.open("z"), b.open("dying", b.brief)
		l := dying.stands(0)
		again := z.stands(0)
		dying.renewed() // else it lapsed too early, and is followed already
		want(b.T, "leader, to another", again, l)
		expires := b.expires(dying)
		before := z.renewed()
		die(b, dying)
		until := z.renewed()
		if until.After(expires) {
			before, until = expires, expires
		}
		if b.Advance != nil {
			b.Advance(time.Second) // it ended then, and not when somebody asks
		}
		b.ledUntil(l, before, until, "its session ended")
		next := z.leads(0, "dying: its session ended")
		if next.Term <= l.Term {
			b.Fatalf("term %d after %d", next.Term, l.Term)
		}
		dying.resigns(l.Term, "late")
		want(b.T, "leader", b.leader(), next)
	}
}

// expires is when a live session's lease ends.
func (b *bundle) expires(r *replica) time.Time {
	b.Helper()
	for _, s := range b.overview().Sessions {
		if s.ID == r.session.ID {
			return s.Expires
		}
	}
	r.alive("overview", idempotency.ErrSessionDead)
	return time.Time{}
}

// Two leaders at once would follow if a clock that steps back revived the one before. R17, F11.
func lapsedLeaderIsMarkedDead(b *bundle) {
	z, dying := b.ready("z", "h1"), b.ready("dying", "h1", b.brief)
	x := dying.runs(1, b.ago(time.Minute))[0]
	dying.stands(0)
	dying.lapse()
	z.gets(idempotency.Taken, z.takeUp(x.ID, x.Fence)) // it is not marked yet
	l := z.leads(0, "dying: its session ended")
	z.wins(z.takeUp(x.ID, x.Fence))
	if b.Advance != nil {
		b.Advance(-2 * b.lease)
	}
	_, err := dying.store.RenewSession(b.Context(), dying.session)
	wantDead(b, "renewal of the one before", err)
	want(b.T, "leader", b.leader(), l)
}

// Who resigned or was overtaken goes on with all else.
func livingLeaderIsNotMarkedDead(b *bundle) {
	a, z := b.ready("a", "h1"), b.ready("z", "h1")
	x := a.runs(1, b.ago(time.Minute))[0]
	l := a.leads(0, "nobody led before")
	a.resigns(l.Term, "")
	l = z.leads(0, "a: resigned")
	z.gets(idempotency.Taken, z.takeUp(x.ID, x.Fence))
	a.leads(l.Term+1, "z: a higher term")
	z.leads(l.Term+2, "a: a higher term")
	z.gets(idempotency.Taken, z.takeUp(x.ID, x.Fence))
	a.renewed()
}

// A term of the store's is a fence: it rises, is no run's, and Highest covers it.
func termsRise(b *bundle) {
	r := b.ready("r", "h1")
	due := b.ago(time.Minute)
	r.opens(due)
	used := make(map[int64]bool)
	last := int64(0)
	for i := range 6 {
		used[r.wins(r.insert(strings.Repeat("k", i+1), due)).Fence] = true
		x := b.open("x")
		l := x.stands(0)
		want(b.T, "session", l.Session, x.session.ID)
		if l.Term <= last || used[l.Term] {
			b.Fatalf("term %d after %d, with the fences %v", l.Term, last, used)
		}
		last, used[l.Term] = l.Term, true
		renewal, err := r.store.RenewSession(b.Context(), r.session)
		r.alive("renew", err)
		if renewal.Highest < last {
			b.Fatalf("Highest is %d in term %d", renewal.Highest, last)
		}
		if i%2 == 0 {
			x.close()
		} else {
			x.resigns(last, "")
		}
	}
	fence := r.wins(r.insert("last", due)).Fence
	want(b.T, "a later fence is one that was used", used[fence], false)
}

func leadersAreApart(b *bundle) {
	a, z := b.open("a"), b.open("z", func(o *idempotency.Opening) { o.Namespace = "other" })
	l := a.leads(0, "nobody led before")
	there, err := b.power(b.Store).Leader(b.Context(), "other")
	want(b.T, "error", err, nil)
	want(b.T, "leader there", there, idempotency.Leader{})
	there = z.stands(l.Term)
	want(b.T, "why there", there.Why, "nobody led before")
	want(b.T, "replica there", there.Replica, "z")
	z.resigns(l.Term, "")
	want(b.T, "leader here", b.leader(), l)
	z.stands(0)
	a.close()
	there, err = b.power(b.Store).Leader(b.Context(), "other")
	want(b.T, "error", err, nil)
	want(b.T, "leader there, once the one here is dead", there.Until.IsZero(), true)
	stray := a.session
	stray.Namespace = "other"
	_, err = b.power(b.Store).Lead(b.Context(), stray, 0)
	wantDead(b, "lead by a session of another namespace", err)
}

func leaderRoundTrips(b *bundle) {
	b.power(b.Store)
	last := ""
	for i, name := range []string{"Töm's replica\x00 😀 ", strings.Repeat("r", 255), "z "} {
		why := []string{strings.Repeat("w", 255), "a 'q\"\x00 😀\\ ", ""}[i]
		r := b.open(name)
		expect := "nobody led before"
		if i > 0 {
			expect = last
		}
		l := r.leads(0, expect)
		r.resigns(l.Term, why)
		last = strings.TrimSuffix("resigned: "+why, ": ")
		want(b.T, "why", b.leader().Why, last)
		last = name + ": " + last
	}
}

func leadRefusals(b *bundle) {
	a := b.open("a")
	l := a.leads(0, "nobody led before")
	s := b.power(b.Store)
	resign := func(term int64, why string) error { return s.Resign(b.Context(), a.session, term, why) }
	_, lead := s.Lead(b.Context(), a.session, -1)
	_, leader := s.Leader(b.Context(), "no name")
	for what, err := range map[string]error{
		"a negative term to lead in":     lead,
		"a namespace that is no name":    leader,
		"a negative term to resign from": resign(-1, ""),
		"no term to resign from":         resign(0, ""),
		"why in 256 bytes":               resign(l.Term, strings.Repeat("w", 256)),
		"why that is not UTF-8":          resign(l.Term, "\xff"),
	} {
		if err == nil {
			b.Errorf("%s was taken", what)
		}
	}
	want(b.T, "leader", b.leader(), l)
}

// The row names its session for as long as it has no other.
func pruneKeepsTheLeader(b *bundle) {
	r, gone := b.open("a", forgetful), b.open("gone")
	l := gone.leads(0, "nobody led before")
	gone.close()
	until := b.leader().Until
	r.outlasts(3 * time.Second)
	l.Until, l.Why = until, "its session ended"
	want(b.T, "leader that ended", b.leader(), l)
	r.leads(0, "gone: its session ended")
	want(b.T, "removed, now that nothing names it", r.prune(100), 1)
}

func reopenKeepsTheLeader(b *bundle) {
	if b.Reopen == nil {
		b.Skip("the driver forgets")
	}
	a := b.open("a")
	l := a.leads(0, "nobody led before")
	b.Store = b.Reopen(b.T)
	a.store = b.Store
	want(b.T, "leader", b.leader(), l)
	want(b.T, "leader, to itself", a.stands(0), l)
	a.resigns(l.Term, "draining")
	ended := b.leader()
	b.Store = b.Reopen(b.T)
	a.store = b.Store
	want(b.T, "leader that resigned", b.leader(), ended)
}
