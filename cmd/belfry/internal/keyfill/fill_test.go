package keyfill

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/belfry-go/belfry/cmd/belfry/internal/storeurl"
	"github.com/belfry-go/belfry/ring"
)

// numbered is the expression of bulkKey(i) in each dialect.
var numbered = map[storeurl.Kind]string{
	storeurl.SQLite: "printf('c-%06d', i)", storeurl.Postgres: "'c-' || lpad(i::text, 6, '0')", storeurl.MySQL: "concat('c-', lpad(i, 6, '0'))",
}

// TestFill: all rows get their slots, over several pages; those that have them are left alone, and so are rows without a key.
func TestFill(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b base) {
		b.t = t
		b.exec("create table t (k varchar(40), slot int)")
		b.exec("create index on_k on t (k)")
		b.addBulk(numbered[b.URL().Kind()])
		b.exec(fmt.Sprintf("update t set slot = %d where k = '%s'", ring.Slot(bulkKey(7)), bulkKey(7)))
		b.exec(fmt.Sprintf("update t set slot = 1 where k = '%s'", bulkKey(8))) // wrong
		b.insert(nil, nil)
		b.mustFill(Counts{Keys: bulk, Rows: bulk, Written: bulk - 1})
		for _, i := range []int{1, 7, 8, pageSize, pageSize + 1, bulk} {
			if n := b.count(fmt.Sprintf("select count(*) from t where k = '%s' and slot = %d", bulkKey(i), ring.Slot(bulkKey(i)))); n != 1 {
				t.Errorf("%s has not its slot", bulkKey(i))
			}
		}
		if n := b.count("select count(*) from t where slot is null"); n != 1 {
			t.Errorf("%d rows without a slot, want the one without a key", n)
		}
		b.mustFill(Counts{Keys: bulk, Rows: bulk})
	})
}

// TestRestart breaks off after the first page: the next run writes the rest.
func TestRestart(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b base) {
		b.t = t
		b.exec("create table t (k varchar(40) primary key, slot int)")
		b.addBulk(numbered[b.URL().Kind()])
		ctx, cancel := context.WithCancel(t.Context())
		n, err := Fill(ctx, b.Client, Target{"t", "k", "slot"}, func(Counts) { cancel() })
		if !errors.Is(err, context.Canceled) || n.Written != pageSize {
			t.Fatalf("broken off: %+v, %v", n, err)
		}
		b.mustFill(Counts{Keys: bulk, Rows: bulk, Written: bulk - pageSize})
	})
}

// TestManyRowsOfAKey: a key's rows fill more than a page, and only the last of them is wrong.
func TestManyRowsOfAKey(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b base) {
		b.t = t
		b.exec("create table t (k varchar(40), slot int)")
		b.addBulk("'same'")
		b.exec(fmt.Sprintf("update t set slot = %d", ring.Slot("same")))
		b.insert("same", 3)
		b.insert("tame", nil)
		b.mustFill(Counts{Keys: 2, Rows: bulk + 2, Written: 2})
		b.insert("same", nil)
		b.mustFill(Counts{Keys: 2, Rows: bulk + 3, Written: 1})
	})
}

// TestKeys gives keys of each type that a user may have, and wants each row to get the slot of just its bytes.
func TestKeys(t *testing.T) {
	t.Parallel()
	words := []any{"Ann", "ann", "ANN ", "Änn", "a%n", "a_n", `a"n'`, "ε", "z"}
	for _, c := range []struct {
		name, types string
		open        func(*testing.T) base
		keys        []any
	}{
		{"sqlite text", "k text, slot integer", sqliteBase, words},
		{"sqlite nocase", "k text collate nocase, slot integer", sqliteBase, words},
		{"sqlite integer", "k integer primary key, slot integer", sqliteBase, []any{-5, 7, 1<<53 + 1, 1 << 53}},
		{"sqlite blob", "k blob, slot integer", sqliteBase, []any{[]byte("\x00\xff"), []byte("b")}},
		{"sqlite mixed", "k, slot integer", sqliteBase, []any{7, "7", []byte("7"), "x"}},
		{"sqlite date", "k date, slot integer", sqliteBase, []any{"2026-10-01"}},
		{"postgres text", "k text, slot integer", postgresBase, words},
		{"postgres varchar", "k varchar(20), slot bigint", postgresBase, words},
		{"postgres blind collation", "k text collate blind, slot integer", postgresBase, words},
		{"postgres uuid", "k uuid, slot integer", postgresBase, []any{"AD4A3F6C-7B0D-4D3C-8B59-0A3B1A6B2C4D", "00000000-0000-0000-0000-000000000001"}},
		{"postgres bytea", "k bytea, slot integer", postgresBase, []any{[]byte("\x00\xff"), []byte("b")}},
		{"postgres bigint", "k bigint, slot integer", postgresBase, []any{-5, 7, 1<<53 + 1, 1 << 53}},
		{"postgres domain", "k code, slot integer", postgresBase, []any{"x", "y"}},
		{"mysql blind collation", "k varchar(20), slot int, key (k)", mysqlBase, words},
		{"mysql binary collation", "k varchar(20) collate utf8mb4_bin, slot int, key (k)", mysqlBase, words},
		{"mysql latin1", "k varchar(20) character set latin1, slot smallint unsigned, key (k)", mysqlBase, []any{"Ann", "ann", "Änn", "änn"}},
		{"mysql char", "k char(20), slot int", mysqlBase, []any{"Ann", "ann", "z"}},
		{"mysql varbinary", "k varbinary(20), slot int, key (k)", mysqlBase, []any{[]byte("\x00\xff"), []byte("b"), []byte("B")}},
		{"mysql bigint", "k bigint, slot int", mysqlBase, []any{-5, 7, 1<<53 + 1, 1 << 53}},
		{"mysql unsigned", "k bigint unsigned, slot int", mysqlBase, []any{uint64(1<<64 - 1), uint64(1<<64 - 2), 5}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := c.open(t)
			if b.Pool() != nil {
				b.exec(`create collation blind (provider = icu, locale = 'und-u-ks-level1', deterministic = false)`)
				b.exec(`create domain code as text`)
			}
			b.exec("create table t (" + c.types + ")")
			for _, k := range c.keys {
				b.insert(k, nil)
			}
			checkEach(b, c.keys)
		})
	}
}

