package postgres_test

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/postgres"
	"github.com/belfry-go/belfry/internal/testservers"
	"github.com/belfry-go/belfry/jobs"
)

// What the example for users of database/sql says, works: the charge and the completion are one.
func TestCompleteByDatabaseSQL(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	p, err := pgxpool.New(ctx, testservers.Postgres(t).Database(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	store, err := postgres.Open(ctx, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if _, err := p.Exec(ctx, `create table accounts (id text primary key, cents bigint not null); insert into accounts values ('j', 1000)`); err != nil {
		t.Fatal(err)
	}
	ses, r, err := store.OpenSession(ctx, idempotency.Opening{Namespace: "ns", Replica: "a", Boot: "a", Partitions: 8,
		Lease: time.Hour, Horizon: time.Hour, Retention: 2 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	due := r.Now.Add(-time.Minute).Truncate(time.Second)
	def := idempotency.Definition{Job: "j", Schedule: "@every 1s", Hash: "h"}
	e, err := store.Declare(ctx, ses, 0, []idempotency.Declaration{{Definition: def, Opened: due.Add(-time.Second), Next: due}})
	if err != nil {
		t.Fatal(err)
	}
	d, err := store.Decide(ctx, ses, 1, []idempotency.Decision{{Seen: e[0], Definition: def, Opened: due, Next: due.Add(time.Second), Run: []time.Time{due}, Claim: 1}})
	if err != nil || len(d[0].Runs) != 1 {
		t.Fatalf("decide: %+v, %v", d, err)
	}
	o := jobs.Occurrence{Namespace: "ns", Job: "j", Key: "j", Due: due, Attempt: 1, Fence: d[0].Runs[0].Fence}

	db := stdlib.OpenDBFromPool(p)
	defer db.Close()
	if err := charge(ctx, db, store, o); err != nil {
		t.Fatal(err)
	}
	if err := charge(ctx, db, store, o); !errors.Is(err, jobs.ErrOvertaken) {
		t.Errorf("the second charge: %v, want ErrOvertaken", err)
	}
	var cents int64
	if err := db.QueryRow(`select cents from accounts`).Scan(&cents); err != nil || cents != 100 {
		t.Errorf("%d cents are left, %v; want 100", cents, err)
	}
}
