package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/internal/testservers"
)

// What a claim relies on is tested again once its lock is got: another transaction that was there first changes it, and
// commits while the claim waits. F2, F8, I4.
func TestClaimWaitsForWhatEndsIt(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		change []string
		want   idempotency.Verdict // 0: the session is dead
	}{
		"due closed":      {[]string{`UPDATE belfry_due SET closed = now()`}, idempotency.Closed},
		"entry moved":     {[]string{`UPDATE belfry_entry SET hash = 'h2'`}, idempotency.StaleDefinition},
		"session marked":  {[]string{`UPDATE belfry_session SET marked = now()`}, 0},
		"hash withdrawn":  {[]string{`UPDATE belfry_session SET changes = changes + 1`, `DELETE FROM belfry_definition`}, idempotency.StaleDefinition},
		"lease has ended": {[]string{`UPDATE belfry_session SET expires = now()`}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			o := f.other()
			for _, table := range []string{"session", "entry", "due"} {
				o.exec(`SELECT FROM belfry_` + table + ` FOR UPDATE`)
			}
			for _, text := range x.change {
				o.exec(text)
			}
			c := f.claimBeside(f.insert("k", 0))
			f.waiting(1)
			o.commit()
			a := <-c
			if x.want == 0 && !errors.Is(a.err, idempotency.ErrSessionDead) || x.want != 0 && (a.err != nil || a.value[0].Verdict != x.want) {
				t.Fatalf("%+v %v, want verdict %d, or a dead session for 0", a.value, a.err, x.want)
			}
			if n := f.count(`SELECT (SELECT count(*) FROM belfry_run) + (SELECT count(*) FROM belfry_running)`); n != 0 {
				t.Fatalf("%d rows were written", n)
			}
		})
	}
}

// What a claim relies on stays until it has committed: whoever wants to end it waits. F3.
func TestWhatAClaimReliesOnStays(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	o := f.other()
	o.holds(keyed, "k")
	c := f.claimBeside(f.insert("k", 0))
	f.waiting(1)
	full := idempotency.Pass{Job: keyed, Due: f.due, Finished: []byte{255}}
	if v, err := f.s.SavePass(t.Context(), f.ses, []idempotency.Pass{full}); err != nil || v[0] != idempotency.Won {
		t.Fatalf("a pass beside a claim of its due: %v %v", v, err)
	}
	z := f.open("z")
	d := f.decision(keyed, f.due.Add(2*time.Second))
	d.Keyed = true
	closes := beside(func() (bool, error) { return f.s.CloseDue(t.Context(), z, keyed, f.due, nil) })
	decides := beside(func() ([]idempotency.Decided, error) {
		return f.s.Decide(t.Context(), z, 1, []idempotency.Decision{d})
	})
	declares := beside(func() ([]idempotency.Entry, error) { return f.s.Declare(t.Context(), f.ses, 1, nil) })
	f.waiting(4)
	if _, err := f.s.RenewSession(t.Context(), f.ses); err != nil {
		t.Fatalf("a renewal beside a claim, and a declaration that waits for it: %v", err)
	}
	o.rollback()
	if a := <-c; a.err != nil || a.value[0].Verdict != idempotency.Won {
		t.Fatalf("the claim that was first: %+v %v", a.value, a.err)
	}
	if a := <-closes; a.err != nil || !a.value {
		t.Fatalf("close: %+v", a)
	}
	if a := <-decides; a.err != nil || !a.value[0].Won {
		t.Fatalf("decide: %+v", a)
	}
	if a := <-declares; a.err != nil {
		t.Fatalf("declare: %+v", a)
	}
}

// A renewal waits neither for claims, nor for a connection that others could hold. F41.
func TestRenewalWaitsForNobody(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for range f.p.Config().MaxConns - 2 { // the test needs two itself
		c, err := f.p.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Release()
	}
	o := f.other()
	o.holds(keyed, "k")
	var all []<-chan answer[[]idempotency.Answer]
	for range callConns {
		all = append(all, f.claimBeside(f.insert("k", 0)))
	}
	f.waiting(callConns)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := f.s.RenewSession(ctx, f.ses); err != nil {
		t.Fatalf("a renewal while all connections for calls wait: %v", err)
	}
	for _, c := range all {
		if len(c) > 0 {
			t.Fatal("a renewal waited until a call had let its connection go")
		}
	}
	o.rollback()
	for _, c := range all {
		if a := <-c; a.err != nil {
			t.Error(a.err)
		}
	}
}

