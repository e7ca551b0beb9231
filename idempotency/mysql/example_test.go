package mysql_test

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/belfry-go/belfry/idempotency/mysql"
	"github.com/belfry-go/belfry/jobs"
)

// The charge and the run's completion are one commit: the customer is charged once, whatever crashes.
func ExampleInTx() {
	var store *mysql.Store // the scheduler's, opened before

	job := jobs.Job{
		Name:     "renewals",
		Schedule: jobs.Cron("0 4 * * *"),
		Run: func(ctx context.Context, o jobs.Occurrence) error {
			return mysql.InTx(ctx, store, o, func(tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, `update accounts set cents = cents - 900 where id = ?`, o.Key)
				return err
			})
		},
	}
	fmt.Println(job.Validate())
	// Output: <nil>
}

// A unit of work that is open already, such as one of sqlc's queries, takes the completion in as its last statement.
// GORM's is tx.Statement.ConnPool.(*sql.Tx).
func ExampleComplete() {
	var store *mysql.Store // the scheduler's, opened before
	var db *sql.DB         // the application's

	job := jobs.Job{
		Name:     "renewals",
		Schedule: jobs.Cron("0 4 * * *"),
		Run: func(ctx context.Context, o jobs.Occurrence) error {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer tx.Rollback()
			if _, err := tx.ExecContext(ctx, `update accounts set cents = cents - 900 where id = ?`, o.Key); err != nil {
				return err
			}
			if err := mysql.Complete(ctx, tx, store, o); err != nil {
				return err
			}
			return tx.Commit()
		},
	}
	fmt.Println(job.Validate())
	// Output: <nil>
}

// A paused holder's late write changes no row, since the row has a higher fence by then: the error wraps
// jobs.ErrOvertaken.
func ExampleFenced() {
	var db *sql.DB // of the database that has the accounts

	job := jobs.Job{
		Name:     "renewals",
		Schedule: jobs.Cron("0 4 * * *"),
		Run: func(ctx context.Context, o jobs.Occurrence) error {
			return mysql.Fenced(db.ExecContext(ctx,
				`update accounts set plan = 'gold', fence = ? where id = ? and fence < ?`, o.Fence, o.Key, o.Fence))
		},
	}
	fmt.Println(job.Validate())
	// Output: <nil>
}

// The replicas read the keys of their own partitions from the application's table.
func ExampleKeys() {
	var db *sql.DB // the application's

	job := jobs.Job{
		Name:     "renewals",
		Schedule: jobs.Cron("0 4 * * *"),
		Keys: mysql.Keys(db, `select id from customers
			where slot in (?) and id > ? order by id limit ?`),
		Run: func(context.Context, jobs.Occurrence) error { return nil },
	}
	fmt.Println(job.Validate())
	// Output: <nil>
}
