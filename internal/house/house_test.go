package house

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const root = "../.."

// rules are all that read sources: each checks one thing over a whole tree and returns a line per breach.
var rules = []struct {
	name  string
	check func(*tree) []string
}{
	{"direction", checkDirection},
	{"dependency", checkDependency},
	{"length", checkLength},
	{"sleep", checkSleep},
	{"print", checkPrint},
	{"leak", checkLeak},
	{"doc", checkDoc},
	{"package", checkPackage},
	{"mod", checkMod},
	{"readme", checkReadme},
	{"snippet", checkSnippet},
	{"link", checkLink},
	{"faults", checkFaults},
	{"scenarios", checkScenarios},
	{"shown", checkShown},
	{"figures", checkFigures},
}

// TestHouse holds this repository to the rules.
func TestHouse(t *testing.T) {
	t.Parallel()
	house, err := load(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	if len(house.files) == 0 || len(house.mods) == 0 {
		t.Fatalf("%d Go files and %d go.mod found; the rules have nothing to look at", len(house.files), len(house.mods))
	}
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			for _, line := range r.check(house) {
				t.Error(line)
			}
		})
	}
	t.Run("compiled", func(t *testing.T) {
		all, err := listed(root)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range checkCompiled(all) {
			t.Error(line)
		}
	})
}

// TestRule runs each rule over the tree testdata/<rule>, which breaks it, and wants exactly the lines of its want.txt:
// what is lawful there must not be named. Limits have their own test.
func TestRule(t *testing.T) {
	t.Parallel()
	for _, r := range rules {
		if r.name == "length" {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			broken, err := load(os.DirFS(path.Join("testdata", r.name)))
			if err != nil {
				t.Fatal(err)
			}
			compare(t, broken.root, r.check(broken))
		})
	}
	t.Run("compiled", func(t *testing.T) {
		t.Parallel()
		fsys := os.DirFS("testdata/compiled")
		f, err := fsys.Open("list.json")
		if err != nil {
			t.Fatal(err)
		}
		all, err := readList(f)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		compare(t, fsys, checkCompiled(all))
	})
}

func compare(t *testing.T, fsys fs.FS, got []string) {
	t.Helper()
	b, err := fs.ReadFile(fsys, "want.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSpace(string(b)), "\n")
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the rule names\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// TestLimit asks each limit at its edge and one line beyond it.
func TestLimit(t *testing.T) {
	t.Parallel()
	text := func(head string, lines int, tail string) *fstest.MapFile {
		n := lines - strings.Count(head+tail, "\n")
		return &fstest.MapFile{Data: []byte(head + strings.Repeat("\n", n) + tail)}
	}
	fn := "package a\n\nfunc f() {\n" // two lines before the function
	readme := "```sh\n" + firstBlocks[0] + "\n```\n```sh\n" + firstBlocks[1] + "\n```\n"
	for _, edge := range []struct {
		path, head, tail string
		lines            int
		check            func(*tree) []string
		want             string
	}{
		{"a.go", fn, "}\n", 2 + maxFunc, checkLength, "a.go:3: function f of 71 lines; at most 70"},
		{"b.go", "package a\n", "", maxFile, checkLength, "b.go:501: file of 501 lines; at most 500"},
		{"c_test.go", fn, "}\n", maxTestFile, checkLength, "c_test.go:701: file of 701 lines; at most 700"},
		{"README.md", readme, "", maxReadme, checkReadme, "README.md:181: 181 lines; at most 180"},
	} {
		for more, want := range [][]string{nil, {edge.want}} {
			at, err := load(fstest.MapFS{edge.path: text(edge.head, edge.lines+more, edge.tail)})
			if err != nil {
				t.Fatal(err)
			}
			if got := edge.check(at); !slices.Equal(got, want) {
				t.Errorf("%s of %d lines: the rule names %q, want %q", edge.path, edge.lines+more, got, want)
			}
		}
	}
}
