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
	"github.com/belfry-go/belfry/ring"
)

// sqliteDatabase is one file, for replicas on one host.
type sqliteDatabase struct {
	db *sql.DB
	s  *sqlite.Store
}

// openSQLite opens the file, and makes it and the tables where they are missing.
func openSQLite(ctx context.Context, path string) (database, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("store %q: %w", path, err)
	}
	s, err := sqlite.Open(ctx, abs, nil)
	if err != nil {
		return nil, err
	}
	dsn := url.URL{Scheme: "file", Path: abs, RawQuery: "_txlock=immediate&_pragma=busy_timeout(5000)"}
	db, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("store %q: %w", path, err), s.Close())
	}
	// Beside each customer stands the slot of its id, by which a replica asks for those it owns. The ledger has no
	// unique key: that it holds each charge once is shown by counting.
	const tables = `
		create table if not exists customers (
			id text primary key, slot integer not null check (slot between 0 and 65535), cents integer not null
		) without rowid, strict;
		create table if not exists ledger (customer text not null, night text not null, cents integer not null) strict`
	if _, err := db.ExecContext(ctx, tables); err != nil {
		return nil, errors.Join(fmt.Errorf("store %q: %w", path, err), db.Close(), s.Close())
	}
	return &sqliteDatabase{db, s}, nil
}

func (d *sqliteDatabase) store() idempotency.Store { return d.s }
func (d *sqliteDatabase) close() error             { return errors.Join(d.db.Close(), d.s.Close()) }

func (d *sqliteDatabase) customers() jobs.KeySource {
	return sqlite.Keys(d.db, `
		select id from customers
		where slot in (select value from json_each(?1)) and id > ?2
		order by id limit ?3`)
}

func (d *sqliteDatabase) price(ctx context.Context, id string) (cents int64, err error) {
	err = d.db.QueryRowContext(ctx, `select cents from customers where id = ?`, id).Scan(&cents)
	if errors.Is(err, sql.ErrNoRows) {
		err = errNobody
	}
	if err != nil {
		return 0, fmt.Errorf("customer %q: price: %w", id, err)
	}
	return cents, nil
}

func (d *sqliteDatabase) enter(ctx context.Context, o jobs.Occurrence, cents int64) error {
	return sqlite.InTx(ctx, d.s, o, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `insert into ledger values (?, ?, ?)`, o.Key, o.Due.Format(time.RFC3339), cents)
		return err
	})
}

func (d *sqliteDatabase) seed(ctx context.Context, n int) error {
	tx, err := d.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("seed: %w", err)
	}
	defer tx.Rollback()
	for i := 1; i <= n; i++ {
		id := customerID(i)
		if _, err := tx.ExecContext(ctx, `insert into customers values (?, ?, ?) on conflict do nothing`, id, ring.Slot(id), cents(i)); err != nil {
			return fmt.Errorf("seed: %w", err)
		}
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("seed: %w", err)
	}
	return nil
}
