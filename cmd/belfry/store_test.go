package main

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/sqlite"
	"github.com/belfry-go/belfry/internal/testservers"
	"github.com/belfry-go/belfry/ring"
)

// place is an empty database of some kind, and how a test's own client opens it.
type place struct{ url, driver, dsn string }

func eachPlace(t *testing.T, test func(*testing.T, place)) {
	t.Parallel()
	for kind, make := range map[string]func(*testing.T) place{
		"sqlite": func(t *testing.T) place {
			path := filepath.Join(t.TempDir(), "app.db")
			return place{"sqlite:" + path, "sqlite", path}
		},
		"postgres": func(t *testing.T) place {
			db := testservers.Postgres(t).Database(t)
			return place{db.URL(), "pgx", db.DSN()}
		},
		"mysql": func(t *testing.T) place {
			db := testservers.MariaDB(t).Database(t)
			return place{db.URL(), "mysql", db.DSN()}
		},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			test(t, make(t))
		})
	}
}

func (p place) open(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open(p.driver, p.dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// TestMigrate: the tables are made, made again without harm, and are those that --print prints, which itself touches nothing.
func TestMigrate(t *testing.T) {
	eachPlace(t, func(t *testing.T, p place) {
		scheme, _, _ := strings.Cut(p.url, ":")
		printed := belfry(t, "", "migrate", "--print", "--store", scheme+"://nowhere.invalid/db")
		if scheme == "sqlite" {
			printed = belfry(t, "", "migrate", "--print", "--store", "sqlite:/nowhere/x.db")
		}
		if printed.status != 0 || !strings.Contains(strings.ToLower(printed.out), "create table") {
			t.Fatalf("print: %v", printed)
		}
		for range 2 {
			if r := belfry(t, "", "migrate", "--store", p.url); r.status != 0 || !strings.HasSuffix(r.out, ": the store's tables are up to date\n") {
				t.Fatalf("got %v", r)
			}
		}
		db := p.open(t)
		for _, line := range strings.Split(strings.ToLower(printed.out), "\n") {
			_, rest, ok := strings.Cut(line, "create table ")
			if !ok {
				continue
			}
			name := strings.Fields(strings.TrimPrefix(rest, "if not exists "))[0]
			if _, err := db.ExecContext(t.Context(), "select 1 from "+strings.TrimSuffix(name, "(")+" where 1 = 0"); err != nil {
				t.Errorf("the printed table %s was not made: %v", name, err)
			}
		}
	})
}

// TestPrefix: tables of another prefix are a store of their own.
func TestPrefix(t *testing.T) {
	eachPlace(t, func(t *testing.T, p place) {
		r := belfry(t, "", "migrate", "--store", p.url, "--prefix", "jobs_")
		if p.driver == "sqlite" {
			if r.status != 1 || !strings.Contains(r.err, "leave --prefix out") {
				t.Errorf("got %v", r)
			}
			return
		}
		if r.status != 0 {
			t.Fatalf("got %v", r)
		}
		if _, err := p.open(t).ExecContext(t.Context(), "select 1 from jobs_run where 1 = 0"); err != nil {
			t.Error(err)
		}
		bad := belfry(t, "", "migrate", "--store", p.url, "--prefix", `x"; drop table t; --`)
		if bad.status != 1 || !strings.Contains(bad.err, "prefix") {
			t.Errorf("a hostile prefix: %v", bad)
		}
	})
}

// TestRepartition changes a namespace's partitions once its replica has left, and not before.
func TestRepartition(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "app.db")
	store, err := sqlite.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	open := func(partitions int) (idempotency.Session, error) {
		s, _, err := store.OpenSession(t.Context(), opening(partitions))
		return s, err
	}
	s, err := open(8)
	if err != nil {
		t.Fatal(err)
	}
	change := []string{"migrate", "--store", "sqlite:" + path, "--namespace", "billing", "--partitions", "16"}
	if r := belfry(t, "", change...); r.status != 1 || !strings.Contains(r.err, `"a"`) {
		t.Errorf("beside a live replica: %v", r)
	}
	if err := store.CloseSession(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if r := belfry(t, "", change...); r.status != 0 || !strings.HasSuffix(r.out, ": namespace billing has 16 partitions\n") {
		t.Fatalf("got %v", r)
	}
	if _, err := open(16); err != nil {
		t.Error(err)
	}
}

// TestKeysFill writes what ring slot prints.
func TestKeysFill(t *testing.T) {
	eachPlace(t, func(t *testing.T, p place) {
		if p.driver == "sqlite" { // which keys fill does not make
			if r := belfry(t, "", "migrate", "--store", p.url); r.status != 0 {
				t.Fatalf("got %v", r)
			}
		}
		db := p.open(t)
		for _, statement := range []string{
			"create table customers (id varchar(20) primary key, slot int)", "insert into customers (id) values ('c-000001'), ('c-000002')",
		} {
			if _, err := db.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		fill := []string{"keys", "fill", "--store", p.url, "--table", "customers", "--key", "id", "--slot", "slot"}
		if r := belfry(t, "", fill...); r != (result{0, "customers: 2 rows looked at, with 2 keys; 2 slots written\n", ""}) {
			t.Errorf("got %v", r)
		}
		if r := belfry(t, "", fill...); r.out != "customers: 2 rows looked at, with 2 keys; 0 slots written\n" {
			t.Errorf("again: got %v", r)
		}
		var slot int
		if err := db.QueryRowContext(t.Context(), "select slot from customers where id = 'c-000001'").Scan(&slot); err != nil || slot != ring.Slot("c-000001") {
			t.Errorf("slot %d (%v), want %d", slot, err, ring.Slot("c-000001"))
		}
		if r := belfry(t, "", fill[:len(fill)-1]...); r.status != 2 || !strings.Contains(r.err, "flag needs an argument") {
			t.Errorf("without a column: %v", r)
		}
	})
}

func opening(partitions int) idempotency.Opening {
	return idempotency.Opening{Namespace: "billing", Replica: "a", Boot: "b", Partitions: partitions,
		Lease: time.Minute, Horizon: time.Hour, Retention: 2 * time.Hour}
}
