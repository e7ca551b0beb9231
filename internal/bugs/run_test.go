//go:build bugs

package bugs

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	quick = flag.Bool("bugs.quick", false, "try only those that are marked as quick")
	only  = flag.String("bugs.only", "", "try only these bugs, by name, with commas")
)

var seedOf = regexp.MustCompile(`\bseed[ =:]+(\d+)`)

// TestCaught builds the product with one bug after the other, and demands that its test fails of it, saying why. Where all are tried, the tests
// have to pass without the bugs too.
func TestCaught(t *testing.T) {
	list := slices.DeleteFunc(catalogue(t), func(b *bug) bool {
		return *quick && !b.quick || *only != "" && !slices.Contains(strings.Split(*only, ","), b.name)
	})
	if len(list) == 0 {
		t.Fatalf("no bug is called %q", *only)
	}
	var mu sync.Mutex
	count := map[verdict]int{}
	t.Run("bugs", func(t *testing.T) {
		for _, b := range list {
			t.Run(b.name, func(t *testing.T) {
				t.Parallel()
				v := b.try(t)
				mu.Lock()
				defer mu.Unlock()
				count[v]++
			})
		}
	})
	if !*quick && *only == "" {
		t.Run("without", func(t *testing.T) { passWithout(t, list) })
	}
	t.Logf("T21: %d of %d caught, %d not run", count[caught], len(list), count[notRun])
}

// try says what became of a bug.
func (b *bug) try(t *testing.T) verdict {
	files, err := b.apply(source)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	output, passed := goTest(t, b.test, "-overlay", overlay(t, files))
	v, why := b.judge(output, passed)
	took := time.Since(begin).Round(100 * time.Millisecond)
	switch v {
	case caught:
		if seed := seedOf.FindStringSubmatch(output); seed != nil {
			why = "seed " + seed[1] + ": " + why
		}
		t.Logf("%s: caught by %v in %v: %s", b.name, b.test, took, why)
	case notRun:
		t.Logf("%s: not run: %s", b.name, why)
	default:
		t.Errorf("%s: not caught by %v in %v: %s", b.name, b.test, took, why)
	}
	return v
}

// passWithout demands that the tests pass where nothing is changed, with the flags that the bugs have them run with. Each package is compiled once.
func passWithout(t *testing.T, list []*bug) {
	tests := make(map[string]map[string]named) // by package
	for _, b := range list {
		if tests[b.test.pkg] == nil {
			tests[b.test.pkg] = make(map[string]named)
		}
		tests[b.test.pkg][b.test.String()] = b.test
	}
	for pkg, tests := range tests {
		t.Run(pkg, func(t *testing.T) {
			t.Parallel()
			binary := filepath.Join(t.TempDir(), "test")
			if output, ok := goTool(t, "test", "-c", "-vet=off", "-ldflags=-s -w", "-o", binary, "./"+pkg); !ok {
				t.Fatal(output)
			}
			for name, n := range tests {
				output, passed := run(t, filepath.Join(root, pkg), binary, append([]string{"-test.timeout=10m", "-test.v", "-test.run", n.pattern()}, n.flags...)...)
				if !passed {
					t.Errorf("%s fails without a bug:\n%s", name, tail(strings.Split(output, "\n")))
				}
			}
		})
	}
}

// goTest runs a test in a process of its own, and returns all that it said.
func goTest(t *testing.T, n named, flags ...string) (output string, passed bool) {
	args := append([]string{"test", "-count=1", "-vet=off", "-ldflags=-s -w", "-timeout=10m", "-v", "-run", n.pattern()}, flags...)
	return goTool(t, append(append(args, "./"+n.pkg), n.flags...)...)
}

func goTool(t *testing.T, args ...string) (output string, ok bool) {
	return run(t, root, "go", args...)
}

func run(t *testing.T, dir, program string, args ...string) (output string, ok bool) {
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

// overlay writes changed files, and what tells the go command to read them in place of those of the tree.
func overlay(t *testing.T, files map[string]string) string {
	dir := t.TempDir()
	var o struct{ Replace map[string]string }
	o.Replace = make(map[string]string)
	for path, text := range files {
		real, err := filepath.Abs(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		copied := filepath.Join(dir, strings.ReplaceAll(path, "/", "_"))
		o.Replace[real] = copied
		if err := os.WriteFile(copied, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// pattern is what -run finds the test by.
func (n named) pattern() string { return "^" + strings.ReplaceAll(n.test, "/", "$/^") + "$" }