// checkEach fills twice, and compares each row's slot with that of the text which its key is.
func checkEach(b base, keys []any) {
	b.t.Helper()
	n, err := b.fill(Target{"t", "k", "slot"})
	if err != nil || n.Written != int64(len(keys)) || n.Rows != int64(len(keys)) {
		b.t.Fatalf("got %+v (%v), want %d rows written", n, err, len(keys))
	}
	want := map[int]int{}
	for _, k := range keys {
		text := fmt.Sprintf("%s", k)
		switch k := k.(type) {
		case int, uint64:
			text = fmt.Sprint(k)
		case string:
			if strings.Contains(text, "-0") && b.Pool() != nil {
				text = strings.ToLower(k) // as Postgres writes a uuid
			}
		}
		want[ring.Slot(text)]++
	}
	for slot, rows := range want {
		if got := b.count(fmt.Sprintf("select count(*) from t where slot = %d", slot)); got != int64(rows) {
			b.t.Errorf("%d rows have slot %d, want %d", got, slot, rows)
		}
	}
	if n, err := b.fill(Target{"t", "k", "slot"}); err != nil || n.Written != 0 {
		b.t.Errorf("again: %+v (%v), want nothing written", n, err)
	}
}

// TestUnfitKeys: rows whose key no job can have are named at the end, after all others were filled.
func TestUnfitKeys(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b base) {
		b.t = t
		b.exec("create table t (k varchar(300), slot int)")
		for _, k := range []string{"", strings.Repeat("x", 256), "good"} {
			b.insert(k, nil)
		}
		n, err := b.fill(Target{"t", "k", "slot"})
		if err == nil || !strings.Contains(err.Error(), "key that no job can have") || n != (Counts{Keys: 3, Rows: 3, Written: 1, Unfit: 2}) {
			t.Errorf("got %+v, %v", n, err)
		}
	})
}

func TestSchema(t *testing.T) {
	t.Parallel()
	b := postgresBase(t)
	b.exec("create schema shop")
	b.exec(`create table shop."Customers" ("Id" text, "Slot" integer)`)
	b.exec(`insert into shop."Customers" values ('a', null)`)
	if n, err := b.fill(Target{"shop.Customers", "Id", "Slot"}); err != nil || n.Written != 1 {
		t.Errorf("got %+v, %v", n, err)
	}
	m := mysqlBase(t)
	m.exec("create table Customers (id varchar(9), slot int)")
	m.exec("insert into Customers values ('a', null)")
	var name string
	if err := m.DB().QueryRow("select database()").Scan(&name); err != nil {
		t.Fatal(err)
	}
	if n, err := m.fill(Target{name + ".Customers", "ID", "Slot"}); err != nil || n.Written != 1 {
		t.Errorf("got %+v, %v", n, err)
	}
}

// TestRefuse: what cannot be filled is refused before anything is written, with what to do.
func TestRefuse(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b base) {
		b.t = t
		b.exec("create table t (k varchar(20), slot int, small varchar(5), f real)")
		b.exec("create table f (k double precision, slot int)")
		b.exec("insert into f values (1.5, null)")
		for _, c := range []struct {
			t    Target
			want string
		}{
			{Target{"missing", "k", "slot"}, "there is no such table"},
			{Target{"t", "missing", "slot"}, `there is no column "missing"`},
			{Target{"t", "k", "missing"}, "; add it: alter table "},
			{Target{"t", "k", "small"}, "need int"},
			{Target{"f", "k", "slot"}, "of which there may be several texts"},
			{Target{"t", "k", "K"}, "the same column"},
		} {
			if _, err := b.fill(c.t); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v: got %v, want an error that says %q", c.t, err, c.want)
			}
		}
	})
}

// TestNames: no name that could end a quote, or a statement, reaches the database (S11).
func TestNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", " ", "a b", `a"b`, "a`b", "a'b", "a;b", "a--b", "a/*b", "ä", "1a", "a.b.c", ".a", "a.", "a\x00", strings.Repeat("a", 300), "t; drop table t", "a\nb"} {
		for _, target := range []Target{{name, "k", "slot"}, {"t", name, "slot"}, {"t", "k", name}} {
			if err := target.validate(); err == nil || !strings.Contains(err.Error(), "give a name of letters") {
				t.Errorf("%q: got %v", name, err)
			}
		}
	}
	if err := (Target{"shop.Customers", "_id$1", "SLOT"}).validate(); err != nil {
		t.Error(err)
	}
}
