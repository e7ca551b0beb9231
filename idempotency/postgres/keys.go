package postgres

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/belfry-go/belfry/idempotency/internal/keyset"
	"github.com/belfry-go/belfry/jobs"
)

// Keys is the KeySource of a table that has each key's slot stored beside it, as
// ring.Slot tells it. The query is asked for one page after another:
//
//	select id from customers
//	where slot = any($1) and id collate "C" > $2
//	order by id collate "C" limit $3
//
// $1 is an int[] of the slots that are wanted, $2 the key that the page comes
// after, $3 how many keys a page has. Since slots do not depend on the number
// of partitions, that may change. The column of the slots and its index are
//
//	slot integer not null check (slot between 0 and 65535)
//	create index on customers (slot, id collate "C")
//
// and is written with each row: a row with another slot than its key's is an
// error of the stream that reads it. An index on (id collate "C"), or a column
// with that collation as its primary key, lets a replica that owns much of a
// large table read it page by page instead of sorting it for each.
//
// Keys are text, and are compared and ordered by their bytes: by collate "C",
// with other types cast to text on both sides. A query that orders in another
// way is an error too, which names the key, and so is one that says collate "C"
// once; but one that compares by one collation of its own and orders by another
// may lose keys, which nobody can see.
//
// p is the application's and stays so; it is of the primary, and may be of
// another database than the store's. A page is read whole and takes a minute at
// most, and no connection is held between two. What is wrong with p or the
// query comes as the stream's error.
func Keys(p *pgxpool.Pool, query string) jobs.KeySource {
	return &keyset.Source{
		Driver:   "postgres",
		Bytewise: `use collate "C" on both sides, and cast other types to text: "where id collate \"C\" > $2 order by id collate \"C\""`,
		Over: func(slots []int32) (keyset.Read, error) {
			if p == nil {
				return nil, errors.New("the pool is nil; give it the application's own")
			}
			if strings.Count(strings.ToLower(query), `collate "c"`) == 1 {
				return nil, errOneSide
			}
			return func(ctx context.Context, after string, limit int) ([]*string, error) {
				rows, err := p.Query(ctx, query, slots, after, limit)
				if err != nil {
					return nil, err
				}
				defer rows.Close()
				return page(rows, limit)
			}, nil
		},
	}
}

// errOneSide is about a query whose pages would begin elsewhere than the page before ended.
var errOneSide = errors.New(`the query says collate "C" for the comparison or for the order, and not for both; it would lose keys: "where id collate \"C\" > $2 order by id collate \"C\""`)

// page reads the keys of one page, and one more where there are too many.
func page(rows pgx.Rows, limit int) (keys []*string, err error) {
	for rows.Next() && len(keys) <= limit {
		var key *string
		if err := rows.Scan(&key); err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	rows.Close()
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if len(rows.FieldDescriptions()) != 1 {
		return nil, keyset.ErrColumns
	}
	return keys, nil
}
