package mysql

import (
	"context"
	"errors"
	"sync"
	"testing"

	driver "github.com/go-sql-driver/mysql"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/internal/testservers"
)

// Fifty claim one key at once: one wins, and each of the others is told so and gets no error. F42.
func TestFiftyClaimOneKey(t *testing.T) {
	t.Parallel()
	d := testservers.MariaDB(t).Database(t)
	stores := []*Store{openOn(t, client(t, d, ""), nil), openOn(t, client(t, d, ""), nil)}
	first := newWorker(t, stores[0])
	var wg sync.WaitGroup
	verdicts := make(chan idempotency.Verdict, 50)
	for i := range cap(verdicts) {
		w := first.beside(t, stores[i%2])
		wg.Go(func() {
			a, err := w.claim(context.Background(), w.insert("one"))
			if err != nil {
				t.Errorf("claim: %v", err)
				return
			}
			verdicts <- a[0].Verdict
		})
	}
	wg.Wait()
	close(verdicts)
	count := make(map[idempotency.Verdict]int)
	for v := range verdicts {
		count[v]++
	}
	if count[idempotency.Won] != 1 || count[idempotency.Taken] != 49 {
		t.Errorf("verdicts %v, want one won and 49 taken", count)
	}
}

// Two transactions lock two rows in opposite orders: the server ends one of them, and it is tried again. F42.
func TestDeadlockIsTriedAgain(t *testing.T) {
	t.Parallel()
	s := openOn(t, client(t, testservers.MariaDB(t).Database(t), ""), nil)
	w := newWorker(t, s)
	w.beside(t, s)
	var both sync.WaitGroup // have their first lock
	both.Add(2)
	var wg sync.WaitGroup
	deadlocks := make(chan error, 10)
	for _, order := range []string{"", " DESC"} {
		wg.Go(func() {
			met := false
			err := s.write(context.Background(), func(t *tx) error {
				var ids [2]int64
				if err := t.twoSessions(order, &ids); err != nil {
					return err
				}
				for i, id := range ids {
					if _, err := t.get([]any{new(int64)}, `SELECT id FROM belfry_session WHERE id = ?`+alone, id); err != nil {
						deadlocks <- err
						return err
					}
					if i == 0 && !met {
						met = true
						both.Done()
						both.Wait()
					}
				}
				return nil
			})
			if err != nil {
				t.Errorf("order %q: %v", order, err)
			}
		})
	}
	wg.Wait()
	close(deadlocks)
	n := 0
	for err := range deadlocks {
		var e *driver.MySQLError
		if !errors.As(err, &e) || e.Number != deadlock {
			t.Errorf("the server said %v, want a deadlock", err)
		}
		n++
	}
	if n == 0 {
		t.Error("there was no deadlock")
	}
}

// twoSessions returns the ids of two sessions.
func (t *tx) twoSessions(order string, ids *[2]int64) error {
	if _, err := t.get([]any{&ids[0]}, `SELECT id FROM belfry_session ORDER BY id`+order); err != nil {
		return err
	}
	_, err := t.get([]any{&ids[1]}, `SELECT id FROM belfry_session WHERE id <> ? ORDER BY id`+order, ids[0])
	return err
}

// A statement that waited too long for a lock leaves its transaction open with all that it had written; trying again
// must not keep it. F42.
func TestLockWaitTimeoutRollsBack(t *testing.T) {
	t.Parallel()
	d := testservers.MariaDB(t).Database(t)
	s := openOn(t, client(t, d, ""), nil)
	w := newWorker(t, s)
	before := w.count(t, `SELECT count(*) FROM belfry_sequence`)
	holder, err := client(t, d, "").Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Rollback() }()
	if _, err := holder.Exec(`UPDATE belfry_entry SET revision = 7`); err != nil {
		t.Fatal(err)
	}
	waits := 0
	err = s.write(context.Background(), func(t *tx) error {
		if _, err := t.draw(); err != nil {
			return err
		}
		_, err := t.exec(`UPDATE belfry_entry SET revision = 8`)
		if err != nil {
			waits++
			var e *driver.MySQLError
			if !errors.As(err, &e) || e.Number != lockWaitTimeout {
				return errors.Join(errors.New("not a lock wait timeout"), err)
			}
			_ = holder.Rollback()
		}
		return err
	})
	if err != nil || waits != 1 {
		t.Fatalf("after %d waits: %v; want one, and then success", waits, err)
	}
	if n := w.count(t, `SELECT count(*) FROM belfry_sequence`) - before; n != 1 {
		t.Errorf("%d rows of the transaction; want only those of the try that committed", n)
	}
}

// Renewals go on while claims hold their locks on all connections that there are for calls. F41.
func TestRenewalWaitsForNoCall(t *testing.T) {
	t.Parallel()
	s := openOn(t, client(t, testservers.MariaDB(t).Database(t), ""), nil)
	w := newWorker(t, s)
	other := w.beside(t, s)
	var held, done sync.WaitGroup
	release := make(chan struct{})
	for range callConns {
		held.Add(1)
		done.Go(func() {
			err := s.with(context.Background(), w.session, shared, func(c *call) error {
				if _, err := c.freshHashes([]string{"keyed"}); err != nil {
					return err
				}
				_, err := c.openDues([]dueOf{{w.due.Unix(), "keyed"}}, shared)
				held.Done()
				<-release
				return err
			})
			if err != nil {
				t.Errorf("call: %v", err)
			}
		})
	}
	held.Wait()
	for _, x := range []*worker{w, other} {
		if _, err := s.RenewSession(context.Background(), x.session); err != nil {
			t.Errorf("renewal: %v", err)
		}
	}
	close(release)
	done.Wait()
}
