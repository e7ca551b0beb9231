package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/belfry-go/belfry/internal/testservers"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/ring"
)

const listCustomers = `select id from customers where slot in (?) and id > ? order by id limit ?`

// customers makes a table of the given keys in a database of its own.
func customers(t testing.TB, server *testservers.Server, column string, keys ...string) *sql.DB {
	t.Helper()
	db := client(t, server.Database(t), "?interpolateParams=true&charset=utf8mb4")
	if _, err := db.Exec(`create table customers (id ` + column + `, slot int not null check (slot between 0 and 65535), key (slot, id)) engine=innodb default charset=utf8mb4`); err != nil {
		t.Fatal(err)
	}
	for part := range slices.Chunk(keys, 1000) {
		var args []any
		for _, k := range part {
			args = append(args, k, ring.Slot(k))
		}
		if _, err := db.Exec(`insert into customers (id, slot) values `+strings.Repeat(`(?,?),`, len(part)-1)+`(?,?)`, args...); err != nil {
			t.Fatal(err)
		}
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
	db := customers(t, testservers.MariaDB(t), "varbinary(255) primary key", awkward...)
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
	const n = 10_000
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("customer-%05d", i)
	}
	db := customers(t, testservers.MariaDB(t), "varbinary(255) primary key", keys...)
	s := Keys(db, listCustomers)
	for _, count := range []int{8, 4096} {
		var got []string
		for i := range 3 {
			list, err := drain(t.Context(), s, part(i, 3, count))
			if err != nil || !slices.IsSorted(list) {
				t.Fatalf("P %d: ascending %v, %v", count, slices.IsSorted(list), err)
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

// What a table or a query may get wrong is told, with the way to mend it.
func TestKeysWrong(t *testing.T) {
	t.Parallel()
	server := testservers.MariaDB(t)
	for name, c := range map[string]struct {
		column, query string
		keys          []string
		want          string
	}{
		"a collation without case": {"varchar(255) collate utf8mb4_general_ci primary key", listCustomers, []string{"a", "B", "c"}, "varbinary"},
		"a collation with pads":    {"varchar(255) collate utf8mb4_bin primary key", listCustomers, []string{"a", "a\x01"}, "varbinary"},
		"numbers":                  {"int primary key", listCustomers, []string{"9", "10"}, "cast(id as binary)"},
		"no list of slots":         {"varbinary(255)", `select id from customers where id > ? order by id limit ?`, []string{"a"}, "three marks"},
		"no table":                 {"varbinary(255)", `select id from clients where slot in (?) and id > ? order by id limit ?`, nil, "lists the job's keys failed"},
		"no query":                 {"varbinary(255)", "", nil, "three marks"},
		"two columns":              {"varbinary(255)", `select id, slot from customers where slot in (?) and id > ? order by id limit ?`, []string{"a"}, "one column"},
	} {
		db := customers(t, server, c.column, c.keys...)
		got, err := drain(t.Context(), Keys(db, c.query), just(append(c.keys, "a")...))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
	if _, err := drain(t.Context(), Keys(nil, listCustomers), part(0, 1, 8)); err == nil {
		t.Error("a nil handle yields no error")
	}
}

// With numbers that are cast, as the error says.
func TestKeysOfNumbers(t *testing.T) {
	t.Parallel()
	db := customers(t, testservers.MariaDB(t), "bigint primary key", "9", "10", "100", "-5")
	got, err := drain(t.Context(), Keys(db, `select id from customers where slot in (?) and cast(id as binary) > ? order by cast(id as binary) limit ?`), part(0, 1, 8))
	if err != nil || !slices.Equal(got, []string{"-5", "10", "100", "9"}) {
		t.Errorf("%q, %v", got, err)
	}
}

// A holder that was paused writes late: it changes no row, and learns it, whatever the application's DSN says of counts.
func TestFenced(t *testing.T) {
	t.Parallel()
	server := testservers.MariaDB(t)
	for _, flags := range []string{"", "?clientFoundRows=true"} {
		db := client(t, server.Database(t), flags)
		for _, text := range []string{`create table accounts (id varbinary(255) primary key, plan varchar(16) not null, fence bigint not null default 0)`, `insert into accounts (id, plan) values ('alice', 'gold')`} {
			if _, err := db.Exec(text); err != nil {
				t.Fatal(err)
			}
		}
		renew := func(o jobs.Occurrence, plan string) error {
			return Fenced(db.ExecContext(t.Context(), `update accounts set plan = ?, fence = ? where id = ? and fence < ?`, plan, o.Fence, o.Key, o.Fence))
		}
		paused, successor := jobs.Occurrence{Key: "alice", Fence: 7}, jobs.Occurrence{Key: "alice", Fence: 8}
		if err := renew(successor, "gold"); err != nil { // the value stays what it is: only the fence changes
			t.Errorf("%s: the successor: %v", flags, err)
		}
		if err := renew(paused, "silver"); !errors.Is(err, jobs.ErrOvertaken) {
			t.Errorf("%s: the paused holder: %v, want ErrOvertaken", flags, err)
		}
		var plan string
		if err := db.QueryRow(`select plan from accounts`).Scan(&plan); err != nil || plan != "gold" {
			t.Errorf("%s: plan %q, %v", flags, plan, err)
		}
		if err := Fenced(db.Exec(`update nowhere set fence = 1`)); err == nil || errors.Is(err, jobs.ErrOvertaken) {
			t.Errorf("%s: a failing write: %v", flags, err)
		}
	}
}
