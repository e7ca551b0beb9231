package keyfill

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// postgres takes keys as text in both directions, whatever the column's type: bytes in hexadecimal.
type postgres struct {
	pool *pgxpool.Pool
	t    Target

	table, key, slot string // quoted
	kind             string // of the key column, without its length
	text             string // the key as text, of row t
}

func newPostgres(pool *pgxpool.Pool, t Target) *postgres {
	return &postgres{pool: pool, t: t, table: quote(t.Table, `"`), key: quote(t.Key, `"`), slot: quote(t.Slot, `"`)}
}

// columnOf finds a column's type, beneath a domain.
const columnOf = `
	select coalesce(b.typname, t.typname) from pg_attribute a join pg_type t on t.oid = a.atttypid
	left join pg_type b on b.oid = t.typbasetype and t.typtype = 'd'
	where a.attrelid = $1::text::regclass and a.attname = $2 and a.attnum > 0 and not a.attisdropped`

func (p *postgres) inspect(ctx context.Context) error {
	var exists bool
	if err := p.pool.QueryRow(ctx, `select to_regclass($1) is not null`, p.table).Scan(&exists); err != nil {
		return err
	}
	if !exists {
		return errNoTable
	}
	var slot string
	err := p.pool.QueryRow(ctx, columnOf, p.table, p.t.Key).Scan(&p.kind)
	if errors.Is(err, pgx.ErrNoRows) {
		return without(p.t.Key, "")
	}
	if err == nil {
		err = p.pool.QueryRow(ctx, columnOf, p.table, p.t.Slot).Scan(&slot)
	}
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return without(p.t.Slot, fmt.Sprintf("alter table %s add column %s integer", p.table, p.slot))
	case err != nil:
		return err
	case slot != "int4" && slot != "int8":
		return fmt.Errorf("column %q is %s; slots go up to 65535 and need integer", p.t.Slot, slot)
	}
	switch p.kind {
	case "bytea":
		p.text = fmt.Sprintf("encode(t.%s, 'hex')", p.key)
	case "text", "varchar", "citext", "uuid", "int2", "int4", "int8":
		p.text = fmt.Sprintf(`(t.%s::text collate "C")`, p.key)
	default:
		return fmt.Errorf("column %q is %s, of which there may be several texts; keys are text, varchar, uuid, integer or bytea", p.t.Key, p.kind)
	}
	return nil
}

// typed is an expression of text as a value of the key column.
func (p *postgres) typed(text string) string {
	if p.kind == "bytea" {
		return fmt.Sprintf("decode(%s, 'hex')", text)
	}
	return fmt.Sprintf("(%s)::%s", text, p.kind)
}

// where is a span as a condition on row t, and its arguments from $n on.
func (p *postgres) where(s span, n int) (string, []any) {
	list, args := []string{fmt.Sprintf("t.%s is not null", p.key)}, []any(nil)
	for _, bound := range []struct {
		op    string
		value any
	}{{">", s.after}, {"<=", s.upTo}} {
		if bound.value != nil {
			args = append(args, bound.value)
			list = append(list, fmt.Sprintf("t.%s %s %s", p.key, bound.op, p.typed(fmt.Sprintf("$%d::text", n+len(args)-1))))
		}
	}
	return strings.Join(list, " and "), args
}

func (p *postgres) last(ctx context.Context, after any, n int) (any, error) {
	where, args := p.where(span{after: after}, 1)
	var key string
	err := p.pool.QueryRow(ctx, fmt.Sprintf(`select %s from %s t where %s order by t.%s offset %d limit 1`, p.text, p.table, where, p.key, n-1), args...).Scan(&key)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return key, err
}

func (p *postgres) groups(ctx context.Context, s span) ([]group, error) {
	where, args := p.where(s, 1)
	rows, err := p.pool.Query(ctx, fmt.Sprintf(`select %[1]s, count(*), count(t.%[2]s), coalesce(min(t.%[2]s), -1), coalesce(max(t.%[2]s), -1)
		from %[3]s t where %[4]s group by %[1]s`, p.text, p.slot, p.table, where), args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (group, error) {
		var text string
		var a slots
		err := row.Scan(&text, &a.rows, &a.known, &a.low, &a.high)
		g := group{key: text, value: text, rows: a.rows, right: a.are}
		if err == nil && p.kind == "bytea" {
			var raw []byte
			raw, err = hex.DecodeString(text)
			g.key = string(raw)
		}
		return g, err
	})
}

func (p *postgres) write(ctx context.Context, s span, f []fix) (int64, error) {
	keys, numbers := make([]string, len(f)), make([]int32, len(f))
	for i, x := range f {
		keys[i], numbers[i] = x.value.(string), int32(x.slot)
	}
	where, args := p.where(s, 3)
	// The span keeps the planner from reading the whole table for a page; the text keeps apart what a collation does not.
	tag, err := p.pool.Exec(ctx, fmt.Sprintf(`update %s t set %s = v.slot from unnest($1::text[], $2::int4[]) v(key, slot)
		where %s and t.%s = %s and %s = v.key and t.%s is distinct from v.slot`,
		p.table, p.slot, where, p.key, p.typed("v.key"), p.text, p.slot), append([]any{keys, numbers}, args...)...)
	return tag.RowsAffected(), err
}

// slots are what the rows of a key have.
type slots struct{ rows, known, low, high int64 }

func (s slots) are(slot int) bool {
	return s.known == s.rows && s.low == int64(slot) && s.high == int64(slot)
}
