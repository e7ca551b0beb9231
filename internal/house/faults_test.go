package house

import (
	"fmt"
	"go/ast"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	faultsPath = "internal/house/faults.txt"
	suite      = "idempotency/storetest" // its laws are tests of every driver, and no file of it is a test's
)

var (
	faultID  = regexp.MustCompile(`^F(\d\d)$`)
	testName = regexp.MustCompile(`^(Test|Fuzz|Example)`)
)

// fault is a line of faults.txt.
type fault struct {
	line   int
	id     string
	p0     bool
	tests  string // that show what holds, and run in CI; empty: none does
	byHand string // those that do not
	part   string // the folder of the part that it needs, which is not there yet
}

// readFaults reads the registry, and says which lines are none.
func readFaults(text string) (list []fault, bad []string) {
	for i, line := range strings.Split(text, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		cells := strings.Split(line, " | ")
		if len(cells) != 4 || !faultID.MatchString(cells[0]) || cells[1] != "P0" && cells[1] != "-" {
			bad = append(bad, fmt.Sprintf("%s:%d: %q is not: Fnn | P0 or - | the fault | tests", faultsPath, i+1, line))
			continue
		}
		f := fault{line: i + 1, id: cells[0], p0: cells[1] == "P0", tests: cells[3]}
		if part, later := strings.CutPrefix(f.tests, "later:"); later {
			f.tests, f.part = "", strings.TrimSpace(part)
			if f.part == "" {
				bad = append(bad, fmt.Sprintf("%s:%d: say which part %s waits for", faultsPath, i+1, f.id))
				f.part = "?"
			}
		}
		if tests, byHand := strings.CutPrefix(f.tests, "by hand: "); byHand {
			f.tests, f.byHand = "", tests
		}
		list = append(list, f)
	}
	return list, bad
}

// checkFaults: every fault of the catalogue has its line in faults.txt, and every test that a line names exists and is run
// by CI. What must be shown before a release has a test, unless the part of the system that it is about is missing: then
// there is no such folder. Others may have a test that people run by hand.
func checkFaults(t *tree) (bad []string) {
	text, err := fs.ReadFile(t.root, faultsPath)
	if err != nil {
		return []string{fmt.Sprintf("%s:1: %v", faultsPath, err)}
	}
	list, bad := readFaults(string(text))
	known, skipped := t.functions(), t.skipped()
	last := 0
	for _, f := range list {
		report := func(format string, a ...any) {
			bad = append(bad, fmt.Sprintf("%s:%d: ", faultsPath, f.line)+fmt.Sprintf(format, a...))
		}
		n, _ := strconv.Atoi(faultID.FindStringSubmatch(f.id)[1]) // two digits
		for last++; last < n; last++ {
			report("F%02d is missing", last)
		}
		if n < last {
			report("F%02d is out of order", n)
			last = n
		}
		for _, problem := range f.problems(t, known, skipped) {
			report("%s", problem)
		}
	}
	return bad
}

// problems are what is wrong with the tests of one fault.
func (f fault) problems(t *tree, known map[string]bool, skipped map[string]string) []string {
	switch {
	case f.tests != "":
		return named(f.tests, known, skipped)
	case f.byHand != "" && f.p0:
		return []string{f.id + " is P0: by hand is not enough"}
	case f.byHand != "":
		return named(f.byHand, known, nil)
	}
	folder, _, _ := strings.Cut(f.part, ":")
	if slices.ContainsFunc(t.files, func(g *file) bool { return g.under(folder) }) {
		return []string{fmt.Sprintf("%s waits for %s, which is there", f.id, folder)}
	}
	return nil
}

// shares says how many of the faults are shown by tests that CI runs (T22).
func shares(list []fault) (line string, enough bool) {
	var p0, p0Shown, p0Parts, all int
	for _, f := range list {
		shown := f.tests != ""
		if f.p0 {
			p0++
		}
		if f.p0 && f.part == "" {
			p0Parts++
		}
		if f.p0 && shown {
			p0Shown++
		}
		if shown {
			all++
		}
	}
	return fmt.Sprintf("T22: %d of %d P0 whose part exists (of %d P0), %d of %d of all (%d %%)", p0Shown, p0Parts, p0, all, len(list), 100*all/max(1, len(list))),
		p0Shown == p0Parts && 100*all >= 70*len(list)
}

// TestFaultShares: every fault that must be shown before a release is, if its part exists, and most of all are (T22).
func TestFaultShares(t *testing.T) {
	t.Parallel()
	text, err := fs.ReadFile(os.DirFS(root), faultsPath)
	if err != nil {
		t.Fatal(err)
	}
	list, _ := readFaults(string(text))
	line, enough := shares(list)
	if t.Log(line); !enough {
		t.Error("too few faults are shown by tests")
	}
	for _, change := range []func([]fault){
		func(l []fault) { l[0].tests = "" }, // P0
		func(l []fault) {
			for i := range l {
				if !l[i].p0 {
					l[i].tests = ""
				}
			}
		},
	} {
		worse := slices.Clone(list)
		change(worse)
		if line, enough := shares(worse); enough {
			t.Errorf("%s is said to be enough", line)
		}
	}
}

// functions lists the tests of the tree, and the laws of the suite, as folder.Name.
func (t *tree) functions() map[string]bool {
	known := make(map[string]bool)
	for _, f := range t.files {
		for _, name := range f.declared() {
			if f.test() && testName.MatchString(name) || f.dir == suite {
				known[f.dir+"."+name] = true
			}
		}
	}
	return known
}

// declared lists the functions, without methods, of a file.
func (f *file) declared() (names []string) {
	for _, d := range f.ast.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
			names = append(names, fn.Name.Name)
		}
	}
	return names
}
