package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// example is a command of an operation on a page, and what it prints.
var example = regexp.MustCompile("(?s)```sh\n(belfry (?:jobs|runs|leader|explain|gaps|commands|pause|resume|trigger|skip|backfill|cancel|retry)\\b[^\n]*)\n```\n\n```\n(.*?)\n```")

// TestPage: what the pages say that these commands print stands in the transcript, and docs/commands.md lacks an example of none. With
// -belfry.rewrite the pages are written anew, from the transcript as it is.
func TestPage(t *testing.T) {
	t.Parallel()
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
	checkPage(t, "../../docs/leader.md", said)
	shown := checkPage(t, "../../docs/commands.md", said)
	for _, name := range strings.Fields("jobs runs leader explain gaps commands pause trigger skip backfill cancel retry") {
		if !shown[name] {
			t.Errorf("belfry %s has no example", name)
		}
	}
}

// checkPage holds a page to what was said, and returns which commands it shows.
func checkPage(t *testing.T, path string, said map[string]string) map[string]bool {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	fresh := example.ReplaceAllStringFunc(string(page), func(block string) string {
		m := example.FindStringSubmatch(block)
		shown[strings.Fields(m[1])[1]] = true
		if said[m[1]] != m[2] && !*rewrite {
			t.Errorf("%s: %s prints something else by now, or is not in the transcript:\n%s", path, m[1], said[m[1]])
		}
		return "```sh\n" + m[1] + "\n```\n\n```\n" + said[m[1]] + "\n```"
	})
	if *rewrite {
		if err := os.WriteFile(path, []byte(fresh), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return shown
}
