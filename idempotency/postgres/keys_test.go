package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/belfry-go/belfry/internal/testservers"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/ring"
)

const listCustomers = `select id from customers where slot = any($1) and id collate "C" > $2 order by id collate "C" limit $3`

// customers makes a table of the given keys in a database of its own.
func customers(t testing.TB, server *testservers.Server, column string, keys ...string) *pgxpool.Pool {
	t.Helper()
	p := application(t, server.Database(t), nil)
	if _, err := p.Exec(context.Background(), `create table customers (id `+column+`, slot integer not null check (slot between 0 and 65535))`); err != nil {
		t.Fatal(err)
	}
	slots := make([]int, len(keys))
	for i, k := range keys {
		slots[i] = ring.Slot(k)
	}
	kind, _, _ := strings.Cut(column, " ")
	if _, err := p.Exec(context.Background(), `insert into customers (id, slot) select k::`+kind+`, s from unnest($1::text[], $2::int[]) u(k, s)`, keys, slots); err != nil {
		t.Fatal(err)
	}
	return p
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

// awkward are keys that a database may take for one, or order otherwise than by their bytes. Text has no NUL here.
var awkward = []string{"a", "A", "a ", " a", "á", "a\u0301", "ä", "z", "Z", "ß", "ss", "\x01", "😀", "\uffff", "10", "9", "1e1", "%", "_", "'", `"`, `\`, "a\n", "a\t", strings.Repeat("x", 255)}

func TestKeysAreBytes(t *testing.T) {
	t.Parallel()
	want := slices.Sorted(slices.Values(awkward))
	p := customers(t, testservers.Postgres(t), "text primary key", awkward...)
	got, err := drain(t.Context(), Keys(p, listCustomers), just(awkward...))
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	for i, key := range want {
		r := just(awkward...)
		r.After = key
		if got, err := drain(t.Context(), Keys(p, listCustomers), r); err != nil || !slices.Equal(got, want[i+1:]) {
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
	p := customers(t, testservers.Postgres(t), `text collate "C" primary key`, keys...)
	if _, err := p.Exec(t.Context(), `create index on customers (slot, id collate "C")`); err != nil {
		t.Fatal(err)
	}
	s := Keys(p, listCustomers)
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
	if open := p.Stat().AcquiredConns(); open != 0 {
		t.Errorf("%d connections are still in use", open)
	}
}

// What a table or a query may get wrong is told, with the way to mend it.
func TestKeysWrong(t *testing.T) {
	t.Parallel()
	server := testservers.Postgres(t)
	if _, err := application(t, server.Database(t), nil).Exec(t.Context(), `select 'a' < 'B' collate "en-x-icu"`); err != nil {
		t.Fatalf("the server has no ICU collation: %v", err)
	}
	for name, c := range map[string]struct {
		column, query string
		keys          []string
		want          string
	}{
		"the database's collation": {`text collate "en-x-icu"`, `select id from customers where slot = any($1) and id > $2 order by id limit $3`, []string{"a", "B", "c"}, `collate "C"`},
		"bytes on one side":        {"text", `select id from customers where slot = any($1) and id > $2 order by id collate "C" limit $3`, []string{"a", "B"}, `for the order, and not for both`},
		"numbers":                  {"bigint", `select id from customers where slot = any($1) and id > $2 order by id limit $3`, []string{"9", "10"}, "lists the job's keys failed"},
		"no limit":                 {"text", `select id from customers where slot = any($1) and id > $2`, []string{"a"}, "lists the job's keys failed"},
		"no table":                 {"text", `select id from clients where slot = any($1) and id > $2 limit $3`, nil, "lists the job's keys failed"},
		"no query":                 {"text", "", nil, "lists the job's keys failed"},
		"two columns":              {"text", `select id, slot from customers where slot = any($1) and id > $2 limit $3`, []string{"a"}, "lists the job's keys failed"},
	} {
		p := customers(t, server, c.column, c.keys...)
		got, err := drain(t.Context(), Keys(p, c.query), just(append(c.keys, "a")...))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
	if _, err := drain(t.Context(), Keys(nil, listCustomers), part(0, 1, 8)); err == nil {
		t.Error("a nil pool yields no error")
	}
}

// Numbers are cast, and statements go by the simple protocol, as behind some poolers.
func TestKeysOfNumbers(t *testing.T) {
	t.Parallel()
	p := customers(t, testservers.Postgres(t), "bigint primary key", "9", "10", "100", "-5")
	config := p.Config()
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	simple, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer simple.Close()
	for _, p := range []*pgxpool.Pool{p, simple} {
		got, err := drain(t.Context(), Keys(p, `select id::text from customers where slot = any($1) and id::text collate "C" > $2 order by id::text collate "C" limit $3`), part(0, 1, 8))
		if err != nil || !slices.Equal(got, []string{"-5", "10", "100", "9"}) {
			t.Errorf("%q, %v", got, err)
		}
	}
}

// A holder that was paused writes late: it changes no row, and learns it.
func TestFenced(t *testing.T) {
	t.Parallel()
	p := application(t, testservers.Postgres(t).Database(t), nil)
	if _, err := p.Exec(t.Context(), `create table accounts (id text primary key, plan text not null, fence bigint not null default 0);
		insert into accounts (id, plan) values ('alice', 'none')`); err != nil {
		t.Fatal(err)
	}
	renew := func(o jobs.Occurrence, plan string) error {
		return Fenced(p.Exec(t.Context(), `update accounts set plan = $1, fence = $2 where id = $3 and fence < $2`, plan, o.Fence, o.Key))
	}
	paused, successor := jobs.Occurrence{Key: "alice", Fence: 7}, jobs.Occurrence{Key: "alice", Fence: 8}
	if err := renew(successor, "gold"); err != nil {
		t.Errorf("the successor: %v", err)
	}
	if err := renew(paused, "silver"); !errors.Is(err, jobs.ErrOvertaken) {
		t.Errorf("the paused holder: %v, want ErrOvertaken", err)
	}
	var plan string
	if err := p.QueryRow(t.Context(), `select plan from accounts`).Scan(&plan); err != nil || plan != "gold" {
		t.Errorf("plan %q, %v", plan, err)
	}
	if err := Fenced(p.Exec(t.Context(), `update nowhere set fence = 1`)); err == nil || errors.Is(err, jobs.ErrOvertaken) {
		t.Errorf("a failing write: %v", err)
	}
}
