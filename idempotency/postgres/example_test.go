package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/belfry-go/belfry/idempotency/postgres"
	"github.com/belfry-go/belfry/jobs"
)

// The charge and the run's completion are one commit: the customer is charged once, whatever crashes.
func ExampleInTx() {
	var store *postgres.Store // the scheduler's, opened before

	job := jobs.Job{
		Name:     "renewals",
		Schedule: jobs.Cron("0 4 * * *"),
		Run: func(ctx context.Context, o jobs.Occurrence) error {
			return postgres.InTx(ctx, store, o, func(tx pgx.Tx) error {
				_, err := tx.Exec(ctx, `update accounts set cents = cents - 900 where id = $1`, o.Key)
				return err
			})
		},
	}
	fmt.Println(job.Validate())
	// Output: <nil>
}

// A unit of work that is open already, such as one of sqlc's queries, takes the completion in as its last statement.
func ExampleComplete() {
	var store *postgres.Store // the scheduler's, opened before
	var pool *pgxpool.Pool    // the application's

	job := jobs.Job{
		Name:     "renewals",
		Schedule: jobs.Cron("0 4 * * *"),
		Run: func(ctx context.Context, o jobs.Occurrence) error {
			return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
				if _, err := tx.Exec(ctx, `update accounts set cents = cents - 900 where id = $1`, o.Key); err != nil {
					return err
				}
				return postgres.Complete(ctx, tx, store, o)
			})
		},
	}
	fmt.Println(job.Validate())
	// Output: <nil>
}

// An application that uses database/sql, or GORM on top of it, begins on the pgx connection below.
func ExampleComplete_databaseSQL() {
	var store *postgres.Store // the scheduler's, opened before
	var db *sql.DB            // the application's, of the driver github.com/jackc/pgx/v5/stdlib

	_ = func(ctx context.Context, o jobs.Occurrence) error {
		return charge(ctx, db, store, o)
	}
}

func charge(ctx context.Context, db *sql.DB, store *postgres.Store, o jobs.Occurrence) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	return conn.Raw(func(driver any) error {
		c, ok := driver.(*stdlib.Conn)
		if !ok {
			return errors.New("the *sql.DB is not of pgx's stdlib driver")
		}
		return pgx.BeginFunc(ctx, c.Conn(), func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `update accounts set cents = cents - 900 where id = $1`, o.Key); err != nil {
				return err
			}
			return postgres.Complete(ctx, tx, store, o)
		})
	})
}

// A paused holder's late write changes no row, since the row has a higher fence by then: the error wraps
// jobs.ErrOvertaken.
func ExampleFenced() {
	var pool *pgxpool.Pool // of the database that has the accounts

	job := jobs.Job{
		Name:     "renewals",
		Schedule: jobs.Cron("0 4 * * *"),
		Run: func(ctx context.Context, o jobs.Occurrence) error {
			return postgres.Fenced(pool.Exec(ctx,
				`update accounts set plan = 'gold', fence = $1 where id = $2 and fence < $1`, o.Fence, o.Key))
		},
	}
	fmt.Println(job.Validate())
	// Output: <nil>
}

// The replicas read the keys of their own partitions from the application's table.
func ExampleKeys() {
	var pool *pgxpool.Pool // the application's

	job := jobs.Job{
		Name:     "renewals",
		Schedule: jobs.Cron("0 4 * * *"),
		Keys: postgres.Keys(pool, `select id from customers
			where slot = any($1) and id collate "C" > $2
			order by id collate "C" limit $3`),
		Run: func(context.Context, jobs.Occurrence) error { return nil },
	}
	fmt.Println(job.Validate())
	// Output: <nil>
}
