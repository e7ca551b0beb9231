package demo

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	_ "modernc.org/sqlite" // the driver

	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/ring"
)

// pageSize is how many customers one query returns.
const pageSize = 1000

// openBook opens the file of the customers, which is the store's too, as a service keeps both in one database.
func openBook(path string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(10000)")
	if err != nil {
		return nil, fmt.Errorf("demo: customers: %w", err)
	}
	return db, nil
}

func customer(i int) string { return fmt.Sprintf("c-%06d", i) }

// fill makes the table of n customers. A slot is stored beside each, so that a replica's query finds its own.
func fill(ctx context.Context, path string, n int) (err error) {
	db, err := openBook(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("demo: customers: %w", err)
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, `create table customers (id text primary key, slot integer not null) without rowid`); err != nil {
		return fmt.Errorf("demo: customers: %w", err)
	}
	insert, err := tx.PrepareContext(ctx, `insert into customers (id, slot) values (?, ?)`)
	if err != nil {
		return fmt.Errorf("demo: customers: %w", err)
	}
	defer insert.Close()
	for i := 1; i <= n; i++ {
		if _, err := insert.ExecContext(ctx, customer(i), ring.Slot(customer(i))); err != nil {
			return fmt.Errorf("demo: customers: %w", err)
		}
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("demo: customers: %w", err)
	}
	return nil
}

// keys reads the customers of some partitions, ascending, page by page: no query stays open while they are claimed.
func keys(db *sql.DB) jobs.KeySource {
	return jobs.KeyFunc(func(ctx context.Context, r jobs.KeyRange) iter.Seq2[string, error] {
		return func(yield func(string, error) bool) {
			for after := r.After; ; {
				page, err := readPage(ctx, db, r, after)
				if err != nil {
					yield("", err)
					return
				}
				for _, id := range page {
					if !yield(id, nil) {
						return
					}
				}
				if len(page) < pageSize {
					return
				}
				after = page[len(page)-1]
			}
		}
	})
}

func readPage(ctx context.Context, db *sql.DB, r jobs.KeyRange, after string) ([]string, error) {
	partitions, err := json.Marshal(r.Partitions)
	if err != nil {
		return nil, err
	}
	rows, err := db.QueryContext(ctx, `
		select id from customers
		where id > ? and slot % ? in (select value from json_each(?))
		order by id limit ?`, after, r.Count, string(partitions), pageSize)
	if err != nil {
		return nil, fmt.Errorf("demo: customers: %w", err)
	}
	defer rows.Close()
	var page []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, fmt.Errorf("demo: customers: %w", err)
		}
		page = append(page, id)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("demo: customers: %w", err)
	}
	return page, nil
}
