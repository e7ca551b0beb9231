package mysql

import (
	"encoding/hex"
	"fmt"
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
	b := make([]byte, 0, len(query)+16*len(args))
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

// rows are the rows of one statement: parts of its text that may have to be sent in more than one packet.
type rows struct {
	text []byte
	ends []int
}

// add adds a row of values.
func (r *rows) add(values ...any) {
	r.text = append(r.text, '(')
	for i, v := range values {
		if i > 0 {
			r.text = append(r.text, ',')
		}
		r.text = appendValue(r.text, v)
	}
	r.text = append(r.text, ')')
	r.ends = append(r.ends, len(r.text))
}

// packets yields the rows, separated by commas, in parts of at most so many bytes. A row that is longer is a part of
// its own.
func (r *rows) packets(most int, yield func(sqlText) error) error {
	var part []byte
	start := 0
	for _, end := range r.ends {
		if len(part) > 0 && len(part)+end-start+1 > most {
			if err := yield(sqlText(part)); err != nil {
				return err
			}
			part = part[:0]
		}
		if len(part) > 0 {
			part = append(part, ',')
		}
		part = append(part, r.text[start:end]...)
		start = end
	}
	if len(part) == 0 {
		return nil
	}
	return yield(sqlText(part))
}
