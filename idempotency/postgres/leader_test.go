package postgres

import (
	"fmt"
	"testing"

	"github.com/belfry-go/belfry/idempotency"
)

func (f *fixture) leads(ses idempotency.Session, term int64) idempotency.Leader {
	f.Helper()
	l, err := f.s.Lead(f.Context(), ses, term)
	if err != nil {
		f.Fatal(err)
	}
	return l
}

func (f *fixture) leader() idempotency.Leader {
	f.Helper()
	l, err := f.s.Leader(f.Context(), "ns")
	if err != nil {
		f.Fatal(err)
	}
	return l
}

func (f *fixture) resigns(ses idempotency.Session, term int64) {
	f.Helper()
	if err := f.s.Resign(f.Context(), ses, term, ""); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) leadBeside(ses idempotency.Session, term int64) <-chan answer[idempotency.Leader] {
	return beside(func() (idempotency.Leader, error) { return f.s.Lead(f.Context(), ses, term) })
}

// lapse lets the lease of a session end.
func (f *fixture) lapse(ses idempotency.Session) {
	f.Helper()
	exec(f, f.p, fmt.Sprintf(`UPDATE belfry_session SET expires = now() WHERE id = %d`, ses.ID))
}

// A term that is a fence is drawn while the row is held: a Lead is stopped just before it gets the row; then others draw numbers;
// then it goes on. Had it drawn its term before, that would be below theirs, and theirs could have been a term that came and went.
func TestTermIsDrawnWhileTheRowIsHeld(t *testing.T) {
	t.Parallel()
	for name, hold := range map[string]func(f *fixture, o *other){
		"first row": func(f *fixture, o *other) {
			o.exec(`INSERT INTO belfry_leader (space, term, session, since, why) SELECT id, 1, $1, now(), '' FROM belfry_space`, f.ses.ID)
		},
		"row of one that resigned": func(f *fixture, o *other) {
			f.resigns(f.ses, f.leads(f.ses, 0).Term)
			o.exec(`SELECT FROM belfry_leader FOR UPDATE`)
		},
		"row of one whose session has lapsed": func(f *fixture, o *other) {
			y := f.open("y")
			f.leads(y, 0)
			f.lapse(y)
			o.exec(`SELECT FROM belfry_leader FOR UPDATE`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			o := f.other()
			hold(f, o)
			c := f.leadBeside(f.ses, 0)
			f.waiting(1)
			later := f.wins(f.insert("other", 0))
			o.rollback()
			if a := <-c; a.err != nil || a.value.Session != f.ses.ID || a.value.Term <= later {
				t.Fatalf("%+v %v, want a term above %d, which was drawn before the row was held", a.value, a.err, later)
			}
		})
	}
}

// What a Lead relies on is looked at again once its lock is got: another transaction that was there first changes it, and commits
// while the call waits.
func TestLeadWaitsForWhatChangesIt(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		first func(f *fixture, y idempotency.Session) // y led; it has resigned, or its lease has ended
		text  string
		want  func(f *fixture, y, z idempotency.Session) int64 // the session that leads then
	}{
		"another leads": {
			func(f *fixture, y idempotency.Session) { f.resigns(y, 10) },
			`UPDATE belfry_leader SET session = (SELECT max(id) FROM belfry_session), term = 11, until = NULL`,
			func(f *fixture, y, z idempotency.Session) int64 { return z.ID },
		},
		"it was renewed": {
			func(f *fixture, y idempotency.Session) { f.lapse(y) },
			`UPDATE belfry_session SET expires = now() + interval '1 hour' WHERE replica = 'y'`,
			func(f *fixture, y, z idempotency.Session) int64 { return y.ID },
		},
		"it was marked": {
			func(f *fixture, y idempotency.Session) { f.lapse(y) },
			`UPDATE belfry_session SET marked = now() WHERE replica = 'y'`,
			func(f *fixture, y, z idempotency.Session) int64 { return f.ses.ID },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			y, z := f.open("y"), f.open("z")
			f.leads(y, 10)
			x.first(f, y)
			o := f.other()
			o.exec(x.text)
			c := f.leadBeside(f.ses, 0)
			f.waiting(1)
			o.commit()
			if a := <-c; a.err != nil || a.value.Session != x.want(f, y, z) || !a.value.Until.IsZero() || a.value != f.leader() {
				t.Fatalf("%+v %v, and then %+v; want that session %d leads", a.value, a.err, f.leader(), x.want(f, y, z))
			}
		})
	}
}

