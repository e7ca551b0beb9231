package demo

import (
	"context"
	"fmt"
	"strings"

	"github.com/belfry-go/belfry/cmd/belfry/internal/storeurl"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/ring"
)

// book is the table of the customers, in the store's own database, as a service keeps both. A slot is stored beside
// each customer, so that a replica's query finds its own.
type book struct {
	client *storeurl.Client
	table  string
}

func customer(i int) string { return fmt.Sprintf("c-%06d", i) }

// tables are how the table is made: its keys compare by their bytes.
var tables = map[storeurl.Kind]string{
	storeurl.SQLite:   `create table %s (id text primary key, slot integer not null) without rowid`,
	storeurl.Postgres: `create table %s (id text collate "C" primary key, slot integer not null)`,
	storeurl.MySQL:    `create table %s (id varchar(32) character set ascii collate ascii_bin primary key, slot int not null)`,
}

// fill makes the table of n customers.
func (b book) fill(ctx context.Context, n int) error {
	if err := b.client.Exec(ctx, fmt.Sprintf(tables[b.client.URL().Kind()], b.table)); err != nil {
		return fmt.Errorf("demo: customers: %w", err)
	}
	const most = 1000 // in a statement
	for from := 1; from <= n; from += most {
		var rows []string
		for i := from; i <= min(n, from+most-1); i++ {
			rows = append(rows, fmt.Sprintf("('%s', %d)", customer(i), ring.Slot(customer(i))))
		}
		if err := b.client.Exec(ctx, fmt.Sprintf("insert into %s (id, slot) values %s", b.table, strings.Join(rows, ", "))); err != nil {
			return fmt.Errorf("demo: customers: %w", err)
		}
	}
	return nil
}

// drop drops the table, if it is there.
func (b book) drop(ctx context.Context) error {
	return b.client.Exec(ctx, "drop table if exists "+b.table)
}

// keys reads the customers of some partitions, ascending, page by page: no query stays open while they are claimed.
func (b book) keys() jobs.KeySource { return b.client.Keys(b.table, "id", "slot") }
