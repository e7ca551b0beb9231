package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/postgres"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/ring"
)

// postgresDatabase is a database on a server, for replicas on many hosts.
type postgresDatabase struct {
	pool *pgxpool.Pool
	s    *postgres.Store
}

// openPostgres opens the database at the URL, and makes the tables where they are missing. Its errors show no password.
func openPostgres(ctx context.Context, url string) (database, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errors.New(databaseURL + " cannot be read; write postgres://USER:PASSWORD@HOST:PORT/DATABASE, in the password each of %/?#@ as %25 %2F %3F %23 %40")
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("database: %w", err)
	}
	if err := makeTables(ctx, pool); err != nil {
		pool.Close()
		return nil, fmt.Errorf("database: %w", err)
	}
	s, err := postgres.Open(ctx, pool, nil)
	if err != nil {
		pool.Close()
		return nil, err
	}
	return &postgresDatabase{pool, s}, nil
}

// makeTables makes what is missing. Replicas that start together take turns: two that create one table at once would
// both be told that it is missing, and then one of them that it exists.
func makeTables(ctx context.Context, pool *pgxpool.Pool) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		const turn = 0x72656e6577616c73 // "renewals": any number that nobody else locks by
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock($1)`, int64(turn)); err != nil {
			return err
		}
		// Beside each customer stands the slot of its id, by which a replica asks for those it owns. The ledger has no
		// unique key: that it holds each charge once is shown by counting.
		for _, table := range []string{
			`create table if not exists customers (
				id text collate "C" primary key, slot integer not null check (slot between 0 and 65535), cents bigint not null)`,
			`create index if not exists customers_by_slot on customers (slot, id)`,
			`create table if not exists ledger (customer text not null, night timestamptz not null, cents bigint not null)`,
		} {
			if _, err := tx.Exec(ctx, table); err != nil {
				return err
			}
		}
		return nil
	})
}

func (d *postgresDatabase) store() idempotency.Store { return d.s }

func (d *postgresDatabase) close() error {
	err := d.s.Close()
	d.pool.Close()
	return err
}

func (d *postgresDatabase) customers() jobs.KeySource {
	return postgres.Keys(d.pool, `select id from customers where slot = any($1) and id > $2 order by id limit $3`)
}

func (d *postgresDatabase) price(ctx context.Context, id string) (cents int64, err error) {
	err = d.pool.QueryRow(ctx, `select cents from customers where id = $1`, id).Scan(&cents)
	if errors.Is(err, pgx.ErrNoRows) {
		err = errNobody
	}
	if err != nil {
		return 0, fmt.Errorf("customer %q: price: %w", id, err)
	}
	return cents, nil
}

func (d *postgresDatabase) enter(ctx context.Context, o jobs.Occurrence, cents int64) error {
	return postgres.InTx(ctx, d.s, o, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `insert into ledger values ($1, $2, $3)`, o.Key, o.Due, cents)
		return err
	})
}

func (d *postgresDatabase) seed(ctx context.Context, n int) error {
	var ids []string
	var slots, prices []int64
	for i := 1; i <= n; i++ {
		id := customerID(i)
		ids, slots, prices = append(ids, id), append(slots, int64(ring.Slot(id))), append(prices, cents(i))
	}
	const add = `insert into customers select * from unnest($1::text[], $2::bigint[], $3::bigint[]) on conflict do nothing`
	if _, err := d.pool.Exec(ctx, add, ids, slots, prices); err != nil {
		return fmt.Errorf("seed: %w", err)
	}
	return nil
}
