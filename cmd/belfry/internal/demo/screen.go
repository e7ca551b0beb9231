package demo

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// Screen is where people follow. Plain, it takes lines as they come; Live, it is a terminal, on which progress
// stays in one line. Colour needs Live.
type Screen struct {
	W            io.Writer
	Live, Colour bool

	start time.Time
	shown time.Time // when the last progress was written
	held  bool      // progress stands in the current line
}

const (
	calm  = time.Second            // between two lines of progress, plain
	frame = 100 * time.Millisecond // between two states of its line, live
	width = 79                     // of a terminal, at least
)

const (
	bold, red, green, faint, normal = "\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[2m", "\x1b[0m"
)

func (s *Screen) paint(colour, text string) string {
	if !s.Live || !s.Colour || colour == "" {
		return text
	}
	return colour + text + normal
}

// text writes lines as they are.
func (s *Screen) text(format string, a ...any) {
	s.settle()
	fmt.Fprintf(s.W, format+"\n", a...)
}

// line writes what happened, and when, about whom.
func (s *Screen) line(colour, about, format string, a ...any) {
	s.settle()
	fmt.Fprintln(s.W, s.format(colour, about, fmt.Sprintf(format, a...)))
}

// progress writes how far it is; on a terminal over the progress before, and no wider than it surely is.
func (s *Screen) progress(about, format string, a ...any) {
	pace := calm
	if s.Live {
		pace = frame
	}
	if time.Since(s.shown) < pace {
		return
	}
	s.shown = time.Now()
	if !s.Live {
		s.line("", about, format, a...)
		return
	}
	text := []rune(s.format("", about, fmt.Sprintf(format, a...)))
	if room := width + len(s.paint(faint, "")); len(text) > room {
		text = append(text[:room-1], '…')
	}
	fmt.Fprint(s.W, "\r\x1b[K", string(text))
	s.held = true
}

func (s *Screen) format(colour, about, text string) string {
	if s.start.IsZero() {
		s.start = time.Now()
	}
	at := fmt.Sprintf("%6.1fs", time.Since(s.start).Seconds())
	return s.paint(faint, at) + "  " + s.paint(colour, fmt.Sprintf("%-10s", about)) + " " + text
}

// settle ends the line that progress stands in.
func (s *Screen) settle() {
	if s.held {
		fmt.Fprint(s.W, "\r\x1b[K")
		s.held = false
	}
}

// number groups digits by thousands.
func number(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// plural is "1 kill", "2 kills".
func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return number(n) + " " + one + "s"
}

// join is "a, b and c".
func join(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}
