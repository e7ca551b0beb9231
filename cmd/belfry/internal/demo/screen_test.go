package demo

import (
	"regexp"
	"strings"
	"testing"
)

var clock = regexp.MustCompile(` *\d+\.\ds`)

func TestScreen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		s    Screen
		want string
	}{
		{"plain", Screen{Colour: true}, "hello\nTs  night 1    1 of 2\nTs  kill -9    replica-1\n"},
		{"live", Screen{Live: true}, "hello\n\r\x1b[KTs  night 1    1 of 2\r\x1b[KTs  kill -9    replica-1\n"},
		{"colour", Screen{Live: true, Colour: true}, "hello\n\r\x1b[K\x1b[2mTs\x1b[0m  night 1    1 of 2\r\x1b[K" +
			"\x1b[2mTs\x1b[0m  \x1b[31mkill -9   \x1b[0m replica-1\n"},
	} {
		var b strings.Builder
		c.s.W = &b
		c.s.text("hello")
		c.s.progress("night 1", "%d of %d", 1, 2)
		c.s.progress("night 1", "too soon to be told")
		c.s.line(red, "kill -9", "replica-1")
		if got := clock.ReplaceAllString(b.String(), "Ts"); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestProgressFitsTheLine(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	s := Screen{W: &b, Live: true}
	s.progress("night 1", "%s", strings.Repeat("ä", 200))
	if n := len([]rune(strings.TrimPrefix(b.String(), "\r\x1b[K"))); n != width {
		t.Errorf("%d characters wide, want %d", n, width)
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000"} {
		if got := number(n); got != want {
			t.Errorf("number(%d) = %q, want %q", n, got, want)
		}
	}
	if got := join([]string{"a", "b", "c"}) + "|" + join([]string{"a"}) + "|" + join(nil) + "|" + plural(1, "kill") + "|" + plural(0, "kill"); got != "a, b and c|a||1 kill|0 kills" {
		t.Errorf("got %q", got)
	}
}
