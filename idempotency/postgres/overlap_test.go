package postgres

import (
	"errors"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// Claims of one held key that come at once queue one run and skip the others: each looks again when it has the lock.
func TestClaimsAtOnceQueueOne(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.wins(f.insert("k", 0))
	sessions := []idempotency.Session{f.ses, f.open("y"), f.open("z")}
	o := f.other()
	o.exec(`SELECT FROM belfry_run FOR UPDATE`)
	var all []<-chan answer[[]idempotency.Answer]
	for i, ses := range sessions {
		x := f.insert("k", 1)
		x.ID.Request = []string{"x", "y", "z"}[i]
		x.OnBusy = &idempotency.Finish{Outcome: idempotency.Wait, Wake: f.due}
		x.OnQueued = &idempotency.Finish{Outcome: idempotency.Skipped, Reason: "overlap"}
		all = append(all, beside(func() ([]idempotency.Answer, error) { return f.s.Claim(t.Context(), ses, 9, []idempotency.Claim{x}) }))
	}
	f.waiting(int64(len(all)))
	o.commit()
	for _, c := range all {
		if a := <-c; a.err != nil || a.value[0].Verdict != idempotency.Busy {
			t.Errorf("%+v %v, want busy", a.value, a.err)
		}
	}
	waiting, skipped := f.count(`SELECT count(*) FROM belfry_run WHERE state = 1`), f.count(`SELECT count(*) FROM belfry_run WHERE outcome = 3`)
	if waiting != 1 || skipped != 2 {
		t.Errorf("%d wait and %d are skipped, want 1 and 2", waiting, skipped)
	}
}

// A finish that waited for whoever told its run to end lets it wait no more.
func TestFinishHeedsAMark(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	x := f.insert("k", 0)
	fence := f.wins(x)
	o := f.other()
	o.exec(`UPDATE belfry_run SET cancel = $1`, toldOvertaken)
	c := beside(func() ([]idempotency.FinishAnswer, error) {
		return f.s.Finish(t.Context(), "ns", []idempotency.Finish{{ID: x.ID, Fence: fence, Outcome: idempotency.Wait, Wake: f.due, Attempt: 2, Text: "late"}})
	})
	f.waiting(1)
	o.commit()
	if a := <-c; a.err != nil || a.value[0] != idempotency.Finished {
		t.Fatalf("finish: %+v %v", a.value, a.err)
	}
	if n := f.count(`SELECT count(*) FROM belfry_run WHERE state = 3 AND outcome = 3 AND reason = 'overtaken' AND text = 'late' AND attempt = 2
AND cancel IS NULL AND wake IS NULL AND finished IS NOT NULL`); n != 1 {
		t.Error("the run that was told to end has not ended so")
	}
	if n := f.count(`SELECT count(*) FROM belfry_running`); n != 0 {
		t.Errorf("%d keys are held, want none", n)
	}
}

// A job that is declared while a retirement is under way is not retired, or no more: whoever comes second sees it.
func TestDeclareBesideARetirement(t *testing.T) {
	t.Parallel()
	t.Run("declared first", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t)
		f.withdraw()
		z := f.open("z")
		f.count(`WITH d AS (DELETE FROM belfry_definition RETURNING 1) SELECT count(*) FROM d`)
		o := f.other()
		o.exec(`INSERT INTO belfry_definition (session, job, schedule, hash, revision, keyed, leader, first) SELECT $1, job, schedule, hash, 0, keyed, leader, 1 FROM belfry_entry`, z.ID)
		o.exec(`SELECT FROM belfry_entry FOR KEY SHARE`)
		c := f.retireBeside()
		f.waiting(1)
		o.commit()
		if a := <-c; a.err != nil || len(a.value) != 0 {
			t.Fatalf("retire: %+v %v, want no job that nobody announces", a.value, a.err)
		}
		if n := f.count(`SELECT count(*) FROM belfry_entry WHERE retired IS NOT NULL`); n != 0 {
			t.Errorf("%d jobs are retired", n)
		}
		if n := f.count(`SELECT count(*) FROM belfry_due WHERE closed IS NULL`); n != 2 {
			t.Errorf("%d dues of a job that is announced are open, want 2", n)
		}
	})
	t.Run("retired first", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t)
		f.withdraw()
		o := f.other()
		o.exec(`SELECT FROM belfry_entry FOR UPDATE`)
		o.exec(`UPDATE belfry_entry SET retired = now()`)
		c := beside(func() ([]idempotency.Entry, error) {
			return f.s.Declare(t.Context(), f.ses, 2, declarations(time.Now()))
		})
		f.waiting(1)
		o.commit()
		a := <-c
		if a.err != nil || len(a.value) != 2 || !a.value[0].Retired.IsZero() || !a.value[1].Retired.IsZero() {
			t.Fatalf("declare: %+v %v", a.value, a.err)
		}
		if n := f.count(`SELECT count(*) FROM belfry_entry WHERE retired IS NOT NULL`); n != 0 {
			t.Errorf("%d jobs are retired", n)
		}
	})
}

// withdraw makes the fixture's session announce nothing.
func (f *fixture) withdraw() {
	f.Helper()
	if _, err := f.s.Declare(f.Context(), f.ses, 1, nil); err != nil {
		f.Fatal(err)
	}
}

// retireBeside retires at once what nobody announces.
func (f *fixture) retireBeside() <-chan answer[[]idempotency.Orphan] {
	return beside(func() ([]idempotency.Orphan, error) { return f.s.Retire(f.Context(), f.ses, 0) })
}

// Counts that come at once count the time once.
func TestRetireCountsOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.withdraw()
	f.count(`WITH c AS (UPDATE belfry_control SET counted = now() - interval '1 minute' RETURNING 1) SELECT count(*) FROM c`)
	o := f.other()
	o.exec(`SELECT FROM belfry_entry FOR NO KEY UPDATE`)
	count := func() ([]idempotency.Orphan, error) { return f.s.Retire(t.Context(), f.ses, time.Hour) }
	first, second := beside(count), beside(count)
	f.waiting(2)
	o.rollback()
	for _, c := range []<-chan answer[[]idempotency.Orphan]{first, second} {
		if a := <-c; a.err != nil || len(a.value) != 2 {
			t.Fatalf("retire: %+v %v", a.value, a.err)
		}
	}
	if n := f.count(`SELECT max(absent) FROM belfry_entry`); n < time.Minute.Microseconds() || n >= 2*time.Minute.Microseconds() {
		t.Errorf("%v are counted of one minute and a little", duration(n))
	}
}

// A backfill that waited for a Prune does not take what that removed for what never ran.
func TestBackfillBesideAPrune(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.decide(f.decision(plain, f.due))
	o := f.other()
	o.exec(`UPDATE belfry_space SET pruned = $1`, f.due)
	o.exec(`DELETE FROM belfry_run`)
	c := beside(func() (idempotency.Command, error) {
		return f.s.Submit(t.Context(), "ns", idempotency.Command{
			Request: "r", Kind: idempotency.Backfill, ID: idempotency.ID{Job: plain}, Dues: []time.Time{f.due}, Actor: "me"})
	})
	f.waiting(1)
	o.commit()
	if a := <-c; !errors.Is(a.err, idempotency.ErrRejected) {
		t.Fatalf("%+v %v, want a rejection", a.value, a.err)
	}
	if n := f.count(`SELECT count(*) FROM belfry_run`); n != 0 {
		t.Errorf("%d runs were written", n)
	}
}
