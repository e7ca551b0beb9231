package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/internal/testservers"
)

// grants are the rights as SQL, one statement for each set of them.
func grants(prefix, role string) string {
	by := make(map[string][]string)
	for thing, right := range rights {
		if thing == "belfry_number" {
			thing = "SEQUENCE " + thing
		}
		by[right] = append(by[right], thing)
	}
	var b strings.Builder
	for _, right := range slices.Sorted(maps.Keys(by)) {
		slices.Sort(by[right])
		fmt.Fprintf(&b, "GRANT %s ON %s TO %s;\n", right, strings.Join(by[right], ", "), role)
	}
	return strings.ReplaceAll(b.String(), "belfry_", prefix)
}

// The page has what the code demands.
func TestGrantsArePublished(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/stores.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.ReplaceAll(grants("belfry-", "app"), "belfry-", "belfry_"); !strings.Contains(string(page), want) {
		t.Errorf("docs/stores.md lacks\n%s", want)
	}
}

// roles are the administrator of a database, and a role that may only do what a store needs.
func roles(t *testing.T) (admin, app *pgxpool.Pool, role string) {
	t.Helper()
	d := testservers.Postgres(t).Database(t)
	admin = pool(t, d)
	role = "app_" + d.Name
	run(t, admin, "CREATE ROLE "+role+" LOGIN")
	t.Cleanup(func() { run(t, admin, "DROP OWNED BY "+role, "DROP ROLE "+role) })
	return admin, pool(t, d, func(c *pgxpool.Config) { c.ConnConfig.User = role }), role
}

// Whoever runs a store can neither change its schema nor what names it.
func TestLeastPrivilegeIsLeast(t *testing.T) {
	t.Parallel()
	admin, app, role := roles(t)
	if err := Migrate(t.Context(), admin, nil); err != nil {
		t.Fatal(err)
	}
	run(t, admin, grants("belfry_", role))
	openAt(t, app, &Options{NoMigrate: true}, serverClock)
	for _, text := range []string{
		`CREATE TABLE more (a integer)`, `ALTER TABLE belfry_run ADD COLUMN more integer`, `DROP TABLE belfry_run`, `TRUNCATE belfry_run`,
		`CREATE INDEX more ON belfry_run (fence)`, `ALTER SEQUENCE belfry_number CACHE 9`, `SELECT setval('belfry_number', 1)`,
		`UPDATE belfry_store SET version = 2`, `DELETE FROM belfry_store`, `DELETE FROM belfry_space`, `DELETE FROM belfry_entry`,
	} {
		if _, err := app.Exec(t.Context(), text); code(err) != "42501" {
			t.Errorf("%s: %v, want no permission", text, err)
		}
	}
	want := fmt.Sprintf("may not make tables in schema \"public\"; run `belfry migrate --store …` as one who may, or GRANT USAGE, CREATE ON SCHEMA \"public\" TO %q", role)
	if err := Migrate(t.Context(), app, &Options{Prefix: "other_"}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("migrate: %v, want %q", err, want)
	}
	s := openAt(t, app, &Options{NoMigrate: true}, serverClock)
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
		if code(err) != "42501" {
			t.Errorf("drop namespace: %v, want no permission", err)
		}
		return
	}
}

// F40: what a role lacks is named by the statements that mend it.
func TestLackingPrivilege(t *testing.T) {
	t.Parallel()
	admin, app, role := roles(t)
	if err := Migrate(t.Context(), admin, nil); err != nil {
		t.Fatal(err)
	}
	opened := func() error {
		s, err := Open(context.Background(), app, &Options{NoMigrate: true})
		if err == nil {
			err = s.Close()
		}
		return err
	}
	err := opened()
	if want := fmt.Sprintf(`GRANT SELECT ON belfry_store TO "%s"`, role); err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("no right at all: %v, want %q", err, want)
	}
	run(t, admin, "GRANT SELECT ON belfry_store TO "+role)
	err = opened()
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
	// A schema that the role may not use looks like none.
	run(t, admin, "REVOKE USAGE ON SCHEMA public FROM PUBLIC")
	if err := opened(); err == nil || !strings.Contains(err.Error(), fmt.Sprintf(`GRANT USAGE ON SCHEMA "public" TO "%s"`, role)) {
		t.Errorf("without the schema: %v", err)
	}
}
