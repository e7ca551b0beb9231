package postgres

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/belfry-go/belfry/idempotency"
)

// A finish in somebody's transaction is as one of the store's: it ends the run and gives its key back, and does nothing
// where the run was overtaken. F05.
func TestFinishInAnotherTransaction(t *testing.T) {
	t.Parallel()
	for _, level := range []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead, pgx.Serializable} {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			exclusive, shared := f.insert("k", 0), f.insert("k", 1)
			shared.Exclusive = false
			for _, x := range []idempotency.Claim{exclusive, shared} {
				fence := f.wins(x)
				finish := idempotency.Finish{ID: x.ID, Fence: fence, Outcome: idempotency.Done, Attempt: 1, Text: "sent"}
				for _, stale := range []int64{fence - 1, fence, fence + 1} {
					finish.Fence = stale
					tx, err := f.p.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: level})
					if err != nil {
						t.Fatal(err)
					}
					finished, err := f.s.finishIn(t.Context(), tx, "ns", finish)
					if err != nil || finished != (stale == fence) {
						t.Errorf("finish with fence %d of %d: %v %v", stale, fence, finished, err)
					}
					if err := tx.Commit(t.Context()); err != nil {
						t.Error(err)
					}
				}
				if a := f.finish(x.ID, fence, idempotency.Done); a != idempotency.Already {
					t.Errorf("the store's finish of it: %d, want already", a)
				}
			}
			if n := f.count(`SELECT count(*) FROM belfry_running`); n != 0 {
				t.Errorf("%d keys are still held", n)
			}
			if n := f.count(`SELECT count(*) FROM belfry_run WHERE state = 3 AND outcome = 1 AND text = 'sent' AND finished IS NOT NULL`); n != 2 {
				t.Errorf("%d rows say what the finish said, want 2", n)
			}
		})
	}
}

// A run's end writes no index entry: its new version lies beside the old one. Half of each page is kept free for that;
// what the end itself adds to a row is more than half, on a few.
func TestFinishWritesNoIndexEntry(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for range 3 {
		var c []idempotency.Claim
		for i := range 500 {
			x := f.insert(fmt.Sprint(f.nonce, "-", i), 0)
			x.Term = f.nonce % 2 // of some rows
			c = append(c, x)
		}
		var list []idempotency.Finish
		for i, a := range f.claim(c...) {
			list = append(list, idempotency.Finish{ID: c[i].ID, Fence: a.Fence, Outcome: idempotency.Done})
		}
		if a, err := f.s.Finish(t.Context(), "ns", list); err != nil || a[0] != idempotency.Finished {
			t.Fatal(a, err)
		}
	}
	f.flush()
	all := f.count(`SELECT n_tup_upd FROM pg_stat_user_tables WHERE relname = 'belfry_run'`)
	hot := f.count(`SELECT n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'belfry_run'`)
	if all != 1500 || hot < all*94/100 {
		t.Errorf("of %d updates %d wrote no index entry, want nearly all of 1500", all, hot)
	}
}
