package keyfill

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// mySQL takes keys as bytes: those of UTF-8 where the column is text, of decimal digits where it is a number.
type mySQL struct {
	db *sql.DB
	t  Target

	table, key, slot string // quoted
	number, unsigned bool   // the key column
	bytes            string // the key as bytes
}

func newMySQL(db *sql.DB, t Target) *mySQL {
	return &mySQL{db: db, t: t, table: quote(t.Table, "`"), key: quote(t.Key, "`"), slot: quote(t.Slot, "`")}
}

var (
	textTypes   = []string{"char", "varchar", "tinytext", "text", "mediumtext", "longtext", "uuid"}
	binaryTypes = []string{"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"}
	numberTypes = []string{"tinyint", "smallint", "mediumint", "int", "bigint"}
)

func (m *mySQL) inspect(ctx context.Context) error {
	columns, err := m.columns(ctx)
	if err != nil {
		return err
	}
	key, ok := columns[strings.ToLower(m.t.Key)]
	if !ok {
		return without(m.t.Key, "")
	}
	slot, ok := columns[strings.ToLower(m.t.Slot)]
	if !ok {
		return without(m.t.Slot, fmt.Sprintf("alter table %s add column %s int", m.table, m.slot))
	}
	if !slices.Contains([]string{"mediumint", "int", "bigint"}, slot.kind) && !(slot.kind == "smallint" && slot.unsigned) {
		return fmt.Errorf("column %q is %s; slots go up to 65535 and need int or smallint unsigned", m.t.Slot, slot.kind)
	}
	m.number, m.unsigned = slices.Contains(numberTypes, key.kind), key.unsigned
	switch {
	case slices.Contains(binaryTypes, key.kind):
		m.bytes = m.key
	case m.number || slices.Contains(textTypes, key.kind):
		m.bytes = fmt.Sprintf("cast(convert(%s using utf8mb4) as binary)", m.key)
	default:
		return fmt.Errorf("column %q is %s, of which there may be several texts; keys are char, varchar, text, binary or integer", m.t.Key, key.kind)
	}
	return nil
}

type column struct {
	kind     string
	unsigned bool
}

// columns are the table's, by their names in lower case, which is how they are told apart.
func (m *mySQL) columns(ctx context.Context) (map[string]column, error) {
	schema, name := m.t.split()
	rows, err := m.db.QueryContext(ctx, `select lower(column_name), lower(data_type), lower(column_type) like '%unsigned%'
		from information_schema.columns where table_schema = coalesce(nullif(?, ''), database()) and table_name = ?`, schema, name)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found := map[string]column{}
	for rows.Next() {
		var name string
		var c column
		if err := rows.Scan(&name, &c.kind, &c.unsigned); err != nil {
			return nil, err
		}
		found[name] = c
	}
	if len(found) == 0 && rows.Err() == nil {
		return nil, errNoTable
	}
	return found, rows.Err()
}

// typed is a key as the column's type: a number sent as text may be compared as a float. A text is sent in the
// connection's UTF-8, and the server reads it in the column's own character set and collation, so that its index serves.
func (m *mySQL) typed(key []byte) (any, error) {
	switch {
	case !m.number:
		return key, nil
	case m.unsigned:
		return strconv.ParseUint(string(key), 10, 64)
	}
	return strconv.ParseInt(string(key), 10, 64)
}

func (m *mySQL) where(s span) (string, []any) {
	list, args := []string{m.key + " is not null"}, []any(nil)
	if s.after != nil {
		list, args = append(list, m.key+" > ?"), append(args, s.after)
	}
	if s.upTo != nil {
		list, args = append(list, m.key+" <= ?"), append(args, s.upTo)
	}
	return strings.Join(list, " and "), args
}

func (m *mySQL) last(ctx context.Context, after any, n int) (any, error) {
	where, args := m.where(span{after: after})
	var key []byte
	err := m.db.QueryRowContext(ctx, fmt.Sprintf(`select %s from %s where %s order by %s limit %d, 1`, m.bytes, m.table, where, m.key, n-1), args...).Scan(&key)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return m.typed(key)
}

func (m *mySQL) groups(ctx context.Context, s span) ([]group, error) {
	where, args := m.where(s)
	rows, err := m.db.QueryContext(ctx, fmt.Sprintf("select %[1]s, count(*), count(%[2]s), coalesce(min(%[2]s), -1), coalesce(max(%[2]s), -1) from %[3]s where %[4]s group by %[1]s",
		m.bytes, m.slot, m.table, where), args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []group
	for rows.Next() {
		var key []byte
		var a slots
		if err := rows.Scan(&key, &a.rows, &a.known, &a.low, &a.high); err != nil {
			return nil, err
		}
		value, err := m.typed(key)
		if err != nil {
			return nil, err
		}
		list = append(list, group{key: string(key), value: value, rows: a.rows, right: a.are})
	}
	return list, rows.Err()
}

// write looks rows up by their keys, and tells them apart by the bytes, which a collation may not.
func (m *mySQL) write(ctx context.Context, _ span, f []fix) (n int64, err error) {
	const most = 250 // the server compares each row with each of them
	for part := range slices.Chunk(f, most) {
		var args, keys []any
		for _, x := range part {
			args = append(args, []byte(x.key), x.slot)
			keys = append(keys, x.value)
		}
		marks := strings.TrimSuffix(strings.Repeat("?,", len(part)), ",")
		result, err := m.db.ExecContext(ctx, fmt.Sprintf("update %[1]s set %[2]s = case %[3]s %[4]s else %[2]s end where %[5]s in (%[6]s)",
			m.table, m.slot, m.bytes, strings.Repeat("when ? then ? ", len(part)), m.key, marks), append(args, keys...)...)
		if err != nil {
			return n, err
		}
		changed, err := result.RowsAffected()
		if n += changed; err != nil {
			return n, err
		}
	}
	return n, nil
}
