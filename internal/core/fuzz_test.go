package core

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzText gives any text to what makes it fit for stores and for gossip (F32): valid UTF-8, without NUL in a store, within its bound, and
// what fits already stays as it is.
func FuzzText(f *testing.F) {
	f.Add("", uint16(0))
	f.Add("declined: \x00\xff", uint16(4))
	f.Add(strings.Repeat("ä€🙂", 40), uint16(33))
	f.Add(strings.Repeat("\x80", 200), uint16(64))
	f.Fuzz(func(t *testing.T, s string, room uint16) {
		most := 16 + int(room)
		kept := boundText(s, most)
		if len(kept) > most || !utf8.ValidString(kept) || strings.Contains(kept, "\x00") {
			t.Fatalf("%q became %q, of %d bytes at most", s, kept, most)
		}
		if fits := len(s) <= most && utf8.ValidString(s) && !strings.Contains(s, "\x00"); fits && kept != s {
			t.Fatalf("%q became %q", s, kept)
		}
		if line := shorten(s, most); len(line) > most || !utf8.ValidString(line) || strings.ContainsAny(line, "\n\r\t") {
			t.Fatalf("%q was shortened to %q, of %d bytes at most", s, line, most)
		}
	})
}
