package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// example is a command of an operation on a page, and what it prints.
var example = regexp.MustCompile("(?s)```sh\n(belfry (?:jobs|runs|explain|gaps|commands|pause|resume|trigger|skip|backfill|cancel|retry)\\b[^\n]*)\n```\n\n```\n(.*?)\n```")

// TestPage: what docs/commands.md says that these commands print stands in the transcript, and none lacks an example.
func TestPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	transcript, err := os.ReadFile("testdata/operate.txt")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for _, m := range example.FindAllStringSubmatch(string(page), -1) {
		shown[strings.Fields(m[1])[1]] = true
		if !strings.Contains(string(transcript), "$ "+m[1]+"\n"+m[2]+"\n") {
			t.Errorf("%s prints something else by now, or is not in the transcript", m[1])
		}
	}
	for _, name := range strings.Fields("jobs runs explain gaps commands pause trigger skip backfill cancel retry") {
		if !shown[name] {
			t.Errorf("belfry %s has no example", name)
		}
	}
}
