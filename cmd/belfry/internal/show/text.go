package show

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line is a text on one line: what is not printable, or no UTF-8, stands as its escape, such as \n, \x1b and \xff.
func Line(s string) string {
	if plain(s, "") {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		b.WriteString(escaped(s[:n], r))
		s = s[n:]
	}
	return b.String()
}

// Lines is a text of lines, such as a message: Line, but for the ends of lines and tabs.
func Lines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		cells := strings.Split(line, "\t")
		for j := range cells {
			cells[j] = Line(cells[j])
		}
		lines[i] = strings.Join(cells, "\t")
	}
	return strings.Join(lines, "\n")
}

// Word is a key or a name as one word: as it is where that is printable, has no blank, quote or backslash and could be
// taken for nothing else; else in quotes, as Go writes it.
func Word(s string) string {
	if s != "" && s != "-" && plain(s, " \"\\") {
		return s
	}
	return strconv.Quote(s)
}

// Clip is the text's start where it is longer than that many characters, marked by an ellipsis.
func Clip(s string, most int) string {
	for i := range s {
		if most--; most < 0 {
			return s[:i] + "…"
		}
	}
	return s
}

// JSON is a value on one line, as encoding/json writes it: text as it is, but for what is not printable.
func JSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	text := b.String()
	if plain(strings.TrimSuffix(text, "\n"), "") {
		return b.Bytes(), nil
	}
	out := make([]byte, 0, len(text)+64)
	for _, r := range strings.TrimSuffix(text, "\n") { // all of it is UTF-8, and what is not printable stands in a string
		if strconv.IsPrint(r) {
			out = utf8.AppendRune(out, r)
			continue
		}
		out = appendJSONEscape(out, r)
	}
	return append(out, '\n'), nil
}

func appendJSONEscape(b []byte, r rune) []byte {
	const digits = "0123456789abcdef"
	units := []rune{r}
	if r >= 0x10000 {
		r -= 0x10000
		units = []rune{0xd800 + r>>10, 0xdc00 + r&0x3ff}
	}
	for _, u := range units {
		b = append(b, '\\', 'u', digits[u>>12&15], digits[u>>8&15], digits[u>>4&15], digits[u&15])
	}
	return b
}

// plain says that all of s is printable, and nothing of it is one of those in without.
func plain(s, without string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if !strconv.IsPrint(r) || strings.ContainsRune(without, r) {
			return false
		}
	}
	return true
}

// escaped is a character as it may be printed; bytes are the one or those that it was read from.
func escaped(bytes string, r rune) string {
	if r != utf8.RuneError && strconv.IsPrint(r) || bytes == "\uFFFD" {
		return bytes
	}
	return strings.Trim(strconv.Quote(bytes), `"`)
}

// Width is how many columns of a terminal a printable text takes.
func Width(s string) (n int) {
	for _, r := range s {
		switch {
		case unicode.In(r, unicode.Mn, unicode.Me):
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul), r >= 0xff01 && r <= 0xff60, r >= 0x1f300 && r <= 0x1faff:
			n += 2
		default:
			n++
		}
	}
	return n
}
