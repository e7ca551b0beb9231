package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	driver "github.com/go-sql-driver/mysql"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/internal/testservers"
)

func run(t testing.TB, db *sql.DB, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if _, err := db.ExecContext(context.Background(), text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
}

// second is a step that a later program may have: of each kind of statement one.
var second = []string{
	`ALTER TABLE belfry_entry ADD COLUMN note VARBINARY(64)`,
	`UPDATE belfry_entry SET note = job`,
	`CREATE TABLE belfry_extra (
  id BIGINT NOT NULL PRIMARY KEY
)` + engine,
	`CREATE INDEX belfry_entry_note ON belfry_entry (note)`,
}

// upgrade is Migrate of the program that has the second step.
func upgrade(ctx context.Context, db *sql.DB) error {
	o, _ := (*Options)(nil).filled()
	return singly(ctx, db, o.Prefix, func(t *tx) error {
		_, err := examine(t, [][]string{schema, second}, o)
		return err
	})
}

// F63: of many that open an empty database at once one makes the store, and all have the same.
func TestManyOpenAtOnce(t *testing.T) {
	t.Parallel()
	d := testservers.MariaDB(t).Database(t)
	var log strings.Builder
	o := &Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}
	var all sync.WaitGroup
	ids := make([]string, 10)
	for i := range ids {
		db := client(t, d, "")
		all.Go(func() {
			s, err := Open(t.Context(), db, o)
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = s.id
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(slices.Compact(ids)) != 1 || ids[0] == "" {
		t.Errorf("identities %q", ids)
	}
	if n := strings.Count(log.String(), "a new store was made"); n != 1 {
		t.Errorf("%d of them made it", n)
	}
}

// fuse is a connection that breaks at its nth query: before the server got it, or after it was done.
type fuse struct {
	net.Conn
	left  *int
	after bool
}

func (f *fuse) Write(b []byte) (int, error) {
	if len(b) > 4 && b[3] == 0 && b[4] == 3 { // COM_QUERY
		*f.left--
		if *f.left == 0 && !f.after {
			f.Close()
			return 0, net.ErrClosed
		}
	}
	return f.Conn.Write(b)
}

func (f *fuse) Read(b []byte) (int, error) {
	n, err := f.Conn.Read(b)
	if *f.left == 0 && f.after {
		f.Close()
		return 0, net.ErrClosed
	}
	return n, err
}

// broken is a client whose every connection breaks at its nth query.
func broken(t *testing.T, d testservers.Database, n int, after bool) *sql.DB {
	t.Helper()
	c, err := driver.ParseDSN(d.DSN())
	if err != nil {
		t.Fatal(err)
	}
	c.Logger = &driver.NopLogger{}
	c.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		var dialer net.Dialer
		inner, err := dialer.DialContext(ctx, network, addr)
		left := n
		return &fuse{inner, &left, after}, err
	}
	connector, err := driver.NewConnector(c)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() { db.Close() })
	return db
}

// F63: wherever a process dies while it migrates, what it leaves is either refused or completed by the next one, and is
// never taken for whole; and the identity that it drew stays.
func TestMigrationDies(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		for _, c := range []struct {
			name   string
			to     int // version
			before func(context.Context, *sql.DB) error
			do     func(context.Context, *sql.DB) error
		}{
			{"Making", 1, func(context.Context, *sql.DB) error { return nil }, func(ctx context.Context, db *sql.DB) error { return Migrate(ctx, db, nil) }},
			{"Upgrading", 2, func(ctx context.Context, db *sql.DB) error { return Migrate(ctx, db, nil) }, upgrade},
		} {
			t.Run(fmt.Sprint(c.name, "After", after), func(t *testing.T) {
				t.Parallel()
				halves := 0
				for n := 1; ; n++ {
					d := testservers.MariaDB(t).Database(t)
					whole := client(t, d, "")
					if err := c.before(t.Context(), whole); err != nil {
						t.Fatal(err)
					}
					died := c.do(t.Context(), broken(t, d, n, after))
					id, version, migrating := state(whole)
					if died == nil || version == c.to {
						break
					}
					if migrating > 0 {
						halves++
						_, err := Open(t.Context(), whole, &Options{NoMigrate: true})
						if version > 0 && (err == nil || !strings.Contains(err.Error(), "use a newer program")) ||
							version == 0 && (err == nil || !strings.Contains(err.Error(), "half way from version 0 to 1, and NoMigrate")) {
							t.Fatalf("query %d: half made, and opened without leave to migrate: %v", n, err)
						}
					}
					if err := c.do(t.Context(), whole); err != nil {
						t.Fatalf("query %d: the next one: %v", n, err)
					}
					again, _, migrating := state(whole)
					if migrating > 0 || id != "" && id != again {
						t.Fatalf("query %d: migrating %d, the identity %q became %q", n, migrating, id, again)
					}
				}
				if halves < 4 {
					t.Errorf("it was half made %d times; the test has shown nothing", halves)
				}
			})
		}
	}
}

