package crontab

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// lexer reads one member. at is the place of the next byte.
type lexer struct {
	*field
	text    string // upper case
	written string // as the user did, for refusals
	column  int    // of the text's first byte
	at      int
}

// fail is the refusal of the whole member or, with a place, of what is there.
func (l *lexer) fail(at int, format string, args ...any) error {
	return &Error{l.column + at, l.name, fmt.Sprintf("%q ", Shown(l.written, 40)) + fmt.Sprintf(format, args...)}
}

// Shown is as much of a text, which may be anybody's input, as an error shows: so many bytes once it is quoted.
func Shown(text string, most int) string {
	quoted := 0
	for i := 0; i < len(text); {
		_, size := utf8.DecodeRuneInString(text[i:])
		if quoted += len(strconv.Quote(text[i:i+size])) - 2; quoted > most {
			return text[:i] + "…"
		}
		i += size
	}
	return text
}

// unexpected is the refusal of the next byte, or of the end.
func (l *lexer) unexpected(why string) error {
	if l.at == len(l.text) {
		return l.fail(l.at, "ends %s; %s", why, l.advice())
	}
	return l.fail(l.at, "has %q %s; %s", l.written[l.at], why, l.advice())
}

func (l *lexer) take(c byte) bool {
	if l.at < len(l.text) && l.text[l.at] == c {
		l.at++
		return true
	}
	return false
}

func (l *lexer) end() error {
	if l.at == len(l.text) {
		return nil
	}
	return l.unexpected("after what is complete without it")
}

// step reads a step, if there is one. It must be narrower than what it steps through.
func (l *lexer) step(width int, whole string) (n int, err error) {
	if !l.take('/') {
		return 0, nil
	}
	begin := l.at
	if n, err = l.digits(); err != nil {
		return n, err
	}
	switch {
	case n == 0:
		return n, l.fail(begin, "has a step of 0, which stands still; write 1 to %d (values: %s)", max(width-1, 1), l.allowed)
	case n >= width:
		return n, l.fail(begin, "has a step of %.20s, as wide as the %d values of %s or wider, so it would not be what it says; "+
			"write a smaller one (values: %s), or use @every for an interval", l.text[begin:l.at], width, whole, l.allowed)
	}
	return n, nil
}

// digits reads a number of one or two digits; more make it 100, which nothing allows.
func (l *lexer) digits() (n int, err error) {
	begin := l.at
	for l.at < len(l.text) && isDigit(l.text[l.at]) {
		n = min(10*n+int(l.text[l.at]-'0'), 100)
		l.at++
	}
	switch {
	case l.at == begin:
		return 0, l.unexpected("where a number is due")
	case l.at-begin > 2:
		return 100, nil
	}
	return n, nil
}

// number reads a value of the field, as a number or as a name.
func (l *lexer) number() (n int, err error) {
	begin := l.at
	for i, name := range l.names {
		if strings.HasPrefix(l.text[begin:], name) {
			l.at += len(name)
			return l.low + i, nil
		}
	}
	if begin < len(l.text) && isLetter(l.text[begin]) {
		return 0, l.letter()
	}
	if n, err = l.digits(); err != nil {
		return n, err
	}
	if n < l.low || n > l.high {
		return n, l.outside(begin)
	}
	return n, nil
}

func (l *lexer) outside(begin int) error {
	const advice = "outside %s; write a value of that range, in one or two digits"
	if number := l.text[begin:l.at]; number != l.text {
		return l.fail(begin, "has %.20s, "+advice, number, l.allowed)
	}
	return l.fail(begin, "is "+advice, l.allowed)
}

// letter refuses a letter that begins no value here, and says where it would.
func (l *lexer) letter() error {
	const why = "where a value is due"
	switch l.text[l.at] {
	case 'L':
		return l.unexpected(why + " (an L is for a day of month or of week)")
	case 'W':
		return l.unexpected(why + " (a W goes after a day of month, as in 15W or LW)")
	case 'H':
		return l.unexpected(why + " (an H stands for itself, as in H, H/n or H(a-b))")
	}
	return l.unexpected(why)
}

func (l *lexer) backwards(at, low, high int) error {
	if l.name == fields[dow].name && high == 0 {
		return l.fail(at, "is a range that runs backwards, since Sunday is 0; end it with 7, which is Sunday too, within %s", l.allowed)
	}
	if l.text[0] == 'H' {
		return l.fail(at, "has a range that runs backwards, from %d to %d; write the lower end first, within %s", low, high, l.allowed)
	}
	return l.fail(at, "is a range that runs backwards, from %d to %d; write two within %s: %d-%d,%d-%d", low, high, l.allowed, low, l.last, l.low, high)
}
