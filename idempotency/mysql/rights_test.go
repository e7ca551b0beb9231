package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/internal/testservers"
)

// grants are the rights as SQL.
func grants(prefix, user string) (all []string) {
	for _, table := range slices.Sorted(maps.Keys(rights)) {
		all = append(all, fmt.Sprintf("GRANT %s ON %s TO %s", rights[table], strings.Replace(table, "belfry_", prefix, 1), user))
	}
	return all
}

// The page has what the code demands.
func TestGrantsArePublished(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/stores.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Join(grants("belfry_", "'app'@'%'"), ";\n") + ";\n"; !strings.Contains(string(page), want) {
		t.Errorf("docs/stores.md lacks\n%s", want)
	}
}

// accounts are the administrator of a database, and a user that may only do what a store needs, who can connect once it
// has a right.
func accounts(t *testing.T) (admin *sql.DB, app func() *sql.DB, user string) {
	t.Helper()
	d := testservers.MariaDB(t).Database(t)
	admin = client(t, d, "")
	name := "app_" + d.Name
	user = fmt.Sprintf("'%s'@'%%'", name)
	run(t, admin, "CREATE USER "+user)
	t.Cleanup(func() { run(t, admin, "DROP USER "+user) })
	return admin, func() *sql.DB {
		return clientOf(t, strings.Replace(d.DSN(), "root@", name+"@", 1))
	}, user
}

// Whoever runs a store can neither change its schema nor what names it.
func TestLeastPrivilegeIsLeast(t *testing.T) {
	t.Parallel()
	admin, app, user := accounts(t)
	if err := Migrate(t.Context(), admin, nil); err != nil {
		t.Fatal(err)
	}
	run(t, admin, grants("belfry_", user)...)
	db := app()
	for _, text := range []string{
		`CREATE TABLE more (a INT)`, `ALTER TABLE belfry_run ADD COLUMN more INT`, `DROP TABLE belfry_run`, `TRUNCATE belfry_run`,
		`CREATE INDEX more ON belfry_run (fence)`, `ALTER TABLE belfry_sequence AUTO_INCREMENT = 9`,
		`UPDATE belfry_store SET version = 2`, `DELETE FROM belfry_store`, `DELETE FROM belfry_space`, `DELETE FROM belfry_entry`,
	} {
		if _, err := db.ExecContext(t.Context(), text); code(err) != noTableRight {
			t.Errorf("%s: %v, want no permission", text, err)
		}
	}
	const want = "the user may not change the schema"
	if err := Migrate(t.Context(), db, &Options{Prefix: "other_"}); err == nil || !errors.Is(err, idempotency.ErrRefused) ||
		!strings.Contains(err.Error(), "the user may not read it") && !strings.Contains(err.Error(), want) {
		t.Errorf("migrate: %v, want %q", err, want)
	}
	s := openOn(t, db, &Options{NoMigrate: true})
	if _, _, err := s.OpenSession(t.Context(), idempotency.Opening{
		Namespace: "ns", Replica: "a", Boot: "a", Partitions: 8, Lease: time.Millisecond, Horizon: time.Hour, Retention: 2 * time.Hour,
	}); err != nil {
		t.Fatal(err)
	}
	for {
		err := s.DropNamespace(t.Context(), "ns")
		if errors.Is(err, idempotency.ErrRefused) {
			continue // until the lease has ended
		}
		if code(err) != noTableRight {
			t.Errorf("drop namespace: %v, want no permission", err)
		}
		return
	}
}

// F40: what a user lacks is named by the statements that mend it.
func TestLackingRight(t *testing.T) {
	t.Parallel()
	admin, app, user := accounts(t)
	if err := Migrate(t.Context(), admin, nil); err != nil {
		t.Fatal(err)
	}
	run(t, admin, "GRANT INSERT ON belfry_run TO "+user) // else it could not even connect
	db := app()
	opened := func() error {
		s, err := Open(context.Background(), db, &Options{NoMigrate: true})
		if err == nil {
			err = s.Close()
		}
		return err
	}
	if err := opened(); err == nil || !strings.Contains(err.Error(), "table belfry_store is not there, or the user may not read it") {
		t.Fatalf("without a right to read the version: %v", err)
	}
	run(t, admin, "GRANT SELECT ON belfry_store TO "+user)
	err := opened()
	if err == nil {
		t.Fatal("it was opened with a right to read its version alone")
	}
	mended := 0
	for part := range strings.SplitSeq(err.Error(), "; ") {
		if strings.HasPrefix(part, "GRANT ") {
			mended++
			run(t, admin, part)
		}
	}
	if err := opened(); err != nil || mended < 30 {
		t.Errorf("after %d of them: %v", mended, err)
	}
}
