package ordeal

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/postgres"
	"github.com/belfry-go/belfry/internal/testservers"
	"github.com/belfry-go/belfry/jobs"
)

// F42: of fifty sessions that claim one key at once one wins, and the others are told that it is taken: what the store
// does about deadlocks and conflicts is its own affair.
func TestManyClaimers(t *testing.T) {
	each(t, anyStore, func(t *testing.T, s *site) {
		const claimers, rounds = 50, 4
		stores := []*replica{open(t, s.open(t), "a"), open(t, s.open(t), "b")}
		due := openDue(t, stores[0].store)
		sessions := make([]*replica, claimers)
		for i := range sessions {
			sessions[i] = open(t, stores[i%2].store, fmt.Sprint("claimer", i))
		}
		for round := range rounds {
			answers, errs := make([]idempotency.Answer, claimers), make([]error, claimers)
			gate := make(chan struct{})
			var wg sync.WaitGroup
			for i, r := range sessions {
				c := claims(due, fmt.Sprint("k", round), 1)
				wg.Go(func() {
					<-gate
					a, err := r.store.Claim(t.Context(), r.session, int64(round+1), c)
					if errs[i] = err; err == nil {
						answers[i] = a[0]
					}
				})
			}
			close(gate)
			wg.Wait()
			won := 0
			for i, a := range answers {
				switch {
				case errs[i] != nil:
					t.Errorf("round %d: claimer %d: %v", round, i, errs[i])
				case a.Verdict == idempotency.Won:
					won++
				case a.Verdict != idempotency.Taken:
					t.Errorf("round %d: claimer %d was told %d, want taken", round, i, a.Verdict)
				}
			}
			if won != 1 {
				t.Errorf("round %d: %d won", round, won)
			}
		}
	})
}

// F43: PostgreSQL refuses every statement of a transaction in which one violated a unique key. Then nothing of it stays,
// the run is still its holder's, and the error is the application's own; an effect that avoids it is
// committed with the completion. A claim of what exists violates nothing.
func TestUniqueViolation(t *testing.T) {
	t.Parallel()
	db := testservers.Postgres(t).Database(t)
	pool, err := pgxpool.New(t.Context(), db.DSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s, err := postgres.Open(t.Context(), pool, &postgres.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	closes(t, s)
	if _, err := pool.Exec(t.Context(), `create table effects (k text primary key); insert into effects values ('k0000')`); err != nil {
		t.Fatal(err)
	}
	r := open(t, &handle{Store: s}, "a")
	due := openDue(t, s)
	c := claims(due, "k", 1)
	o := jobs.Occurrence{Namespace: namespace, Job: job, Key: c[0].ID.Key, Due: due, Attempt: 1, Fence: r.wins(c)[0].Fence}
	insert := func(text string) error {
		return postgres.InTx(t.Context(), s, o, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), text, o.Key)
			return err
		})
	}
	err = insert(`insert into effects values ($1)`)
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != "23505" {
		t.Fatalf("a unique key was violated: %v, want the error of the application's statement", err)
	}
	if x := list(t, s)[o.Key]; x.State != idempotency.Running || x.Fence != o.Fence {
		t.Fatalf("after a transaction that failed the run is %+v; want it running", x)
	}
	if err := insert(`insert into effects values ($1) on conflict do nothing`); err != nil {
		t.Fatalf("a transaction in which nothing was violated: %v", err)
	}
	if x := list(t, s)[o.Key]; x.Outcome != idempotency.Done {
		t.Fatalf("the run is %+v; want it done", x)
	}
	if a, err := s.Claim(t.Context(), r.session, 99, c); err != nil || a[0].Verdict != idempotency.Taken {
		t.Fatalf("claim of a run that has ended: %+v %v, want taken", a, err)
	}
}
