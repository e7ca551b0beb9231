package mysql

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
)

const defaultPrefix = "belfry_"

// Statements are sent as text with their values in it, so that each is one round trip, whatever the caller's
// interpolateParams says. Strings are hexadecimal: their bytes mean the same in every charset and sql_mode, and nothing
// in them ends a literal.

// sqlText is a part of a statement that is text already.
type sqlText string

// appendValue appends the literal of a value.
func appendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, "NULL"...)
	case bool:
		if v {
			return append(b, '1')
		}
		return append(b, '0')
	case int:
		return strconv.AppendInt(b, int64(v), 10)
	case int64:
		return strconv.AppendInt(b, v, 10)
	case string:
		return appendHex(b, []byte(v))
	case []byte:
		return appendHex(b, v)
	case sqlText:
		return append(b, v...)
	}
	panic(fmt.Sprintf("mysql: no literal for %T", v))
}

func appendHex(b, v []byte) []byte {
	return append(hex.AppendEncode(append(b, "x'"...), v), '\'')
}

// render fills the values into a statement and puts the prefix where belfry_ stands.
func render(prefix, query string, args []any) string {
	if prefix != defaultPrefix {
		query = strings.ReplaceAll(query, defaultPrefix, prefix)
	}
	b := make([]byte, 0, size(query, args))
	for i := 0; i < len(query); i++ {
		if query[i] != '?' {
			b = append(b, query[i])
			continue
		}
		b = appendValue(b, args[0])
		args = args[1:]
	}
	if len(args) > 0 {
		panic("mysql: more values than marks in " + query)
	}
	return string(b)
}

// size is about how long a statement gets, and not less.
func size(query string, args []any) int {
	n := len(query) + 32*len(args)
	for _, v := range args {
		switch v := v.(type) {
		case string:
			n += 2 * len(v)
		case []byte:
			n += 2 * len(v)
		case sqlText:
			n += len(v)
		}
	}
	return n
}

// rows are the rows of one statement: parts of its text that may have to be sent in more than one packet. They form a
// list, or, where or is set, a condition of which one is to hold.
type rows struct {
	text []byte
	ends []int
	or   bool
}

// between is what separates rows.
func (r *rows) between() string {
	if r.or {
		return " OR "
	}
	return ","
}

// next begins a row, and end ends it.
func (r *rows) next() {
	if len(r.ends) > 0 {
		r.text = append(r.text, r.between()...)
	}
}

func (r *rows) end() { r.ends = append(r.ends, len(r.text)) }

// add adds a row of values.
func (r *rows) add(values ...any) {
	r.next()
	r.text = append(r.text, '(')
	for i, v := range values {
		if i > 0 {
			r.text = append(r.text, ',')
		}
		r.text = appendValue(r.text, v)
	}
	r.text = append(r.text, ')')
	r.end()
}

// value adds a bare value, for a list.
func (r *rows) value(v any) {
	r.next()
	r.text = appendValue(r.text, v)
	r.end()
}

// whole are all rows at once.
func (r *rows) whole() (all sqlText) {
	_ = r.packets(math.MaxInt, func(part sqlText) error { // whose yield answers no error
		all = part
		return nil
	})
	return all
}

// termBytes is how long a condition over many keys may get before another begins.
const termBytes = 16 << 10

// point names a row by a key and the condition that it shares with others; fence is 0, or what the row is to have.
type point struct {
	rest  string
	key   string
	fence int64
}

// points are conditions for n rows, one for neighbours that share the rest. Each point is one look-up in an index that
// has all the columns, whatever a planner thinks of it.
func points(n int, at func(i int) point) *rows {
	r := &rows{or: true}
	var fences []byte // with the keys that they belong to
	open, start := "", 0
	end := func() {
		r.text = append(r.text, ')')
		if len(fences) > 0 {
			r.text = append(append(append(r.text, " AND (run_key, fence) IN ("...), fences...), ')')
			fences = fences[:0]
		}
		r.text = append(r.text, ')')
		r.end()
	}
	for i := range n {
		p := at(i)
		if i == 0 || p.rest != open || len(r.text)-start > termBytes {
			if i > 0 {
				end()
			}
			r.next()
			open, start = p.rest, len(r.text)
			r.text = append(append(append(r.text, '('), open...), " AND run_key IN ("...)
		} else {
			r.text = append(r.text, ',')
		}
		r.text = appendValue(r.text, p.key)
		if p.fence != 0 {
			fences = appendFence(fences, p)
		}
	}
	if n > 0 {
		end()
	}
	return r
}

func appendFence(b []byte, p point) []byte {
	if len(b) > 0 {
		b = append(b, ',')
	}
	b = append(appendValue(append(b, '('), p.key), ',')
	return append(appendValue(b, p.fence), ')')
}

// packets yields the rows in parts of at most so many bytes. A row that is longer is a part of its own.
func (r *rows) packets(most int, yield func(sqlText) error) error {
	start, end := 0, 0
	for _, e := range r.ends {
		if end > start && e-start > most {
			if err := yield(sqlText(r.text[start:end])); err != nil {
				return err
			}
			start = end + len(r.between())
		}
		end = e
	}
	if end == start {
		return nil
	}
	return yield(sqlText(r.text[start:end]))
}
