package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/sqlite"
	"github.com/belfry-go/belfry/jobs"
)

// database is what this service keeps, beside the scheduler's store and in the same file.
type database struct {
	db    *sql.DB
	store *sqlite.Store
}

// openDatabase opens the file, and makes it and the tables where they are missing.
func openDatabase(ctx context.Context, path string) (*database, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	store, err := sqlite.Open(ctx, path, nil)
	if err != nil {
		return nil, err
	}
	dsn := url.URL{Scheme: "file", Path: path, RawQuery: "_txlock=immediate&_pragma=busy_timeout(5000)"}
	db, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("store %q: %w", path, err), store.Close())
	}
	// Reports have no unique key: that each is there once is shown by counting. The counter has one row.
	const tables = `
		create table if not exists reports (due text not null, term integer not null) strict;
		create table if not exists counter (only_one integer primary key check (only_one = 1), term integer not null, n integer not null) strict;
		insert into counter values (1, 0, 0) on conflict do nothing`
	if _, err := db.ExecContext(ctx, tables); err != nil {
		return nil, errors.Join(fmt.Errorf("store %q: %w", path, err), db.Close(), store.Close())
	}
	return &database{db, store}, nil
}

func (d *database) close() error { return errors.Join(d.db.Close(), d.store.Close()) }

// report adds the report and completes its occurrence, both or neither.
func (d *database) report(ctx context.Context, o jobs.Occurrence) error {
	return sqlite.InTx(ctx, d.store, o, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `insert into reports values (?, ?)`, o.Due.Format(time.RFC3339), o.Term)
		return err
	})
}

// count counts on, in the name of a leader. The counter remembers the highest term that it was called in, and refuses lower
// ones: theirs are leaders that do not know yet that they are none.
func (d *database) count(ctx context.Context, term int64) error {
	res, err := d.db.ExecContext(ctx, `update counter set term = ?1, n = n + 1 where term <= ?1`, term)
	if err != nil {
		return fmt.Errorf("counter: %w", err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return errors.Join(fmt.Errorf("counter: refused in term %d; another replica leads in a later one", term), err)
	}
	return nil
}

// sum says how many reports there are, and in how many terms, and which dues between the first and the last have none. One that
// is there twice is an error.
func (d *database) sum(ctx context.Context, every time.Duration) (reports, terms int, lacking []time.Time, err error) {
	rows, err := d.db.QueryContext(ctx, `select due, count(*), max(term) from reports group by due order by due`)
	if err != nil {
		return 0, 0, nil, fmt.Errorf("reports: %w", err)
	}
	defer rows.Close()
	var next time.Time
	seen := make(map[int64]bool)
	for rows.Next() {
		var text string
		var times int
		var term int64
		if err := rows.Scan(&text, &times, &term); err != nil {
			return 0, 0, nil, fmt.Errorf("reports: %w", err)
		}
		due, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return 0, 0, nil, fmt.Errorf("reports: %w", err)
		}
		if times > 1 {
			return 0, 0, nil, fmt.Errorf("the report of %s is there %d times", clock(due), times)
		}
		for ; !next.IsZero() && next.Before(due); next = next.Add(every) {
			lacking = append(lacking, next)
		}
		next, seen[term] = due.Add(every), true
		reports++
	}
	return reports, len(seen), lacking, rows.Err()
}

// underWay says of which dues the run has begun, or waits to begin, and has not ended.
func (d *database) underWay(ctx context.Context) (map[time.Time]bool, error) {
	dues := make(map[time.Time]bool)
	for r, err := range d.store.List(ctx, idempotency.Filter{Namespace: namespace, Job: jobName}) {
		if err != nil {
			return nil, err
		}
		if r.State != idempotency.Ended {
			dues[r.ID.Due.UTC()] = true
		}
	}
	return dues, nil
}
