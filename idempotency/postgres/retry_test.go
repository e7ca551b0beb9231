package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// Fifty claimers of one key and one due, some in batches of other orders: one wins, every other sees that it is taken, and
// none sees an error. F42.
func TestManyClaimersOfOneKey(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	second := openAt(t, f.p, nil, serverClock)
	const claimers = 50
	var keys []string
	for i := range 10 {
		keys = append(keys, fmt.Sprint("k", i))
	}
	won := make([]map[string]int64, claimers)
	var wg sync.WaitGroup
	for n := range claimers {
		won[n] = make(map[string]int64)
		s := []*Store{f.s, second}[n%2]
		var batch []idempotency.Claim
		for i := range keys {
			batch = append(batch, f.insert(keys[(i*(2*(n%2)+1)+n)%len(keys)], 0))
		}
		wg.Go(func() {
			a, err := s.Claim(t.Context(), f.ses, int64(100+n), batch)
			if err != nil {
				t.Errorf("claimer %d: %v", n, err)
			}
			for i, x := range a {
				switch x.Verdict {
				case idempotency.Won:
					won[n][batch[i].ID.Key] = x.Fence
				case idempotency.Taken:
				default:
					t.Errorf("claimer %d: verdict %d, want won or taken", n, x.Verdict)
				}
			}
		})
	}
	wg.Wait()
	for _, k := range keys {
		winners := 0
		for n := range won {
			if won[n][k] > 0 {
				winners++
			}
		}
		if winners != 1 {
			t.Errorf("key %s has %d winners", k, winners)
		}
	}
}

// Fifty claimers of one key and as many dues: one runs, for all others it is busy.
func TestManyDuesOfOneKey(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const claimers = 50
	exec(t, f.p, f.s.texts.of(fmt.Sprintf(`INSERT INTO belfry_due (space, job, due, opened, catch_up)
SELECT id, 'keyed', timestamptz '%s' - i * interval '1 second', now(), false FROM belfry_space, generate_series(1, %d) i`, f.due.Format(time.RFC3339), claimers)))
	verdicts := make([]idempotency.Verdict, claimers)
	var wg sync.WaitGroup
	for n := range claimers {
		wg.Go(func() {
			a, err := f.s.Claim(t.Context(), f.ses, int64(100+n), []idempotency.Claim{f.insert("k", -n-1)})
			if err != nil {
				t.Errorf("claimer %d: %v", n, err)
				return
			}
			verdicts[n] = a[0].Verdict
		})
	}
	wg.Wait()
	winners := 0
	for n, v := range verdicts {
		if v == idempotency.Won {
			winners++
		} else if v != idempotency.Busy {
			t.Errorf("claimer %d: verdict %d, want won or busy", n, v)
		}
	}
	if winners != 1 {
		t.Errorf("%d winners, want one", winners)
	}
}

// A claim that is the victim of a deadlock is made anew, whole.
func TestDeadlockIsRetried(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	o := f.other()
	o.exec(`SET LOCAL deadlock_timeout = '1h'`) // so that the claim finds the deadlock, and dies of it
	o.holds(keyed, "k2")
	c := f.claimBeside(f.insert("k1", 0), f.insert("k2", 0))
	f.waiting(1)
	o.holds(keyed, "k1") // waits for the claim, which waits for k2
	f.waiting(1)
	o.rollback()
	if a := <-c; a.err != nil || a.value[0].Verdict != idempotency.Won || a.value[1].Verdict != idempotency.Won {
		t.Fatalf("%+v %v, want both won", a.value, a.err)
	}
}

// trouble makes the next inserts into a table fail: a trigger raises the code so many times. A sequence counts, for it is not rolled back.
func (f *fixture) trouble(table, code string, times int) {
	f.Helper()
	exec(f, f.p, fmt.Sprintf(`CREATE SEQUENCE failed;
CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF nextval('failed') <= %d THEN RAISE EXCEPTION 'in the way' USING ERRCODE = '%s'; END IF; RETURN NEW;
END $$;
CREATE TRIGGER fail BEFORE INSERT ON %s FOR EACH ROW EXECUTE FUNCTION fail()`, times, code, table))
}

func TestWhatIsRetried(t *testing.T) {
	t.Parallel()
	for code, again := range map[string]bool{"40001": true, "40P01": true, "55P03": true, "P0001": false, "53100": false} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.trouble("belfry_run", code, 5)
			a, err := f.s.Claim(t.Context(), f.ses, 1, []idempotency.Claim{f.insert("k", 0)})
			tries := f.count(`SELECT last_value FROM failed`)
			if again && (err != nil || a[0].Verdict != idempotency.Won || tries != 6) {
				t.Errorf("after %d tries: %+v %v, want won at the sixth", tries, a, err)
			}
			if !again && (err == nil || tries != 1) {
				t.Errorf("after %d tries: %+v %v, want an error at the first", tries, a, err)
			}
		})
	}
}

// What stays in the way is answered at the deadline, with both errors.
func TestRetriesEndAtTheDeadline(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.trouble("belfry_run", "40001", 1<<30)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := f.s.Claim(ctx, f.ses, 1, []idempotency.Claim{f.insert("k", 0)})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "in the way") {
		t.Errorf("%v, want the deadline and what was in the way", err)
	}
	if n := f.count(`SELECT last_value FROM failed`); n < 2 {
		t.Errorf("%d tries, want more", n)
	}
}

// A connection that the server ended while the call was not sent yet, or before it committed, costs a call nothing.
func TestLostConnectionIsReplaced(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	end := func() {
		f.count(`SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name = 'belfry'`)
	}
	end()
	f.wins(f.insert("idle", 0))
	o := f.other()
	o.holds(keyed, "k")
	c := f.claimBeside(f.insert("k", 0))
	f.waiting(1)
	end()
	f.waiting(1) // the same call, on another connection
	o.rollback()
	if a := <-c; a.err != nil || a.value[0].Verdict != idempotency.Won {
		t.Fatalf("%+v %v, want won", a.value, a.err)
	}
}

// A call that is late keeps its connection: a server that has too much to do would have to make new ones, which costs it
// more than the calls, and would never catch up. Without that, there is a new connection for each late call.
func TestLateCallsKeepTheirConnection(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.other().holds(keyed, "k")
	before := f.s.calls.Stat().NewConnsCount()
	const calls = 10
	for range calls {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		if _, err := f.s.Claim(ctx, f.ses, 1, []idempotency.Claim{f.insert("k", 0)}); err == nil {
			t.Error("a claim that waits for a lock was answered")
		}
		cancel()
	}
	f.wins(f.insert("another", 0))
	// A machine that lets a client wait for half a second takes it for cut off, and may do so once in a while.
	if n := f.s.calls.Stat().NewConnsCount() - before; n > calls/2 {
		t.Errorf("%d new connections after %d late calls", n, calls)
	}
}
