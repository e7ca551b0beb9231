package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/belfry-go/belfry/idempotency/sqlite"
	"github.com/belfry-go/belfry/jobs"
)

// The charge and the run's completion are one commit: the customer is charged once, whatever crashes.
func ExampleInTx() {
	var store *sqlite.Store // the scheduler's, opened before

	job := jobs.Job{
		Name:     "renewals",
		Schedule: jobs.Cron("0 4 * * *"),
		Run: func(ctx context.Context, o jobs.Occurrence) error {
			return sqlite.InTx(ctx, store, o, func(tx *sql.Tx) error {
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
	var store *sqlite.Store // the scheduler's, opened before
	var db *sql.DB          // the application's, of the same file, with _txlock=immediate

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
			if err := sqlite.Complete(ctx, tx, store, o); err != nil {
				return err
			}
			return tx.Commit()
		},
	}
	fmt.Println(job.Validate())
	// Output: <nil>
}

// A holder is paused, and overtaken meanwhile. Its late write changes no row, and it learns that.
func ExampleFenced() {
	dir, err := os.MkdirTemp("", "belfry-example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "accounts.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`create table accounts (id text primary key, plan text not null, fence integer not null default 0);
		insert into accounts (id, plan) values ('alice', 'none')`); err != nil {
		log.Fatal(err)
	}

	renew := func(o jobs.Occurrence, plan string) error {
		return sqlite.Fenced(db.Exec(`update accounts set plan = ?, fence = ? where id = ? and fence < ?`,
			plan, o.Fence, o.Key, o.Fence))
	}
	paused := jobs.Occurrence{Key: "alice", Fence: 7}
	successor := jobs.Occurrence{Key: "alice", Fence: 8}
	fmt.Println(renew(successor, "gold"))
	fmt.Println(errors.Is(renew(paused, "silver"), jobs.ErrOvertaken))

	var plan string
	if err := db.QueryRow(`select plan from accounts where id = 'alice'`).Scan(&plan); err != nil {
		log.Fatal(err)
	}
	fmt.Println(plan)
	// Output:
	// <nil>
	// true
	// gold
}

// The replicas read the keys of their own partitions from the application's table.
func ExampleKeys() {
	var db *sql.DB // the application's

	job := jobs.Job{
		Name:     "renewals",
		Schedule: jobs.Cron("0 4 * * *"),
		Keys: sqlite.Keys(db, `select id from customers
			where slot in (select value from json_each(?1)) and id > ?2
			order by id limit ?3`),
		Run: func(context.Context, jobs.Occurrence) error { return nil },
	}
	fmt.Println(job.Validate())
	// Output: <nil>
}
