package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/internal/rule"
	"github.com/belfry-go/belfry/internal/testservers"
)

// behind is a claim of a key, for a run of its own, that queues where the key is held.
func (w *worker) behind(key, request string) idempotency.Claim {
	c := w.insert(key)
	c.ID.Request = request
	c.OnBusy = &idempotency.Finish{Outcome: idempotency.Wait, Wake: w.due}
	c.OnQueued = &idempotency.Finish{Outcome: idempotency.Skipped, Reason: "overlap"}
	return c
}

// underWay runs f in a transaction, meanwhile starts a call that is to wait for it, and commits.
func (w *worker) underWay(t *testing.T, admin *sql.DB, f func(*tx) error, call func() error) {
	t.Helper()
	under, commit := make(chan struct{}), make(chan struct{})
	first, second := make(chan error, 1), make(chan error, 1)
	done := make(chan struct{})
	go func() {
		first <- w.write(context.Background(), func(t *tx) error {
			err := f(t)
			close(under)
			<-commit
			return err
		})
	}()
	<-under
	go func() {
		second <- call()
		close(done)
	}()
	if !waits(t, admin, done) {
		t.Error("the call did not wait for what is under way")
	}
	close(commit)
	if err := errors.Join(<-first, <-second); err != nil {
		t.Error(err)
	}
}

// claims is a claim in a transaction, as Claim does it.
func (w *worker) claims(t *tx, c idempotency.Claim) error {
	return t.of(w.session, shared, func(call *call) error {
		x := claiming{changes: call.changes(1), batch: []idempotency.Claim{c}}
		_, err := x.answer()
		return err
	})
}

// Two find one key held at once: one of them queues, and the other sees that it does.
func TestOneQueuesBehindOneKey(t *testing.T) {
	t.Parallel()
	d := testservers.MariaDB(t).Database(t)
	w := newWorker(t, openOn(t, client(t, d, ""), nil))
	first, second := w.beside(t, w.Store), w.beside(t, w.Store)
	w.wins(t, "one")
	w.underWay(t, client(t, d, ""), func(t *tx) error { return first.claims(t, first.behind("one", "1")) }, func() error {
		a, err := second.claim(context.Background(), second.behind("one", "2"))
		if err == nil && a[0].Verdict != idempotency.Busy {
			err = fmt.Errorf("verdict %d, want busy", a[0].Verdict)
		}
		return err
	})
	waiting := w.count(t, `SELECT count(*) FROM belfry_waiting`)
	skipped := w.count(t, `SELECT count(*) FROM belfry_run WHERE state = 3 AND outcome = 3`)
	if waiting != 1 || skipped != 1 {
		t.Errorf("%d runs wait and %d were skipped, want one of each", waiting, skipped)
	}
}

// A run is told to end, by a person or by a newer run, while its holder lets it wait: whichever commits later sees the
// other, and it ends.
func TestFinishHeedsAMarkUnderWay(t *testing.T) {
	t.Parallel()
	d := testservers.MariaDB(t).Database(t)
	admin := client(t, d, "")
	w := newWorker(t, openOn(t, client(t, d, ""), nil))
	other := w.beside(t, w.Store)
	for reason, mark := range map[string]func(*tx, string) error{
		idempotency.Canceled: func(t *tx, key string) error {
			_, err := t.submit("ns", idempotency.Command{Request: "r", Kind: idempotency.Cancel, ID: w.insert(key).ID, Actor: "a"})
			return err
		},
		idempotency.Overtaken: func(t *tx, key string) error {
			c := other.behind(key, "newer")
			c.OnQueued, c.Overtake = nil, true
			return other.claims(t, c)
		},
	} {
		t.Run(reason, func(t *testing.T) {
			f := w.wins(t, reason)
			f.Outcome, f.Wake, f.Text = idempotency.Wait, w.due, "again"
			w.underWay(t, admin, func(t *tx) error { return mark(t, reason) }, func() error {
				a, err := w.Finish(context.Background(), "ns", []idempotency.Finish{f})
				if err == nil && a[0] != idempotency.Finished {
					err = fmt.Errorf("answer %d, want finished", a[0])
				}
				return err
			})
			r := w.run(t, reason)
			if r.State != idempotency.Ended || r.Reason != reason || r.Text != "again" {
				t.Errorf("the run is %+v, want ended as %s", r, reason)
			}
		})
	}
}

// Retention removes the row of a due while a person asks for the due once more: that comes either before, and finds the
// row, or after, and is told that nobody knows any more whether the due has run.
func TestBackfillSeesAPruneUnderWay(t *testing.T) {
	t.Parallel()
	d := testservers.MariaDB(t).Database(t)
	s := openOn(t, client(t, d, ""), nil)
	c := newClock()
	s.clock = c.sql
	o := running(t, s)
	w := &worker{Store: s, session: idempotency.Session{Namespace: "ns", ID: 1}, due: o.Due}
	id := idempotency.ID{Job: o.Job, Key: o.Key, Due: o.Due}
	if _, err := s.Finish(t.Context(), "ns", []idempotency.Finish{{ID: id, Fence: o.Fence, Outcome: idempotency.Skipped}}); err != nil {
		t.Fatal(err)
	}
	c.Advance(3 * time.Hour)
	pruner, _, err := s.OpenSession(t.Context(), idempotency.Opening{
		Namespace: "ns", Replica: "b", Boot: "b", Partitions: 8, Lease: time.Hour, Horizon: time.Hour, Retention: 2 * time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	w.underWay(t, client(t, d, ""), func(t *tx) error {
		return t.of(pruner, shared, func(c *call) error {
			n, err := c.prune(10)
			if err == nil && n == 0 {
				err = errors.New("nothing was removed")
			}
			return err
		})
	}, func() error {
		_, err := s.Submit(context.Background(), "ns", idempotency.Command{
			Request: "again", Kind: idempotency.Backfill, ID: idempotency.ID{Job: o.Job}, Dues: []time.Time{o.Due}, Actor: "a",
		})
		if !errors.Is(err, idempotency.ErrRejected) || !strings.Contains(err.Error(), "records up to") {
			return fmt.Errorf("backfill: %v, want it rejected", err)
		}
		return nil
	})
	if n := w.count(t, `SELECT count(*) FROM belfry_run`); n != 0 {
		t.Errorf("%d runs, want none", n)
	}
}

// Records of one instant fill more than one page: each comes once, by request backwards.
func TestPagesOfOneInstant(t *testing.T) {
	t.Parallel()
	w := newWorker(t, openOn(t, client(t, testservers.MariaDB(t).Database(t), ""), nil))
	const records = 2*rule.Page + 1
	var space int64
	var made rows
	if err := w.write(t.Context(), func(t *tx) (err error) {
		if space, err = t.spaceOf("ns"); err != nil {
			return err
		}
		for i := range records {
			made.add(space, fmt.Sprintf("%04d", i*3%records), 1_000_000, int(idempotency.Pause), "plain", "", "", "ann", "", 1)
		}
		_, err = t.insert(&made, `INSERT INTO belfry_command (space, name, at, kind, job, run_key, request, actor, reason, changed)`, ``)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	left := records
	for c, err := range w.Commands(t.Context(), "ns", "") {
		if err != nil {
			t.Fatal(err)
		}
		if left--; c.Request != fmt.Sprintf("%04d", left) {
			t.Fatalf("record %q, want that of number %d", c.Request, left)
		}
	}
	if left != 0 {
		t.Errorf("%d records are not listed", left)
	}
}