func state(db *sql.DB) (id string, version, migrating int) {
	// Where there is no table yet all stay empty.
	_ = db.QueryRow(`SELECT id, version, migrating FROM belfry_store`).Scan(&id, &version, &migrating)
	return id, version, migrating
}

// F63, F38: a schema that this program did not make is refused, with what to do, and left as it was.
func TestOpenRefusesSchemas(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		change  []string // of a store that was made
		empty   bool     // there is none
		options *Options
		want    string
	}{
		{"NoMigrateEmpty", nil, true, &Options{NoMigrate: true}, "there is no table belfry_store, and NoMigrate forbids to change that; check the database and the prefix, then run `belfry migrate --store …`"},
		{"NoMigrateOtherPrefix", nil, false, &Options{NoMigrate: true, Prefix: "belfry_b_"}, "there is no table belfry_b_store"},
		{"Newer", []string{`UPDATE belfry_store SET version = 2`}, false, nil, "version 2 and this program knows 1; use a newer program"},
		{"BecomingNewer", []string{`UPDATE belfry_store SET migrating = 2`}, false, nil, "version 2 and this program knows 1"},
		{"NoTable", []string{`DROP TABLE belfry_pass`}, false, nil, "belfry_pass.due is missing"},
		{"NoColumn", []string{`ALTER TABLE belfry_run DROP COLUMN payload`}, false, nil, "belfry_run.payload is missing"},
		{"NewColumn", []string{`ALTER TABLE belfry_run ADD COLUMN mine INT`}, false, nil, "belfry_run.mine is not of this schema"},
		{"OtherType", []string{`ALTER TABLE belfry_run MODIFY run_key VARCHAR(255) NOT NULL`}, false, nil, `belfry_run.run_key is "varchar(255) not null"`},
		{"NoIndex", []string{`DROP INDEX closed ON belfry_due`}, false, nil, "belfry_due/closed is missing"},
		{"NoUniqueIndex", []string{`DROP INDEX name ON belfry_space`, `CREATE INDEX name ON belfry_space (name)`}, false, nil, `belfry_space/name is "name" instead of "unique name"`},
		{"OtherEngine", []string{`ALTER TABLE belfry_pass ENGINE=MyISAM ROW_FORMAT=DEFAULT`}, false, nil, `belfry_pass is "engine myisam" instead of "engine innodb"`},
		{"AnothersTable", []string{`CREATE TABLE belfry_store (a INT)`}, true, nil, "belfry_store.a is not of this schema"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			db := client(t, testservers.MariaDB(t).Database(t), "")
			if !c.empty {
				if err := Migrate(t.Context(), db, nil); err != nil {
					t.Fatal(err)
				}
			}
			run(t, db, c.change...)
			before := tables(t, db)
			s, err := Open(t.Context(), db, c.options)
			if err == nil {
				s.Close()
				t.Fatal("it was opened")
			}
			if !errors.Is(err, idempotency.ErrRefused) || !strings.HasPrefix(err.Error(), "mysql: store belfry_") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %q, want one that says %q", err, c.want)
			}
			if after := tables(t, db); after != before {
				t.Errorf("the tables %s became %s", before, after)
			}
		})
	}
}

