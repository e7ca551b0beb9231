package postgres

import (
	"fmt"
	"testing"

	"github.com/belfry-go/belfry/idempotency"
)

// What a call looks at does not grow with the rows of a due that no ANALYZE has seen: each look-up goes by the whole key.
// The statements were planned when the tables were empty, as at a fleet's first night, and nothing has planned them anew.
func TestCallsLookAtNoMoreInALargeDue(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, table := range []string{"run", "running", "due", "session", "entry", "pass"} {
		exec(t, f.p, fmt.Sprintf(`ALTER TABLE belfry_%s SET (autovacuum_enabled = off)`, table))
	}
	f.wins(f.insert("held", 0))
	made := 0
	batch := func() (c []idempotency.Claim) {
		for range 100 {
			made++
			c = append(c, f.insert(fmt.Sprintf("claimed-%06d", made), 0))
		}
		return c
	}
	z := f.open("z")
	calls := []struct {
		name string
		call func()
	}{
		{"claim and finish", func() {
			c := batch()
			var list []idempotency.Finish
			for i, a := range f.claim(c...) {
				list = append(list, idempotency.Finish{ID: c[i].ID, Fence: a.Fence, Outcome: idempotency.Done})
			}
			if a, err := f.s.Finish(t.Context(), "ns", list); err != nil || a[0] != idempotency.Finished {
				t.Fatal(a, err)
			}
		}},
		{"claim that loses", func() {
			var c []idempotency.Claim
			for i := range 100 {
				c = append(c, f.insert(fmt.Sprintf("claimed-%06d", i+1), 0))
			}
			if a, err := f.s.Claim(t.Context(), z, 1, c); err != nil || a[0].Verdict != idempotency.Taken {
				t.Fatal(a, err)
			}
		}},
		{"take-up that is judged", func() {
			x := f.insert("claimed-000001", 0)
			x.TakeUp = true
			if a := f.claim(x); a[0].Verdict != idempotency.Taken {
				t.Fatal(a)
			}
		}},
		{"take-up", func() {
			x := f.insert(fmt.Sprint("wait-", made), 0)
			made++
			x.Seen = f.wins(x)
			f.finish(x.ID, x.Seen, idempotency.Wait)
			x.TakeUp = true
			f.finish(x.ID, f.wins(x), idempotency.Done)
		}},
		{"claim that overtakes", func() {
			x := f.insert("held", 1)
			x.ID.Request = fmt.Sprint(made)
			made++
			x.OnBusy, x.Overtake = &idempotency.Finish{Outcome: idempotency.Wait, Wake: f.due}, true
			if a := f.claim(x); a[0].Verdict != idempotency.Busy {
				t.Fatal(a)
			}
		}},
		{"lag", func() {
			q := idempotency.LagQuery{Ranks: [][]byte{{255}}, Limit: 100}
			if _, err := f.s.Lagging(t.Context(), f.ses, q); err != nil {
				t.Fatal(err)
			}
		}},
		{"mine", func() {
			if _, err := f.s.Mine(t.Context(), f.ses); err != nil {
				t.Fatal(err)
			}
		}},
		{"prune", func() {
			if n, err := f.s.Prune(t.Context(), f.ses, 100); err != nil || n != 0 {
				t.Fatal(n, err)
			}
		}},
		{"retire", func() {
			if list, err := f.s.Retire(t.Context(), f.ses, 0); err != nil || len(list) != 0 {
				t.Fatal(list, err)
			}
		}},
		{"all that run, newest first", func() {
			for _, err := range f.s.List(t.Context(), idempotency.Filter{Namespace: "ns", State: idempotency.Running, Newest: true}) {
				if err != nil {
					t.Fatal(err)
				}
			}
		}},
		{"all that wait", func() {
			for _, err := range f.s.List(t.Context(), idempotency.Filter{Namespace: "ns", State: idempotency.Waiting}) {
				if err != nil {
					t.Fatal(err)
				}
			}
		}},
		{"a page of the history", func() {
			for _, err := range f.s.List(t.Context(), idempotency.Filter{Namespace: "ns", Limit: 100}) {
				if err != nil {
					t.Fatal(err)
				}
			}
		}},
	}
	few := make(map[string]int64)
	for _, x := range calls {
		x.call() // catalogues and plans
		few[x.name] = f.blocks(x.call)
	}
	exec(t, f.p, f.s.texts.of(fmt.Sprintf(`INSERT INTO belfry_run (space, job, due, key, request, state, outcome, exclusive, session, nonce, fence, replica, finished)
SELECT id, 'keyed', '%s', convert_to('old-' || i, 'UTF8'), '', 3, 1, true, 1, 1, 1, 'a', now() FROM belfry_space, generate_series(1, 200000) i`, f.due.Format("2006-01-02 15:04:05Z"))))
	for _, x := range calls {
		x.call()
		// Trees grow higher, and pages are fuller than they were.
		if many := f.blocks(x.call); many > 4*few[x.name]+100 {
			t.Errorf("%s: looks at %d pages of a due of 200,000 rows, and at %d of a small one", x.name, many, few[x.name])
		} else {
			t.Logf("%s: %d pages, then %d", x.name, few[x.name], many)
		}
	}
}

// blocks is how many pages of the tables a call looks at.
func (f *fixture) blocks(call func()) int64 {
	f.Helper()
	total := func() int64 {
		f.Helper()
		f.flush()
		return f.count(`SELECT sum(heap_blks_hit + heap_blks_read + idx_blks_hit + idx_blks_read)::bigint FROM pg_statio_user_tables`)
	}
	before := total()
	call()
	return total() - before
}

// flush makes the store's connections hand over their figures; until then each has some of its own.
func (f *fixture) flush() {
	f.Helper()
	for _, c := range f.s.calls.AcquireAllIdle(f.Context()) {
		if _, err := c.Exec(f.Context(), `SELECT pg_stat_force_next_flush()`); err != nil {
			f.Fatal(err)
		}
		c.Release()
	}
}
