package mysql

import (
	"context"
	"database/sql"
	"testing"

	"go.uber.org/goleak"

	"github.com/belfry-go/belfry/internal/testservers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testservers.Main(m)) }

// client opens a pool of the database, with parameters behind its DSN, and closes it when the test ends.
func client(t testing.TB, d testservers.Database, parameters string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", d.DSN()+parameters)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return db
}

// openOn opens a store on the pool and closes it when the test ends.
func openOn(t testing.TB, db *sql.DB, o *Options) *Store {
	t.Helper()
	s, err := Open(context.Background(), db, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func TestOpen(t *testing.T) {
	t.Parallel()
	db := client(t, testservers.MariaDB(t).Database(t), "")
	first, second := openOn(t, db, nil), openOn(t, db, nil)
	if first.id == "" || first.id != second.id {
		t.Errorf("identities %q and %q; want the same", first.id, second.id)
	}
}
