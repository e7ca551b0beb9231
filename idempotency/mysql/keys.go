package mysql

import (
	"context"
	"database/sql"
	"errors"
	"regexp"
	"strconv"
	"strings"

	"github.com/belfry-go/belfry/idempotency/internal/keyset"
	"github.com/belfry-go/belfry/jobs"
)

// bytewise is what makes a comparison or an order one of bytes.
var bytewise = regexp.MustCompile(`(?i)\bbinary\b|_bin\b`)

// errOneSide is about a query whose pages would begin elsewhere than the page before ended.
var errOneSide = errors.New(`the query says binary for the comparison or for the order, and not for both; it would lose keys: "where cast(id as binary) > ? order by cast(id as binary)"`)

var errMarks = errors.New(`the query has to have three marks, in this order: "where slot in (?) and id > ? order by id limit ?"`)

// Keys is the KeySource of a table that has each key's slot stored beside it, as
// ring.Slot tells it. The query is asked for one page after another:
//
//	select id from customers
//	where slot in (?) and id > ? order by id limit ?
//
// The first mark becomes the list of the slots that are wanted, the second is
// the key that the page comes after, the third how many keys a page has; the
// query has no other ?. Since slots do not depend on the number of partitions,
// that may change. The column of the slots and its index are
//
//	slot int not null check (slot between 0 and 65535),
//	key (slot, id)
//
// and is written with each row: a row with another slot than its key's is an
// error of the stream that reads it.
//
// Keys are compared and ordered by their bytes: the column is varbinary(255), or of a collation that does the same,
// such as ascii_bin where no key ends with a space. The default collations take "a", "A" and "á" for one. Numbers are
// cast, on both sides: "cast(id as binary) > ?". A query that orders in another way is an error
// too, which names the key, and so is one that says binary once; but one that compares by one collation of its own and
// orders by another may lose keys, which nobody can see.
//
// db is the application's and stays so; it is of the primary, and may be of
// another database than the store's. A page is read whole and takes a minute at
// most, and no connection is held between two. A list of all slots has 382 kB,
// which max_allowed_packet has to allow. What is wrong with db or the query
// comes as the stream's error.
func Keys(db *sql.DB, query string) jobs.KeySource {
	return &keyset.Source{
		Driver:   "mysql",
		Bytewise: `make the column varbinary(255), or cast it on both sides: "where cast(id as binary) > ? order by cast(id as binary)"`,
		Over: func(slots []int32) (keyset.Read, error) {
			switch {
			case db == nil:
				return nil, errors.New("the *sql.DB is nil; give it the application's own")
			case strings.Count(query, "?") != 3:
				return nil, errMarks
			case len(bytewise.FindAllString(query, 2)) == 1:
				return nil, errOneSide
			}
			filled := strings.Replace(query, "?", commas(slots), 1)
			return func(ctx context.Context, after string, limit int) ([]*string, error) {
				return keyset.Query(ctx, db, filled, after, limit)
			}, nil
		},
	}
}

// commas is numbers as SQL has them in an IN.
func commas(slots []int32) string {
	b := make([]byte, 0, 6*len(slots))
	for i, s := range slots {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(s), 10)
	}
	return string(b)
}