// A client that is stopped in the middle of a transaction, as by SIGSTOP, keeps its locks no longer than its call may last.
func TestStoppedClientLetsGo(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	stopped, goes := make(chan struct{}), make(chan struct{})
	tries := 0
	paused := beside(func() (int, error) {
		return tries, f.s.locked(ctx, f.ses, alone, func(c *call) error {
			if tries++; tries == 1 {
				close(stopped)
				<-goes
			}
			_, err := c.exec(`UPDATE belfry_session SET declared = declared WHERE id = $1`, c.id)
			return err
		})
	})
	<-stopped
	if _, err := f.s.RenewSession(ctx, f.ses); err != nil {
		t.Fatalf("a renewal behind the lock of a client that is stopped: %v", err)
	}
	close(goes)
	if a := <-paused; a.err != nil || tries != 2 {
		t.Fatalf("the stopped client, after %d tries: %v", tries, a.err)
	}
}

// A finish that waited for a take-up of its run is overtaken. I4, F09.
func TestFinishIsOvertaken(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	x := f.insert("k", 0)
	fence := f.wins(x)
	o := f.other()
	o.exec(`UPDATE belfry_run SET fence = nextval('belfry_number')`)
	c := beside(func() ([]idempotency.FinishAnswer, error) {
		return f.s.Finish(t.Context(), "ns", []idempotency.Finish{{ID: x.ID, Fence: fence, Outcome: idempotency.Done}})
	})
	f.waiting(1)
	o.commit()
	if a := <-c; a.err != nil || a.value[0] != idempotency.Fenced {
		t.Fatalf("finish: %+v %v, want fenced", a.value, a.err)
	}
	if n := f.count(`SELECT count(*) FROM belfry_running o JOIN belfry_run r USING (job, key) WHERE r.state = 2`); n != 1 {
		t.Fatalf("%d runs hold the key, want one", n)
	}
}

// A run that came and went between a claim's snapshot and its insert is taken, and holds no key.
func TestRunThatCameAndWentIsTaken(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	o := f.other()
	o.exec(`INSERT INTO belfry_run (space, job, due, key, request, state, outcome, exclusive, session, nonce, fence, replica)
SELECT id, $1, $2, $3, '', 3, 1, true, 0, 0, 1, '' FROM belfry_space`, keyed, f.due, []byte("k"))
	c := f.claimBeside(f.insert("j", 0), f.insert("k", 0))
	f.waiting(1)
	o.commit()
	a := <-c
	if a.err != nil || a.value[0].Verdict != idempotency.Won || a.value[1].Verdict != idempotency.Taken {
		t.Fatalf("%+v %v, want won and taken", a.value, a.err)
	}
	if n := f.count(`SELECT count(*) FROM belfry_running`); n != 1 {
		t.Fatalf("%d keys are held, want one", n)
	}
}

// A call that loses writes nothing at all, not even a lock: a batch whose runs are all taken, and one about who leads that
// changes nothing.
func TestLosersWriteNothing(t *testing.T) {
	t.Parallel()
	server := testservers.StartPostgres(t, testservers.Options{Args: []string{"-c", "autovacuum=off"}})
	f := fixtureIn(t, pool(t, server.Database(t)))
	z := f.open("z")
	var batch []idempotency.Claim
	for _, k := range []string{"a", "b", "c"} {
		batch = append(batch, f.insert(k, 0))
	}
	if first := f.claim(batch...); first[0].Verdict != idempotency.Won {
		t.Fatalf("%+v", first)
	}
	f.writesNothing("a claim", func() {
		a, err := f.s.Claim(t.Context(), z, 1, batch)
		if err != nil || a[0].Verdict != idempotency.Taken {
			t.Fatalf("%+v %v, want taken", a, err)
		}
	})
	leads := f.leads(f.ses, 10)
	f.writesNothing("a call about who leads", func() {
		for _, l := range []idempotency.Leader{f.leads(z, 0), f.leads(z, leads.Term), f.leads(f.ses, 0), f.leads(f.ses, leads.Term-1), f.leader()} {
			if l != leads {
				t.Fatalf("%+v, want %+v", l, leads)
			}
		}
		f.resigns(z, leads.Term)
		f.resigns(f.ses, leads.Term-1)
	})
}

// writesNothing makes a call that loses, on a server that nobody else uses.
func (f *fixture) writesNothing(what string, lose func()) {
	f.Helper()
	lose() // hint bits and statistics of the first look are written
	before := f.count(`SELECT pg_current_wal_insert_lsn() - '0/0'`)
	number := f.count(`SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint`)
	lose()
	if n := f.count(`SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint`) - number; n != 0 {
		f.Errorf("%s that loses took %d transaction numbers", what, n)
	}
	if n := f.count(`SELECT pg_current_wal_insert_lsn() - '0/0'`) - before; n != 0 {
		f.Errorf("%s that loses wrote %d bytes of log", what, n)
	}
}
