package demo

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/storeurl"
	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/internal/testservers"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/ring"
)

// each runs a test on a database of each kind that is not the demo's own.
func each(t *testing.T, test func(*testing.T, storeurl.URL)) {
	t.Parallel()
	for kind, text := range map[storeurl.Kind]func(*testing.T) string{
		storeurl.SQLite:   func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "app.db") },
		storeurl.Postgres: func(t *testing.T) string { return testservers.Postgres(t).Database(t).URL() },
		storeurl.MySQL:    func(t *testing.T) string { return testservers.MariaDB(t).Database(t).URL() },
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			u, err := storeurl.Parse(text(t))
			if err != nil {
				t.Fatal(err)
			}
			test(t, u)
		})
	}
}

func enter(t *testing.T, u storeurl.URL, customers int) *site {
	t.Helper()
	s, err := openSite(t.Context(), Options{Store: u, Customers: customers}, "")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestKeys compares the stream from the table with a list in memory, by partitions, with and without After.
func TestKeys(t *testing.T) {
	each(t, func(t *testing.T, u storeurl.URL) {
		const n = 2500
		s := enter(t, u, n)
		defer s.close(t.Context())
		var all []string
		for i := 1; i <= n; i++ {
			all = append(all, customer(i))
		}
		list := jobs.KeyList(all...)
		r, err := ring.New([]string{"a", "b", "c"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		everything := make([]int, r.Partitions())
		for p := range everything {
			everything[p] = p
		}
		total := 0
		for _, partitions := range [][]int{everything, r.Owned("a"), r.Owned("b"), r.Owned("c"), {1}, nil} {
			for _, after := range []string{"", customer(n / 2), customer(n)} {
				k := jobs.KeyRange{Partitions: partitions, Count: r.Partitions(), After: after}
				got, want := collect(t, s.book.keys(), k), collect(t, list, k)
				if !slices.Equal(got, want) {
					t.Errorf("%d partitions after %q: %d keys, want %d", len(partitions), after, len(got), len(want))
				}
				if after == "" && len(partitions) < len(everything) && len(partitions) > 1 {
					total += len(got)
				}
			}
		}
		if total != n {
			t.Errorf("the three members have %d keys, want %d", total, n)
		}
	})
}

func collect(t *testing.T, s jobs.KeySource, r jobs.KeyRange) (got []string) {
	t.Helper()
	for key, err := range s.Keys(t.Context(), r) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, key)
	}
	return got
}

// TestLeavesNothing: two demos in one database do not meet, and each takes its own out of it, also where a replica that
// was killed has a session whose lease has yet to end, and where the demo itself was interrupted.
func TestLeavesNothing(t *testing.T) {
	each(t, func(t *testing.T, u storeurl.URL) {
		one, two := enter(t, u, 3), enter(t, u, 5)
		if one.namespace == two.namespace || one.book.table == two.book.table {
			t.Errorf("two demos have the namespace %s and the table %s", one.namespace, one.book.table)
		}
		if _, _, err := one.store.OpenSession(t.Context(), idempotency.Opening{
			Namespace: one.namespace, Replica: "killed", Boot: "b", Partitions: 8, Lease: 4 * time.Second, Horizon: time.Hour, Retention: 2 * time.Hour,
		}); err != nil {
			t.Fatal(err)
		}
		if err := one.store.DropNamespace(t.Context(), one.namespace); !errors.Is(err, idempotency.ErrRefused) {
			t.Errorf("the namespace of a live session: got %v, want a refusal", err)
		}
		interrupted, cancel := context.WithCancel(t.Context())
		cancel()
		if err := one.close(interrupted); err != nil {
			t.Fatal(err)
		}
		if err := two.client.Exec(t.Context(), "select * from "+one.book.table); err == nil {
			t.Error("the table of customers is left")
		}
		if got := collect(t, two.book.keys(), jobs.KeyRange{Partitions: []int{0}, Count: 1}); len(got) != 5 {
			t.Errorf("the other demo has %d customers, want 5", len(got))
		}
		// A namespace that is there fixes the number of partitions; one that is gone takes another.
		if _, _, err := two.store.OpenSession(t.Context(), idempotency.Opening{
			Namespace: one.namespace, Replica: "new", Boot: "b", Partitions: 16, Lease: time.Second, Horizon: time.Hour, Retention: 2 * time.Hour,
		}); err != nil {
			t.Errorf("the namespace is left: %v", err)
		}
		if err := two.close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestOwnFile: without a store the demo has a file of its own, which goes with its folder.
func TestOwnFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := openSite(t.Context(), Options{Customers: 3}, dir)
	if err != nil {
		t.Fatal(err)
	}
	if s.borrowed || s.namespace != "demo" || s.where() != "one SQLite file" {
		t.Errorf("got %+v", s)
	}
	if err := s.close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := openSite(t.Context(), Options{Customers: 3}, dir); err == nil || !strings.Contains(err.Error(), "customers") {
		t.Errorf("a second table of customers: %v", err)
	}
}

// TestPasswordUnsaid: what the demo says of a server has no password (S12).
func TestPasswordUnsaid(t *testing.T) {
	t.Parallel()
	u, err := storeurl.Parse(testservers.Postgres(t).Database(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	secret := strings.Replace(u.Secret(), "@", ":c4nary@", 1)
	if u, err = storeurl.Parse(secret); err != nil {
		t.Fatal(err)
	}
	s := enter(t, u, 1)
	defer s.close(t.Context())
	if said := s.where(); !strings.Contains(said, u.String()) || !strings.Contains(said, s.namespace) || strings.Contains(said, "c4nary") {
		t.Errorf("said: %s", said)
	}
}
