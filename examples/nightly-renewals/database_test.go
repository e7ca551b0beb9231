package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/belfry-go/belfry/jobs"
)

// TestDatabase seeds customers, twice, and reads them back, on each database that there is.
func TestDatabase(t *testing.T) {
	t.Parallel()
	databases := map[string]func() (database, error){
		"sqlite": func() (database, error) {
			return openSQLite(t.Context(), filepath.Join(t.TempDir(), "a file with ? and #.db"))
		},
	}
	if url := os.Getenv(databaseURL); url != "" {
		databases["postgres"] = func() (database, error) { return openPostgres(t.Context(), url) }
	}
	for name, open := range databases {
		t.Run(name, func(t *testing.T) {
			db, err := open()
			if err != nil {
				t.Fatal(err)
			}
			defer db.close()
			checkCustomers(t, db)
		})
	}
}

func checkCustomers(t *testing.T, db database) {
	t.Helper()
	const partitions = 8
	for _, n := range []int{1, 300, 300} {
		if err := db.seed(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		var ids []string
		for p := range partitions {
			for id, err := range db.customers().Keys(t.Context(), jobs.KeyRange{Partitions: []int{p}, Count: partitions}) {
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, id)
			}
		}
		slices.Sort(ids)
		if len(ids) < n || len(slices.Compact(ids)) != len(ids) || ids[0] != customerID(1) {
			t.Errorf("%d customers seeded, %d listed", n, len(ids))
		}
	}
	if cents, err := db.price(t.Context(), "customer-00001"); err != nil || cents != 600 {
		t.Errorf("price %d, %v; want 600", cents, err)
	}
	if _, err := db.price(t.Context(), "nobody"); !jobs.IsPermanent(err) {
		t.Errorf("a customer who does not exist: %v; want an error that is not tried again", err)
	}
}

// TestPasswordUnsaid: a URL that cannot be read is not quoted, whatever is wrong with it (S12, S27).
func TestPasswordUnsaid(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"postgres://u:c4nary@h:port/db", "postgres://u:c4n/ary@h/db", "postgres://u:c4nary@h/db?sslmode=perhaps", "u:c4nary@h", "postgres://u:c4nary%zz@h/db"} {
		_, err := openPostgres(t.Context(), url)
		if err == nil || !strings.Contains(err.Error(), databaseURL) || strings.Contains(err.Error(), "c4n") {
			t.Errorf("%s: got %v", url, err)
		}
	}
}
