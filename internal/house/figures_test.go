package house

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	figuresPath = "docs/robustness.md"
	figures     = 23 // rows, T1 and so on
)

var (
	figureRow  = regexp.MustCompile(`^\| T(\d+) \|`)
	makeTarget = regexp.MustCompile(`make (long-T\d+)`)
)

// checkFigures: the table of figures has each row once, in order, and each target of make that the page names is there, for
// the row that names it. That the tests of each row exist is for checkShown.
func checkFigures(t *tree) (bad []string) {
	i := slices.IndexFunc(t.pages, func(p page) bool { return p.path == figuresPath })
	if i < 0 {
		return []string{figuresPath + ":1: there is none"}
	}
	targets, err := fs.ReadFile(t.root, "Makefile")
	if err != nil {
		return []string{fmt.Sprintf("Makefile:1: %v", err)}
	}
	table, next := false, 1
	for i, line := range strings.Split(t.pages[i].text, "\n") {
		report := func(format string, a ...any) {
			bad = append(bad, fmt.Sprintf("%s:%d: ", figuresPath, i+1)+fmt.Sprintf(format, a...))
		}
		for _, m := range makeTarget.FindAllStringSubmatch(line, -1) {
			if !strings.Contains("\n"+string(targets), "\n"+m[1]+":") {
				report("the Makefile has no target %s", m[1])
			}
		}
		if table = strings.HasPrefix(line, "| row | promise |") || table && strings.HasPrefix(line, "|"); !table {
			continue
		}
		m := figureRow.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if n, _ := strconv.Atoi(m[1]); n != next { // digits
			report("T%d stands where T%d belongs", n, next)
		}
		if t := makeTarget.FindStringSubmatch(line); t != nil && t[1] != "long-T"+m[1] {
			report("T%s is repeated by %s", m[1], t[1])
		}
		next++
	}
	if next != figures+1 {
		bad = append(bad, fmt.Sprintf("%s:1: %d rows of figures; there are %d", figuresPath, next-1, figures))
	}
	return bad
}
