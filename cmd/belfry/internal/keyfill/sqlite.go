package keyfill

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

// sqlite takes keys as the values that they are: in SQLite each row has a type of its own.
type sqlite struct {
	db *sql.DB
	t  Target

	table, key, slot string // quoted
}

func newSQLite(db *sql.DB, t Target) *sqlite {
	return &sqlite{db: db, t: t, table: quote(t.Table, `"`), key: quote(t.Key, `"`), slot: quote(t.Slot, `"`)}
}

func (l *sqlite) inspect(ctx context.Context) error {
	schema, name := l.t.split()
	if schema == "" {
		schema = "main"
	}
	rows, err := l.db.QueryContext(ctx, `select lower(name), upper(type) from pragma_table_info(?, ?)`, name, schema)
	if err != nil {
		return err
	}
	defer rows.Close()
	types := map[string]string{}
	for rows.Next() {
		var column, kind string
		if err := rows.Scan(&column, &kind); err != nil {
			return err
		}
		types[column] = kind
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if len(types) == 0 {
		return errNoTable
	}
	if _, ok := types[strings.ToLower(l.t.Key)]; !ok {
		return without(l.t.Key, "")
	}
	kind, ok := types[strings.ToLower(l.t.Slot)]
	if !ok {
		return without(l.t.Slot, fmt.Sprintf("alter table %s add column %s integer", l.table, l.slot))
	}
	if !strings.Contains(kind, "INT") { // what SQLite stores numbers for
		return fmt.Errorf("column %q is %q; slots need integer", l.t.Slot, kind)
	}
	return nil
}

func (l *sqlite) where(s span) (string, []any) {
	list, args := []string{l.key + " is not null"}, []any(nil)
	if s.after != nil {
		list, args = append(list, l.key+" > ?"), append(args, s.after)
	}
	if s.upTo != nil {
		list, args = append(list, l.key+" <= ?"), append(args, s.upTo)
	}
	return strings.Join(list, " and "), args
}

// value is the key without its column's declared type, by which the driver would make a date of it.
func (l *sqlite) value() string { return "+" + l.key }

func (l *sqlite) last(ctx context.Context, after any, n int) (key any, err error) {
	where, args := l.where(span{after: after})
	err = l.db.QueryRowContext(ctx, fmt.Sprintf(`select %s from %s where %s order by %s limit 1 offset %d`, l.value(), l.table, where, l.key, n-1), args...).Scan(&key)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return key, err
}

func (l *sqlite) groups(ctx context.Context, s span) ([]group, error) {
	where, args := l.where(s)
	rows, err := l.db.QueryContext(ctx, fmt.Sprintf(`select cast(%[1]s as blob), %[2]s, typeof(%[1]s), count(*), count(%[3]s), coalesce(min(%[3]s), -1), coalesce(max(%[3]s), -1)
		from %[4]s where %[5]s group by cast(%[1]s as blob), typeof(%[1]s)`, l.key, l.value(), l.slot, l.table, where), args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []group
	for rows.Next() {
		var g group
		var key []byte
		var kind string
		var a slots
		if err := rows.Scan(&key, &g.value, &kind, &a.rows, &a.known, &a.low, &a.high); err != nil {
			return nil, err
		}
		if kind == "real" {
			return nil, fmt.Errorf("a row has the key %s, a fraction, of which there may be several texts; keys are text, integers or blobs", key)
		}
		g.key, g.rows, g.right = string(key), a.rows, a.are
		list = append(list, g)
	}
	return list, rows.Err()
}

func (l *sqlite) write(ctx context.Context, _ span, f []fix) (n int64, err error) {
	tx, err := l.db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback()
	// The bytes keep apart what a collation does not.
	update, err := tx.PrepareContext(ctx, fmt.Sprintf(`update %[1]s set %[2]s = ? where %[3]s = ? and cast(%[3]s as blob) = ? and %[2]s is not ?`, l.table, l.slot, l.key))
	if err != nil {
		return 0, err
	}
	defer update.Close()
	for _, x := range f {
		result, err := update.ExecContext(ctx, x.slot, x.value, []byte(x.key), x.slot)
		if err != nil {
			return 0, err
		}
		changed, err := result.RowsAffected()
		if n += changed; err != nil {
			return 0, err
		}
	}
	if err := tx.Commit(); err != nil {
		return 0, err
	}
	return n, nil
}