func tables(t *testing.T, db *sql.DB) (names string) {
	t.Helper()
	const all = `SELECT coalesce(group_concat(table_name, ' ', engine, ' ', create_time ORDER BY 1), '') FROM information_schema.tables WHERE table_schema = DATABASE()`
	if err := db.QueryRow(all).Scan(&names); err != nil {
		t.Fatal(err)
	}
	return names
}

// A later program upgrades; the older ones are refused from then on.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	db := client(t, testservers.MariaDB(t).Database(t), "")
	if err := Migrate(t.Context(), db, nil); err != nil {
		t.Fatal(err)
	}
	run(t, db, `INSERT INTO belfry_entry (space, job, run_key, schedule, hash, revision, keyed, leader, opened) VALUES (1, 'renewals', '', '', '', 0, 0, 0, 0)`)
	id, _, _ := state(db)
	err := singly(t.Context(), db, defaultPrefix, func(t *tx) error {
		o, _ := (&Options{NoMigrate: true}).filled()
		_, err := examine(t, [][]string{schema, second}, o)
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "version 1 and this program needs 2, and NoMigrate") {
		t.Errorf("without leave to migrate: %v", err)
	}
	for range 2 {
		if err := upgrade(t.Context(), db); err != nil {
			t.Fatal(err)
		}
	}
	var note string
	if err := db.QueryRow(`SELECT note FROM belfry_entry`).Scan(&note); err != nil || note != "renewals" {
		t.Errorf("the step's data is %q %v", note, err)
	}
	if again, version, _ := state(db); again != id || version != 2 {
		t.Errorf("version %d of %q, which was %q", version, again, id)
	}
	if err := Migrate(t.Context(), db, nil); err == nil || !strings.Contains(err.Error(), "use a newer program") {
		t.Errorf("the older program: %v", err)
	}
}

// What people run by hand makes a store as Open makes one, and each time another.
func TestScript(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for _, prefix := range []string{"", "a_", "a_belfry_"} {
		o := &Options{Prefix: prefix, NoMigrate: true}
		text, err := Script(o)
		if err != nil {
			t.Fatal(err)
		}
		db := client(t, testservers.MariaDB(t).Database(t), "?multiStatements=true")
		run(t, db, text)
		seen[openOn(t, db, o).id] = true
	}
	if len(seen) != 3 {
		t.Errorf("three stores have the identities %v", seen)
	}
}

// S11: a prefix is a plain name, or nothing is done at all.
func TestPrefix(t *testing.T) {
	t.Parallel()
	db := client(t, testservers.MariaDB(t).Database(t), "")
	for _, prefix := range []string{
		"a;", "a'", "a`", `a"`, "a b", "A", "1a", "é", "a--", "a/*", "a\x00", "a\n", "x; DROP TABLE belfry_store", strings.Repeat("a", 32), strings.Repeat("a", 300),
	} {
		o := &Options{Prefix: prefix}
		_, script := Script(o)
		_, opened := Open(t.Context(), db, o)
		for name, err := range map[string]error{
			"open": opened, "script": script, "migrate": Migrate(t.Context(), db, o), "repartition": Repartition(t.Context(), db, "ns", 1, o),
		} {
			if err == nil || !strings.Contains(err.Error(), "use a letter or _") {
				t.Errorf("%s with the prefix %q: %v", name, prefix, err)
			}
		}
	}
	if left := tables(t, db); left != "" {
		t.Errorf("tables %s", left)
	}
	var ids []string
	for _, prefix := range []string{"a_", "a_b_", "a_belfry_", "_", strings.Repeat("a", 31)} { // the first begins others' names
		ids = append(ids, openOn(t, db, &Options{Prefix: prefix}).id)
	}
	if slices.Sort(ids); len(slices.Compact(ids)) != 5 {
		t.Errorf("identities %q", ids)
	}
	openOn(t, db, &Options{Prefix: "a_", NoMigrate: true})
}
