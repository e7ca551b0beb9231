package keyfill

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/belfry-go/belfry/cmd/belfry/internal/storeurl"
	"github.com/belfry-go/belfry/internal/testservers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testservers.Main(m)) }

// base is one database of a test.
type base struct {
	*storeurl.Client
	t *testing.T
}

func connect(t *testing.T, text string) base {
	t.Helper()
	u, err := storeurl.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	c, err := storeurl.Connect(t.Context(), u)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return base{c, t}
}

func sqliteBase(t *testing.T) base {
	path := filepath.Join(t.TempDir(), "app.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return connect(t, "sqlite:"+path)
}

func postgresBase(t *testing.T) base { return connect(t, testservers.Postgres(t).Database(t).URL()) }
func mysqlBase(t *testing.T) base    { return connect(t, testservers.MariaDB(t).Database(t).URL()) }

// each runs a test on every kind of database.
func each(t *testing.T, test func(*testing.T, base)) {
	for kind, open := range map[storeurl.Kind]func(*testing.T) base{
		storeurl.SQLite: sqliteBase, storeurl.Postgres: postgresBase, storeurl.MySQL: mysqlBase,
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

func (b base) exec(statement string, args ...any) {
	b.t.Helper()
	var err error
	if b.Pool() != nil {
		_, err = b.Pool().Exec(context.Background(), statement, args...)
	} else {
		_, err = b.DB().Exec(statement, args...)
	}
	if err != nil {
		b.t.Fatalf("%s: %v", statement, err)
	}
}

// insert adds a row (key, slot) to table t; the columns are the table's first two.
func (b base) insert(key, slot any) {
	b.t.Helper()
	marks := "?, ?"
	if b.Pool() != nil {
		marks = "$1, $2"
	}
	b.exec("insert into t values ("+marks+")", key, slot)
}

func (b base) count(query string) (n int64) {
	b.t.Helper()
	var err error
	if b.Pool() != nil {
		err = b.Pool().QueryRow(context.Background(), query).Scan(&n)
	} else {
		err = b.DB().QueryRow(query).Scan(&n)
	}
	if err != nil {
		b.t.Fatalf("%s: %v", query, err)
	}
	return n
}

func (b base) fill(t Target) (Counts, error) {
	return Fill(b.t.Context(), b.Client, t, func(Counts) {})
}

func (b base) mustFill(want Counts) {
	b.t.Helper()
	got, err := b.fill(Target{"t", "k", "slot"})
	if err != nil || got != want {
		b.t.Fatalf("got %+v (%v), want %+v", got, err, want)
	}
}

// bulk is how many numbered keys addBulk adds: some pages, and not a whole number of them.
const bulk = 2*pageSize + 300

// bulkKey is the i-th of them.
func bulkKey(i int) string { return fmt.Sprintf("c-%06d", i) }

// addBulk adds numbered keys in one statement; convert makes a key of the number i.
func (b base) addBulk(convert string) {
	b.t.Helper()
	switch b.URL().Kind() {
	case storeurl.Postgres:
		b.exec(fmt.Sprintf("insert into t select %s, null from generate_series(1, %d) i", convert, bulk))
	default:
		// Two short recursions: a long one is beyond MariaDB's bound.
		b.exec(fmt.Sprintf("insert into t with recursive n(x) as (select 0 union all select x+1 from n where x < 99), m(i) as (select 1 + a.x + 100*b.x from n a join n b) select %s, null from m where i <= %d", convert, bulk))
	}
}
