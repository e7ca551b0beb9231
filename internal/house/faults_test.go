package house

import (
	"fmt"
	"go/ast"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
)

const (
	faultsPath = "internal/house/faults.txt"
	suite      = "idempotency/storetest" // its laws are tests of every driver, and no file of it is a test's
)

var (
	faultID  = regexp.MustCompile(`^F(\d\d)$`)
	testName = regexp.MustCompile(`^(Test|Fuzz|Example)`)
)

// checkFaults: every fault of the catalogue has its line in faults.txt, and every test that a line names exists. What
// must be shown before a release has a test, or says which part of the system is missing for one.
func checkFaults(t *tree) (bad []string) {
	text, err := fs.ReadFile(t.root, faultsPath)
	if err != nil {
		return []string{fmt.Sprintf("%s:1: %v", faultsPath, err)}
	}
	known := t.functions()
	last := 0
	for i, line := range strings.Split(string(text), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		report := func(format string, a ...any) {
			bad = append(bad, fmt.Sprintf("%s:%d: ", faultsPath, i+1)+fmt.Sprintf(format, a...))
		}
		cells := strings.Split(line, " | ")
		if len(cells) != 4 || !faultID.MatchString(cells[0]) || cells[1] != "P0" && cells[1] != "-" {
			report("%q is not: Fnn | P0 or - | the fault | tests", line)
			continue
		}
		n, _ := strconv.Atoi(faultID.FindStringSubmatch(cells[0])[1]) // two digits
		for last++; last < n; last++ {
			report("F%02d is missing", last)
		}
		if n < last {
			report("F%02d is out of order", n)
			last = n
		}
		if part, later := strings.CutPrefix(cells[3], "later:"); later {
			if strings.TrimSpace(part) == "" {
				report("say which part F%02d waits for", n)
			}
			continue
		}
		for _, name := range strings.Split(cells[3], ", ") {
			if !known[name] {
				report("there is no test %s", name)
			}
		}
	}
	return bad
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
