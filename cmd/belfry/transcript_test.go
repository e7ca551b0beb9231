package main

import (
	"flag"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

var rewrite = flag.Bool("belfry.rewrite", false, "write what commands print now into the transcripts of testdata")

// TestTranscript runs the commands of testdata/operate.txt, one after the other, on the record of a night, and compares all
// they print. After a change that is meant: go test ./cmd/belfry -run TestTranscript -belfry.rewrite, and
// the same with TestPage
func TestTranscript(t *testing.T) {
	t.Parallel()
	const path = "testdata/operate.txt"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	atNight(t, func(t *testing.T, d *desk) {
		for line := range strings.Lines(string(text)) {
			command, is := strings.CutPrefix(line, "$ belfry ")
			switch {
			case is:
				got.WriteString(line + said(d.belfry(words(t, command)...)) + "\n")
				d.pass(5 * time.Millisecond) // so that the records have an order
			case strings.HasPrefix(line, "#"):
				got.WriteString(line)
			}
		}
	})
	if *rewrite {
		if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	was, is := strings.Split(string(text), "\n$ "), strings.Split(got.String(), "\n$ ")
	for i := range min(len(was), len(is)) {
		if was[i] != is[i] {
			t.Errorf("got\n$ %s\nwant\n$ %s", is[i], was[i])
		}
	}
	if len(was) != len(is) {
		t.Errorf("%d commands, want %d", len(is), len(was))
	}
	if i := strings.IndexFunc(got.String(), func(r rune) bool { return r < ' ' && r != '\n' || r >= 0x7f && r < 0xa0 || r == '\u202e' }); i >= 0 {
		t.Errorf("a terminal is to obey %q", got.String()[i:min(i+40, got.Len())])
	}
}

// said is what a command printed, standard error and a status other than 0 marked.
func said(r result) string {
	text := r.out
	for line := range strings.Lines(r.err) {
		text += "! " + line
	}
	if r.status != 0 {
		text += "(status " + strconv.Itoa(r.status) + ")\n"
	}
	return text
}

// words splits a line at blanks, but for those between quotes, where it reads escapes as Go does.
func words(t *testing.T, line string) (list []string) {
	t.Helper()
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimLeft(line, " ") {
		if quoted, err := strconv.QuotedPrefix(line); err == nil {
			word, err := strconv.Unquote(quoted)
			if err != nil {
				t.Fatal(err)
			}
			list, line = append(list, word), line[len(quoted):]
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		list, line = append(list, word), rest
	}
	return list
}
