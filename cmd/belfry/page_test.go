package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// example is a command of an operation on a page, and what it prints.
var example = regexp.MustCompile("(?s)```sh\n(belfry (?:jobs|runs|leader|explain|gaps|commands|pause|resume|trigger|skip|backfill|cancel|retry)\\b[^\n]*)\n```\n\n```\n(.*?)\n```")

// TestPage: what docs/commands.md says that these commands print stands in the transcript, and none lacks an example. With
// -belfry.rewrite the page is written anew, from the transcript as it is.
func TestPage(t *testing.T) {
	t.Parallel()
	const path = "../../docs/commands.md"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	transcript, err := os.ReadFile("testdata/operate.txt")
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]string{}
	for _, part := range strings.Split("\n"+string(transcript), "\n$ ")[1:] {
		command, text, _ := strings.Cut(part, "\n")
		text, _, _ = strings.Cut(text, "\n\n")
		text, _, _ = strings.Cut(text, "\n(status ")
		if _, twice := said[command]; !twice { // the first time counts
			said[command] = strings.TrimSuffix(text, "\n")
		}
	}
	shown := map[string]bool{}
	fresh := example.ReplaceAllStringFunc(string(page), func(block string) string {
		m := example.FindStringSubmatch(block)
		shown[strings.Fields(m[1])[1]] = true
		if said[m[1]] != m[2] && !*rewrite {
			t.Errorf("%s prints something else by now, or is not in the transcript:\n%s", m[1], said[m[1]])
		}
		return "```sh\n" + m[1] + "\n```\n\n```\n" + said[m[1]] + "\n```"
	})
	if *rewrite {
		if err := os.WriteFile(path, []byte(fresh), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range strings.Fields("jobs runs leader explain gaps commands pause trigger skip backfill cancel retry") {
		if !shown[name] {
			t.Errorf("belfry %s has no example", name)
		}
	}
}
