package keyset

import (
	"context"
	"database/sql"
	"errors"
)

// ErrColumns is of a query that does not return one column.
var ErrColumns = errors.New("it has to select one column, the key")

// Query reads one page by database/sql. The rows are closed when it returns.
func Query(ctx context.Context, db *sql.DB, query string, args ...any) (keys []*string, err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	if columns, err := rows.Columns(); err != nil {
		return nil, err
	} else if len(columns) != 1 {
		return nil, ErrColumns
	}
	for rows.Next() {
		var key *string
		if err := rows.Scan(&key); err != nil {
			return nil, err
		}
		if keys = append(keys, key); len(keys) > pageSize {
			return keys, nil // too many already, and perhaps all of a large table
		}
	}
	return keys, rows.Err()
}
