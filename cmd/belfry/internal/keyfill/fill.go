// Package keyfill writes the slot of each key into a column of the user's own table, so that a KeySource can ask the
// table for the keys of some partitions.
package keyfill

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/belfry-go/belfry/cmd/belfry/internal/storeurl"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/ring"
)

// pageSize is how many rows are looked at in one query, and at most written by one statement.
const pageSize = 1000

// Target says where keys are, and where their slots go.
type Target struct {
	Table string // NAME or SCHEMA.NAME
	Key   string // column
	Slot  string // column
}

// Counts are what was done so far.
type Counts struct {
	Keys    int64 // distinct keys looked at
	Rows    int64 // rows that have them
	Written int64 // rows whose slot was missing or wrong
	Unfit   int64 // rows whose key no job can have
}

// group is the rows of one key.
type group struct {
	key   string
	value any // the key as the database takes it back
	rows  int64
	right func(slot int) bool // all rows have this slot
}

// span is a stretch of the table in the order of its key column: above after, up to upTo; nil is no bound.
type span struct{ after, upTo any }

// fix is a key whose rows get a slot.
type fix struct {
	key   string
	value any
	slot  int
}

// table is the target in one database. Keys come in the column's own order, whatever its collation: a span is cut by
// the database and holds all rows of each key in it, also of keys that the collation takes for equal.
type table interface {
	// inspect refuses columns that are missing or of a type that cannot do.
	inspect(ctx context.Context) error
	// last is the key n rows above after; nil where there are not as many.
	last(ctx context.Context, after any, n int) (any, error)
	groups(ctx context.Context, s span) ([]group, error)
	// write returns how many rows had another slot.
	write(ctx context.Context, s span, f []fix) (int64, error)
}

// Fill writes ring.Slot of the key into the slot column of all rows where it is missing or wrong, a page at a time, each
// in a transaction of its own, and calls tell after each. Done again, also after it was broken off, it looks at all rows
// and writes only what is not right yet. Rows without a key are left alone. Keys that no job can have, empty or too
// long, are an error at the end.
func Fill(ctx context.Context, c *storeurl.Client, t Target, tell func(Counts)) (Counts, error) {
	var n Counts
	if err := t.validate(); err != nil {
		return n, err
	}
	tab := open(c, t)
	if err := tab.inspect(ctx); err != nil {
		return n, fmt.Errorf("keys: table %q: %w", t.Table, err)
	}
	var unfit error
	for s := (span{}); ; s.after = s.upTo {
		var err error
		if s.upTo, err = tab.last(ctx, s.after, pageSize); err != nil {
			return n, fmt.Errorf("keys: table %q: %w", t.Table, err)
		}
		if err := n.fillSpan(ctx, tab, s, &unfit); err != nil {
			return n, fmt.Errorf("keys: table %q: %w", t.Table, err)
		}
		tell(n)
		if s.upTo == nil {
			return n, unfit
		}
	}
}

func (n *Counts) fillSpan(ctx context.Context, t table, s span, unfit *error) error {
	groups, err := t.groups(ctx, s)
	if err != nil {
		return err
	}
	var fixes []fix
	for _, g := range groups {
		n.Keys++
		n.Rows += g.rows
		if err := jobs.ValidateKey(g.key); err != nil {
			n.Unfit += g.rows
			if *unfit == nil {
				*unfit = fmt.Errorf("keys: some rows have a key that no job can have, and got no slot: %.40q: %w", g.key, err)
			}
			continue
		}
		if slot := ring.Slot(g.key); !g.right(slot) {
			fixes = append(fixes, fix{g.key, g.value, slot})
		}
	}
	if len(fixes) == 0 {
		return nil
	}
	written, err := t.write(ctx, s, fixes)
	n.Written += written
	return err
}

func open(c *storeurl.Client, t Target) table {
	switch c.URL().Kind() {
	case storeurl.Postgres:
		return newPostgres(c.Pool(), t)
	case storeurl.MySQL:
		return newMySQL(c.DB(), t)
	default:
		return newSQLite(c.DB(), t)
	}
}

// identifier is what a table's or column's name may be. It is quoted all the same.
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_$]{0,62}$`)

func (t Target) validate() error {
	var errs []error
	for _, f := range []struct{ flag, value, example string }{
		{"table", t.Table, "customers"}, {"key", t.Key, "id"}, {"slot", t.Slot, "slot"},
	} {
		names := []string{f.value}
		if f.flag == "table" {
			names = strings.SplitN(f.value, ".", 2)
		}
		for _, name := range names {
			if !identifier.MatchString(name) {
				errs = append(errs, fmt.Errorf("keys: --%s %.80q: give a name of letters, digits, _ and $, such as %s", f.flag, f.value, f.example))
				break
			}
		}
	}
	if len(errs) == 0 && strings.EqualFold(t.Key, t.Slot) {
		errs = append(errs, fmt.Errorf("keys: --key and --slot are the same column, %q", t.Key))
	}
	return errors.Join(errs...)
}

// quote quotes each part of a name that validate took.
func quote(name, by string) string {
	return by + strings.ReplaceAll(name, ".", by+"."+by) + by
}

// schema splits a table's name; the schema may be "".
func (t Target) split() (schema, name string) {
	if schema, name, ok := strings.Cut(t.Table, "."); ok {
		return schema, name
	}
	return "", t.Table
}

// without is the error for a column that is not there.
func without(column, hint string) error {
	if hint != "" {
		hint = "; add it: " + hint
	}
	return fmt.Errorf("there is no column %q%s", column, hint)
}

var errNoTable = errors.New("there is no such table; names are taken as they are written, in upper and lower case")
