package crontab

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// field is what a cron field takes.
type field struct {
	name      string
	low, high int
	last      int      // what * and a/n end with: 7 is another word for 0
	names     []string // of the values from low on
	allowed   string
	special   string // for the advice
}

var fields = [...]field{
	{name: "second", high: 59, last: 59, allowed: "0-59"},
	{name: "minute", high: 59, last: 59, allowed: "0-59"},
	{name: "hour", high: 23, last: 23, allowed: "0-23"},
	{name: "day of month", low: 1, high: 31, last: 31, allowed: "1-31", special: ", L, L-3, LW, 15W"},
	{
		name: "month", low: 1, high: 12, last: 12, allowed: "1-12 or JAN-DEC",
		names: []string{"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"},
	},
	{
		name: "day of week", high: 7, last: 6, allowed: "0-7 or SUN-SAT", special: ", 5L, 5#2",
		names: []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"},
	},
}

// Places in fields.
const (
	second = iota
	minute
	hour
	dom
	month
	dow
)

func (f *field) width() int { return f.last - f.low + 1 }

// advice is what a refusal ends with where nothing better is known.
func (f *field) advice() string {
	return fmt.Sprintf("write values within %s, as in a, a-b, */n, a-b/n, H%s", f.allowed, f.special)
}

// Error is what is wrong with a line, and where.
type Error struct {
	// Column of the character at fault, counted from 1.
	Column int
	// Field is such as "day of month", or "" where it is not about one field.
	Field string
	// Reason ends with what to do.
	Reason string
}

// Error names the field, if there is one, the column and the reason.
func (e *Error) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("column %d: %s", e.Column, e.Reason)
	}
	return fmt.Sprintf("%s field, column %d: %s", e.Field, e.Column, e.Reason)
}

// word is a run of characters between blanks.
type word struct {
	text   string
	column int
}

func split(text string) (words []word) {
	start := -1
	for i := 0; i <= len(text); i++ {
		switch blank := i == len(text) || strings.IndexByte(Blanks, text[i]) >= 0; {
		case blank && start >= 0:
			words = append(words, word{text[start:i], start + 1})
			start = -1
		case !blank && start < 0:
			start = i
		}
	}
	return words
}

// checkAlphabet refuses characters that no field has a use for, such as the
// dashes, blanks and digits of other alphabets.
func checkAlphabet(words []word) error {
	for i, w := range words {
		for at, c := range w.text {
			if c < utf8.RuneSelf && (isLetter(byte(c)) || isDigit(byte(c)) || strings.ContainsRune("*?,-/#()", c)) {
				continue
			}
			_, size := utf8.DecodeRuneInString(w.text[at:])
			e := &Error{Column: w.column + at}
			advice := "write five fields, such as 0 2 * * *"
			if len(words) == 5 || len(words) == 6 {
				f := &fields[i+len(fields)-len(words)]
				e.Field, advice = f.name, f.advice()
			}
			e.Reason = fmt.Sprintf("%+q has no meaning in a cron line; %s", w.text[at:at+size], advice)
			return e
		}
	}
	return nil
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
