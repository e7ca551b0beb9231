package bugs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is that of the module.
const root = "../.."

// source reads a file of the product.
func source(path string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, path))
	return string(text), err
}

// catalogue reads all bugs, by name.
func catalogue(t *testing.T) (list []*bug) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		b, err := parse(strings.TrimSuffix(filepath.Base(file), ".txt"), string(text))
		if err != nil {
			t.Error(err)
			continue
		}
		list = append(list, b)
	}
	return list
}

// TestApply demands that each bug still fits the code, and that its test is there: else it would catch nothing any more.
func TestApply(t *testing.T) {
	quick := 0
	for _, b := range catalogue(t) {
		if _, err := b.apply(source); err != nil {
			t.Error(err)
		}
		if b.quick {
			quick++
		}
		tests, err := filepath.Glob(filepath.Join(root, b.test.pkg, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		function := regexp.MustCompile(`(?m)^func ` + b.test.function() + `\(`)
		if !slices.ContainsFunc(tests, func(file string) bool {
			text, err := os.ReadFile(file)
			return err == nil && function.Match(text)
		}) {
			t.Errorf("bug %s: there is no test %v", b.name, b.test)
		}
	}
	if quick != 8 {
		t.Errorf("%d bugs are marked as quick, want 8", quick)
	}
}

// TestComplete demands a bug, or a reason why there is none, for each mistake that origins.txt lists, and that a bug is of one of these.
func TestComplete(t *testing.T) {
	text, err := os.ReadFile("origins.txt")
	if err != nil {
		t.Fatal(err)
	}
	listed := make(map[string]string) // with the reason
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			origin, reason, _ := strings.Cut(line, " | ")
			listed[origin] = reason
		}
	}
	had := make(map[string]bool)
	for _, b := range catalogue(t) {
		for _, o := range b.origins {
			if _, ok := listed[o]; !ok {
				t.Errorf("bug %s: its origin %q is not in origins.txt", b.name, o)
			}
			had[o] = true
		}
	}
	for origin, reason := range listed {
		if had[origin] == (reason != "") {
			t.Errorf("origin %q: a bug %t, a reason why there is none %q; it needs one of them", origin, had[origin], reason)
		}
	}
}
