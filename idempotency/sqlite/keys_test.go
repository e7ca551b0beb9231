package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/ring"
)

const listCustomers = `select id from customers where slot in (select value from json_each(?1)) and id > ?2 order by id limit ?3`

// customers makes a table of the given keys in a file of its own.
func customers(t testing.TB, column string, keys ...string) *sql.DB {
	t.Helper()
	db := application(t, file(t))
	if _, err := db.Exec(`create table customers (id ` + column + `, slot integer not null check (slot between 0 and 65535))`); err != nil {
		t.Fatal(err)
	}
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	insert, err := tx.Prepare(`insert into customers (id, slot) values (?, ?)`)
	if err != nil {
		t.Fatal(err)
	}
	defer insert.Close()
	for _, k := range keys {
		if _, err := insert.Exec(k, ring.Slot(k)); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	return db
}

// part is the range of one of so many replicas.
func part(i, replicas, count int) jobs.KeyRange {
	r := jobs.KeyRange{Count: count}
	for p := i; p < count; p += replicas {
		r.Partitions = append(r.Partitions, p)
	}
	return r
}

// just is the range of these keys' slots alone: a database that has to look through the 65,536 of all partitions for each
// question makes a test slow.
func just(keys ...string) jobs.KeyRange {
	r := jobs.KeyRange{Count: 65536}
	for _, k := range keys {
		r.Partitions = append(r.Partitions, ring.Slot(k))
	}
	slices.Sort(r.Partitions)
	r.Partitions = slices.Compact(r.Partitions)
	return r
}

func drain(ctx context.Context, s jobs.KeySource, r jobs.KeyRange) (keys []string, err error) {
	for key, e := range s.Keys(ctx, r) {
		if e != nil {
			return keys, e
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// awkward are keys that a database may take for one, or order otherwise than by their bytes.
var awkward = []string{"a", "A", "a ", " a", "á", "a\u0301", "ä", "z", "Z", "ß", "ss", "a\x00", "a\x00b", "\x01", "😀", "\uffff", "10", "9", "1e1", "%", "_", "'", `"`, `\`, "a\n", "a\t", strings.Repeat("x", 255)}

func TestKeysAreBytes(t *testing.T) {
	t.Parallel()
	want := slices.Sorted(slices.Values(awkward))
	db := customers(t, "text primary key", awkward...)
	got, err := drain(t.Context(), Keys(db, listCustomers), just(awkward...))
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	for i, key := range want {
		r := just(awkward...)
		r.After = key
		if got, err := drain(t.Context(), Keys(db, listCustomers), r); err != nil || !slices.Equal(got, want[i+1:]) {
			t.Errorf("after %q: %q, %v", key, got, err)
		}
	}
}

// Each key of a large table comes once, whatever the number of partitions and of replicas.
func TestKeysOfLargeTable(t *testing.T) {
	t.Parallel()
	const n = 4_000
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("customer-%05d", i)
	}
	db := customers(t, "text primary key", keys...)
	s := Keys(db, listCustomers)
	for _, count := range []int{8, 65536} {
		var got []string
		for i := range 3 {
			list, err := drain(t.Context(), s, part(i, 3, count))
			if err != nil {
				t.Fatalf("P %d: %v", count, err)
			}
			if !slices.IsSorted(list) {
				t.Errorf("P %d: the keys do not ascend", count)
			}
			got = append(got, list...)
		}
		if slices.Sort(got); !slices.Equal(got, keys) {
			t.Errorf("P %d: %d keys, want each of %d once", count, len(got), n)
		}
	}
	if open := db.Stats().InUse; open != 0 {
		t.Errorf("%d connections are still in use", open)
	}
}

// Between two pages the application can close, write and use its only connection.
func TestKeysHoldNoConnection(t *testing.T) {
	t.Parallel()
	keys := make([]string, 2500)
	for i := range keys {
		keys[i] = fmt.Sprintf("c%04d", i)
	}
	db := customers(t, "text primary key", keys...)
	db.SetMaxOpenConns(1)
	n := 0
	for key, err := range Keys(db, listCustomers).Keys(t.Context(), just(keys...)) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n%500 == 0 {
			if _, err := db.Exec(`delete from customers where id = ?`, key); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n != len(keys) {
		t.Errorf("%d keys, want %d, though rows are deleted behind the stream", n, len(keys))
	}
}

// What a table or a query may get wrong is told, with the way to mend it.
func TestKeysWrong(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		column, query string
		keys          []string
		want          string
	}{
		"a collation without case": {"text collate nocase primary key", listCustomers, []string{"a", "B", "c"}, "collate binary"},
		"numbers":                  {"integer primary key", listCustomers, []string{"9", "10"}, "cast them to text"},
		"no lower bound":           {"text", `select id from customers where slot in (select value from json_each(?1)) and ?2 is not null order by id limit ?3`, []string{"a", "b"}, "second parameter"},
		"no table":                 {"text", `select id from clients where slot in (select value from json_each(?1)) and id > ?2 order by id limit ?3`, nil, "lists the job's keys failed"},
		"no query":                 {"text", "", nil, "one column"},
		"two columns":              {"text", `select id, slot from customers where slot in (select value from json_each(?1)) and id > ?2 order by id limit ?3`, []string{"a"}, "one column"},
	} {
		db := customers(t, c.column, c.keys...)
		got, err := drain(t.Context(), Keys(db, c.query), just(append(c.keys, "a")...))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
	if _, err := drain(t.Context(), Keys(nil, listCustomers), part(0, 1, 8)); err == nil {
		t.Error("a nil handle yields no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := drain(ctx, Keys(customers(t, "text", "a"), listCustomers), part(0, 1, 8)); !errors.Is(err, context.Canceled) {
		t.Errorf("an ended context: %v", err)
	}
}
