package demo

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/ring"
)

// TestKeys compares pages from the table with a list in memory, by partitions, with and without After.
func TestKeys(t *testing.T) {
	t.Parallel()
	const n = 2*pageSize + 500
	path := filepath.Join(t.TempDir(), "belfry.db")
	if err := fill(t.Context(), path, n); err != nil {
		t.Fatal(err)
	}
	db, err := openBook(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
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
		for _, after := range []string{"", customer(n / 2), customer(n), "zzz"} {
			k := jobs.KeyRange{Partitions: partitions, Count: r.Partitions(), After: after}
			got, want := collect(t, keys(db), k), collect(t, list, k)
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

// TestKeysFail: a stream that cannot go on ends with an error, never early.
func TestKeysFail(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "belfry.db")
	if err := fill(t.Context(), path, 3); err != nil {
		t.Fatal(err)
	}
	if err := fill(t.Context(), path, 3); err == nil {
		t.Error("a second table of customers was made")
	}
	db, err := openBook(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var failed error
	for _, err := range keys(db).Keys(ctx, jobs.KeyRange{Partitions: []int{0}, Count: 1}) {
		failed = err
	}
	if !errors.Is(failed, context.Canceled) {
		t.Errorf("got %v", failed)
	}
}
