package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"path/filepath"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// customers is the service's own table. It shares the file with the scheduler's tables and knows nothing of them.
type customers struct{ db *sql.DB }

// openCustomers opens the file, and makes the table where it is missing.
func openCustomers(ctx context.Context, path string) (*customers, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("customers: %w", err)
	}
	dsn := url.URL{Scheme: "file", Path: abs, RawQuery: "_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)"}
	db, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		return nil, fmt.Errorf("customers: %w", err)
	}
	const table = `create table if not exists customers (id text primary key, cents integer not null) without rowid, strict`
	if _, err := db.ExecContext(ctx, table); err != nil {
		return nil, errors.Join(fmt.Errorf("customers: store %q: %w", path, err), db.Close())
	}
	return &customers{db}, nil
}

func (c *customers) close() error { return c.db.Close() }

// seed adds customers until there are n. Done again, it changes nothing.
func (c *customers) seed(ctx context.Context, n int) error {
	const add = `with recursive i(n) as (select 1 union all select n+1 from i where n < ?1)
		insert into customers select printf('customer-%05d', n), 500 + n % 10 * 100 from i where n <= ?1 on conflict do nothing`
	if _, err := c.db.ExecContext(ctx, add, n); err != nil {
		return fmt.Errorf("customers: seed: %w", err)
	}
	return nil
}

// page is how many ids one query reads. Reading is paced by the charging of what was read, and a query left open for
// a whole night would keep SQLite from trimming its log.
const page = 500

// all yields every customer's id. An error ends it: the scheduler then tries again, and never takes a broken list for
// a short one.
func (c *customers) all(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for last := ""; ; {
			ids, err := c.after(ctx, last)
			if err != nil {
				yield("", err)
				return
			}
			for _, id := range ids {
				if !yield(id, nil) {
					return
				}
			}
			if len(ids) < page {
				return
			}
			last = ids[len(ids)-1]
		}
	}
}

// after lists the next ids.
func (c *customers) after(ctx context.Context, last string) (ids []string, err error) {
	rows, err := c.db.QueryContext(ctx, `select id from customers where id > ? order by id limit ?`, last, page)
	if err != nil {
		return nil, fmt.Errorf("customers: list: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, fmt.Errorf("customers: list: %w", err)
		}
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("customers: list: %w", err)
	}
	return ids, nil
}

// price is what the customer pays for the next period, in cents.
func (c *customers) price(ctx context.Context, id string) (cents int64, err error) {
	if err := c.db.QueryRowContext(ctx, `select cents from customers where id = ?`, id).Scan(&cents); err != nil {
		return 0, fmt.Errorf("customer %q: price: %w", id, err)
	}
	return cents, nil
}
