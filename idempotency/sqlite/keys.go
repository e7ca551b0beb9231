package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"math"

	"github.com/belfry-go/belfry/idempotency/internal/keyset"
	"github.com/belfry-go/belfry/jobs"
)

var errNumbers = errors.New(`the keys are numbers; cast them to text: "where cast(id as text) > ?2 order by cast(id as text)"`)

// Keys is the KeySource of a table that has each key's slot stored beside it, as
// ring.Slot tells it. The query is asked for one page after another:
//
//	select id from customers
//	where slot in (select value from json_each(?1)) and id > ?2
//	order by id limit ?3
//
// ?1 is a JSON array of the slots that are wanted, ?2 the key that the page
// comes after, ?3 how many keys a page has. Since slots do not depend on the
// number of partitions, that may change. The column of the slots is
//
//	slot integer not null check (slot between 0 and 65535)
//
// and is written with each row: a row with another slot than its key's is an
// error of the stream that reads it.
//
// Keys are text, and are compared and ordered by their bytes: the column has no
// collation but binary, and numbers are cast to text on both sides. A query
// that breaks this is an error too, which names the key.
//
// Without an index on slot, a page is a stretch of the primary key, of which
// the keys of others are left out: that is what the few replicas of one host
// want. With an index on (slot, id) SQLite reads and sorts all that is wanted
// for each page; write "+slot in (…)" to keep it from that.
//
// db is the application's and stays so; it may be of another file than the
// store's. A page is read whole and takes a minute at most, and no connection
// is held between two. What is wrong with db or the query comes as the
// stream's error.
func Keys(db *sql.DB, query string) jobs.KeySource {
	return &keyset.Source{
		Driver:   "sqlite",
		Bytewise: `use no other collation than binary, and cast numbers to text: "where id > ?2 collate binary order by id collate binary"`,
		Over: func(slots []int32) (keyset.Read, error) {
			if db == nil {
				return nil, errors.New("the *sql.DB is nil; give it the application's own")
			}
			wanted, err := json.Marshal(slots)
			if err != nil {
				return nil, err
			}
			return func(ctx context.Context, after string, limit int) (keys []*string, err error) {
				keys, err = keyset.Query(ctx, db, query, string(wanted), after, limit)
				if err != nil || len(keys) > 0 || after != "" {
					return keys, err
				}
				// No number is greater than a text, so that a column of numbers seems to be empty.
				keys, err = keyset.Query(ctx, db, query, string(wanted), math.MinInt64, limit)
				if err == nil && len(keys) > 0 {
					err = errNumbers
				}
				return nil, err
			}, nil
		},
	}
}
