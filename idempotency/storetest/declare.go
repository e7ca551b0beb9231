package storetest

import (
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

var declareLaws = []law{
	{"NewEntryStartsFromDeclaration", newEntryStartsFromDeclaration},
	{"OpenedIsNotAhead", openedIsNotAhead},
	{"KnownEntryKeepsItsDefinition", knownEntryKeepsItsDefinition},
	{"FirstSeenLastIsInForce", firstSeenLastIsInForce},
	{"RevisionBeatsFirstSeen", revisionBeatsFirstSeen},
	{"WithdrawnIsNotInForce", withdrawnIsNotInForce},
	{"ClosedIsNotInForce", closedIsNotInForce},
	{"LapseChangesWhatIsInForce", lapseChangesWhatIsInForce},
	{"LateDeclareChangesNothing", lateDeclareChangesNothing},
	{"AnswersInOrder", declareAnswersInOrder},
	{"KeyedIsTheEntrys", keyedIsTheEntrys},
	{"EfficiencyEntryHasNoDues", efficiencyEntryHasNoDues},
	{"EfficiencyEntryIsOpenedByADeclarationThatIs", efficiencyEntryIsOpened},
}

// A job seen for the first time starts from its declaration.
func newEntryStartsFromDeclaration(b *bundle) {
	r := b.open("a")
	d := b.definition(plain, "h1")
	d.Revision, d.Schedule = 3, "from(2026-01-01; @every 1h)"
	r.hash, r.defs = "h1", []idempotency.Declaration{d}
	e := r.entries()[0]
	want(b.T, "definition", e.Definition, d.Definition)
	want(b.T, "key", e.Key, "")
	want(b.T, "in force", e.InForce, "h1")
	wantTime(b, "opened", e.Opened, d.Opened)
	wantTime(b, "next", e.Next, d.Next)
	if !e.PausedFrom.IsZero() || !e.PausedUntil.IsZero() {
		b.Fatalf("a new entry is paused: %+v", e)
	}
	never := b.definition("never", "h1")
	never.Next = time.Time{}
	r.defs = append(r.defs, never)
	if e := r.entries()[1]; !e.Next.IsZero() {
		b.Fatalf("next of a job that is never due: %v", e.Next)
	}
}

// A Declare that comes after one with a higher nonce of the same session was
// overtaken on its way: it must not bring back what was withdrawn.
func lateDeclareChangesNothing(b *bundle) {
	r := b.open("a")
	declare := func(nonce int64, hash string) string {
		e, err := r.store.Declare(r.Context(), r.session, nonce, []idempotency.Declaration{b.definition(plain, hash)})
		r.alive("declare", err)
		return e[0].InForce
	}
	want(b.T, "in force first", declare(5, "h1"), "h1")
	want(b.T, "in force after the next", declare(7, "h2"), "h2")
	want(b.T, "in force after one that came late", declare(6, "h3"), "h2")
	want(b.T, "in force after a repetition", declare(7, "h2"), "h2")
}

// I13: a declaration from a replica whose clock is ahead opens up to now.
func openedIsNotAhead(b *bundle) {
	r := b.open("a", func(o *idempotency.Opening) { o.Tolerance = 24 * time.Hour })
	within, ahead := b.definition("within", "h1"), b.definition("ahead", "h1")
	within.Opened = r.now.Add(23 * time.Hour)
	ahead.Opened = r.now.Add(8 * 365 * 24 * time.Hour)
	r.defs = []idempotency.Declaration{within, ahead}
	e := r.entries()
	wantTime(b, "opened within the tolerance", e[0].Opened, within.Opened)
	if e[1].Opened.Before(r.now) || e[1].Opened.After(r.now.Add(12*time.Hour)) {
		b.Fatalf("opened ahead of the tolerance: %v, want the store's now, %v", e[1].Opened, r.now)
	}
}

// An entry's definition, opened and next change by Decide alone.
func knownEntryKeepsItsDefinition(b *bundle) {
	a := b.ready("a", "h1")
	first := a.entry(plain)
	z := b.open("z")
	d := b.definition(plain, "h2")
	d.Opened, d.Next, d.Schedule = b.ago(time.Hour), b.ago(time.Minute), "@every 7s"
	z.hash, z.defs = "h2", []idempotency.Declaration{d}
	e := z.entries()[0]
	want(b.T, "definition", e.Definition, first.Definition)
	wantTime(b, "opened", e.Opened, first.Opened)
	wantTime(b, "next", e.Next, first.Next)
	want(b.T, "in force", e.InForce, "h2")

	decided := z.decide(z.decision(plain))
	want(b.T, "won", decided.Won, true)
	want(b.T, "hash after the decision", decided.Entry.Hash, "h2")
	want(b.T, "hash that others see", a.entry(plain).Hash, "h2")
}

// First seen is counted, and counted once: who announces an old definition
// again does not put it in force.
func firstSeenLastIsInForce(b *bundle) {
	old, young := b.ready("old", "h1"), b.ready("young", "h2")
	want(b.T, "in force", old.entry(plain).InForce, "h2")
	again := b.ready("again", "h1")
	want(b.T, "in force after the old one came again", again.entry(plain).InForce, "h2")
	young.declare("h3", keyed, plain)
	want(b.T, "in force after a third", again.entry(plain).InForce, "h3")
	// It is counted per job.
	young.declare("h1", keyed)
	want(b.T, "in force of the job that only has the first left", again.entry(plain).InForce, "h1")
}

// Job.Revision, if set, beats first seen.
func revisionBeatsFirstSeen(b *bundle) {
	first := b.open("a")
	d := b.definition(plain, "h1")
	d.Revision = 2
	first.defs = []idempotency.Declaration{d}
	first.entries()
	z := b.ready("z", "h2")
	want(b.T, "in force", z.entry(plain).InForce, "h1")
	z.defs[1].Revision = 3
	want(b.T, "in force after a higher revision", z.entry(plain).InForce, "h2")
}

// What a session announced before and does not repeat is withdrawn.
func withdrawnIsNotInForce(b *bundle) {
	a, z := b.ready("a", "h1"), b.ready("z", "h2")
	z.declare("h2", keyed)
	want(b.T, "in force", a.entry(plain).InForce, "h1")
	want(b.T, "in force of what it repeats", a.entry(keyed).InForce, "h2")
	z.declare("h2")
	want(b.T, "in force after all is withdrawn", a.entry(keyed).InForce, "h1")
	z.declare("h2", plain)
	want(b.T, "in force after it is announced again", a.entry(plain).InForce, "h2")
}

// A deploy that is taken back in good order.
func closedIsNotInForce(b *bundle) {
	a, z := b.ready("a", "h1"), b.ready("z", "h2")
	z.close()
	want(b.T, "in force", a.entry(plain).InForce, "h1")
}

// F8: the end of a lease changes what is in force without a write, and the
// sweep of a replica that has it is told.
func lapseChangesWhatIsInForce(b *bundle) {
	a := b.ready("a", "h1")
	bad := b.ready("bad", "h2", b.brief)
	want(b.T, "won", bad.decide(bad.decision(plain)).Won, true)
	want(b.T, "hash", a.entry(plain).Hash, "h2")
	bad.lapse()
	found := false
	for _, e := range a.lag(idempotency.LagQuery{}).Entries {
		if e.Job == plain {
			found = true
			want(b.T, "hash", e.Hash, "h2")
			want(b.T, "in force", e.InForce, "h1")
		}
	}
	want(b.T, "the sweep finds the entry", found, true)
	decided := a.decide(a.decision(plain))
	want(b.T, "won", decided.Won, true)
	want(b.T, "hash after the decision", decided.Entry.Hash, "h1")
	for _, e := range a.lag(idempotency.LagQuery{}).Entries {
		if e.Job == plain {
			b.Fatalf("the sweep still finds the entry: %+v", e)
		}
	}
}

func declareAnswersInOrder(b *bundle) {
	r := b.open("a")
	for _, order := range [][]string{{"c", "a", "b"}, {"b", "C", "c", "a"}} {
		for i, e := range r.declare("h1", order...) {
			want(b.T, "job", e.Job, order[i])
		}
	}
	want(b.T, "nothing declared", len(r.declare("h1")), 0)
}

// Whether a job has keys is part of its definition: an entry changes it by a decision.
func keyedIsTheEntrys(b *bundle) {
	r := b.ready("a", "h1")
	want(b.T, "keyed", r.entry(keyed).Keyed, true)
	want(b.T, "keyed of the job without keys", r.entry(plain).Keyed, false)
	z := b.open("z")
	z.declare("h2", plain)
	z.defs[0].Keyed = true
	want(b.T, "keyed after a declaration", z.entry(plain).Keyed, false)
	d := z.decision(plain)
	d.Definition.Keyed = true
	want(b.T, "keyed in the answer", z.decide(d).Entry.Keyed, true)
	want(b.T, "keyed after a decision", r.entry(plain).Keyed, true)
}

// efficient is a session that announces the job without keys as an efficiency job's.
func (b *bundle) efficient(name, hash string) *replica {
	b.Helper()
	r := b.open(name)
	r.hash, r.defs = hash, []idempotency.Declaration{{Definition: b.definition(plain, hash).Definition}}
	r.entries()
	return r
}

// The store decides no due of an efficiency job, but it keeps the definition, so that people see which is in force.
func efficiencyEntryHasNoDues(b *bundle) {
	r := b.efficient("a", "h1")
	e := r.entry(plain)
	if !e.Opened.IsZero() || !e.Next.IsZero() {
		b.Fatalf("an efficiency job's entry is opened up to %v, next %v", e.Opened, e.Next)
	}
	want(b.T, "entries that lag", len(r.lag(all()).Entries), 0)
	young := b.efficient("young", "h2")
	lag := young.lag(all()).Entries
	want(b.T, "entries to put in force", len(lag), 1)
	d := idempotency.Decision{Seen: lag[0], Definition: young.defs[0].Definition}
	decided := young.decide(d)
	want(b.T, "won", decided.Won, true)
	want(b.T, "hash", decided.Entry.Hash, "h2")
	if e := young.entry(plain); !e.Opened.IsZero() || !e.Next.IsZero() {
		b.Fatalf("a decision opened an efficiency job's entry: %+v", e)
	}
	bad := young.defs[0]
	bad.Next = b.ago(0)
	_, err := young.store.Declare(b.Context(), young.session, 0, []idempotency.Declaration{bad})
	want(b.T, "a next due without an opening is refused", err != nil, true)
}

// A job that becomes a correctness job starts from that declaration; one that becomes an efficiency job keeps what it has.
func efficiencyEntryIsOpened(b *bundle) {
	b.efficient("a", "h1")
	z := b.open("z")
	d := b.definition(plain, "h1")
	d.Opened, d.Next = b.ago(time.Hour), b.ago(time.Minute)
	z.hash, z.defs = "h1", []idempotency.Declaration{d}
	e := z.entry(plain)
	wantTime(b, "opened", e.Opened, d.Opened)
	wantTime(b, "next", e.Next, d.Next)
	want(b.T, "ranges", len(b.ranges("")), 0)
	z.defs[0].Opened, z.defs[0].Next = b.ago(time.Minute), b.ago(0)
	wantTime(b, "opened once", z.entry(plain).Opened, d.Opened)
	e = b.efficient("back", "h1").entry(plain)
	wantTime(b, "opened after it became an efficiency job", e.Opened, d.Opened)
	wantTime(b, "next after that", e.Next, d.Next)
}