// A lapsed leader's own call may be under way, and want the row of who leads: whoever succeeds it waits for that call before it
// holds the row, so that they do not wait for each other crosswise.
func TestLeadHoldsTheRowLast(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	y := f.open("y")
	f.leads(y, 0)
	f.lapse(y)
	o := f.other()
	o.exec(`SELECT FROM belfry_session WHERE replica = 'y' FOR KEY SHARE`)
	c := f.leadBeside(f.ses, 0)
	f.waiting(1)
	o.exec(`SELECT FROM belfry_leader FOR UPDATE NOWAIT`)
	o.commit()
	if a := <-c; a.err != nil || a.value.Session != f.ses.ID || a.value.Why != "y: its session ended" {
		t.Fatalf("%+v %v", a.value, a.err)
	}
}

// A resignation that waited for a successor ends nothing of that one's; one that waited for the end of its own session neither.
func TestResignIsOvertaken(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct{ text, why string }{
		"higher term":  {`UPDATE belfry_leader SET term = term + 1`, "nobody led before"},
		"session ends": {`UPDATE belfry_session SET marked = now()`, "its session ended"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			l := f.leads(f.ses, 0)
			o := f.other()
			o.exec(`SELECT FROM belfry_session FOR UPDATE`)
			o.exec(x.text)
			c := beside(func() (bool, error) { return true, f.s.Resign(f.Context(), f.ses, l.Term, "drain") })
			f.waiting(1)
			o.commit()
			if a := <-c; a.err != nil {
				t.Fatal(a.err)
			}
			if n := f.count(`SELECT count(*) FROM belfry_leader WHERE until IS NULL`); n != 1 || f.leader().Why != x.why {
				t.Errorf("it has resigned: %+v", f.leader())
			}
		})
	}
}

// What stands in the way of a Lead for a moment is tried again, whole.
func TestLeadIsRetried(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.trouble("belfry_leader", "40001", 5)
	l, tries := f.leads(f.ses, 0), f.count(`SELECT last_value FROM failed`)
	if tries != 6 || l != f.leader() || l.Session != f.ses.ID {
		t.Errorf("after %d tries: %+v, then %+v", tries, l, f.leader())
	}
}

// ledClaim is a claim of a job in a term.
func ledClaim(job string, term int64) idempotency.Claim {
	return idempotency.Claim{ID: idempotency.ID{Job: job}, Term: term}
}

// A batch of which some jobs are claimed as the leader is one statement; where that cannot tell the terms, each claim is judged.
func TestTermsOfABatch(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		batch []idempotency.Claim
		jobs  int
		one   bool
	}{
		"none":                     {[]idempotency.Claim{ledClaim("a", 0)}, 0, true},
		"two jobs, one led":        {[]idempotency.Claim{ledClaim("a", 7), ledClaim("b", 0), ledClaim("a", 7)}, 1, true},
		"two jobs, one term":       {[]idempotency.Claim{ledClaim("a", 7), ledClaim("b", 7)}, 2, true},
		"two jobs, two terms":      {[]idempotency.Claim{ledClaim("a", 7), ledClaim("b", 8)}, 0, false},
		"one job, led and not led": {[]idempotency.Claim{ledClaim("a", 7), ledClaim("a", 0)}, 0, false},
	} {
		if l, one := ledBy(x.batch); one != x.one || len(l.jobs) != x.jobs || x.jobs > 0 && l.term != 7 {
			t.Errorf("%s: %+v %v", name, l, one)
		}
	}
	f := newFixture(t)
	n := 0
	for _, terms := range [][]int64{{0, 0}, {7, 7}, {7, 8}, {0, 7}} {
		var batch []idempotency.Claim
		for _, term := range terms {
			x := f.insert(fmt.Sprint("k", n), 0)
			n++
			x.Term = term
			batch = append(batch, x)
		}
		f.claim(batch...)
		for i, x := range batch {
			if term := f.count(`SELECT coalesce(term, 0) FROM belfry_run WHERE key = $1`, []byte(x.ID.Key)); term != terms[i] {
				t.Errorf("of terms %d, run %d has term %d", terms, i, term)
			}
		}
	}
	if n := f.count(`SELECT count(*) FROM belfry_run WHERE term = 0`); n != 0 {
		t.Errorf("%d rows are longer by no term", n)
	}
}
