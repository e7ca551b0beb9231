package house

import (
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

const (
	scenariosPath = "internal/house/scenarios.txt"
	scenarios     = 84
)

var (
	scenarioID = regexp.MustCompile(`^(CU|DP|CK|ST|GS|RG|LD|JB|SD|NM|SC|RE)-\d\d$`)
	shownBy    = regexp.MustCompile("`([a-z/-]+\\.[A-Za-z0-9_]+)`")
)

// checkScenarios: every scenario has its line in scenarios.txt, and every test that a line names exists.
func checkScenarios(t *tree) (bad []string) {
	text, err := fs.ReadFile(t.root, scenariosPath)
	if err != nil {
		return []string{fmt.Sprintf("%s:1: %v", scenariosPath, err)}
	}
	known, seen := t.functions(), map[string]bool{}
	for i, line := range strings.Split(string(text), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		report := func(format string, a ...any) {
			bad = append(bad, fmt.Sprintf("%s:%d: ", scenariosPath, i+1)+fmt.Sprintf(format, a...))
		}
		cells := strings.Split(line, " | ")
		if len(cells) != 3 || !scenarioID.MatchString(cells[0]) || seen[cells[0]] {
			report("%q is not: id | the scenario | tests, once for each", line)
			continue
		}
		seen[cells[0]] = true
		if strings.HasPrefix(cells[2], "later: ") {
			continue
		}
		tests := cells[2]
		if why, differs := strings.CutPrefix(tests, "differs: "); differs {
			tests = why[strings.LastIndex(why, ": ")+len(": "):]
		}
		for _, name := range strings.Split(tests, ", ") {
			if !known[name] {
				report("there is no test %s", name)
			}
		}
	}
	if len(seen) != scenarios {
		bad = append(bad, fmt.Sprintf("%s:1: %d scenarios; there are %d", scenariosPath, len(seen), scenarios))
	}
	return bad
}

// checkShown: each row of a table whose last column says by which tests it is shown names tests, and each of these exists.
func checkShown(t *tree) (bad []string) {
	known, rows := t.functions(), 0
	for _, p := range t.pages {
		in := false
		for i, line := range strings.Split(p.text, "\n") {
			cells := strings.Split(strings.Trim(line, "| "), " | ")
			head := cells[len(cells)-1] == "shown by"
			in = strings.HasPrefix(line, "|") && (in || head)
			if !in || head || strings.HasPrefix(line, "|-") {
				continue
			}
			rows++
			names := shownBy.FindAllStringSubmatch(cells[len(cells)-1], -1)
			if len(names) == 0 {
				bad = append(bad, fmt.Sprintf("%s:%d: the row of %s names no test", p.path, i+1, cells[0]))
			}
			for _, n := range names {
				if !known[n[1]] {
					bad = append(bad, fmt.Sprintf("%s:%d: there is no test %s", p.path, i+1, n[1]))
				}
			}
		}
	}
	if rows == 0 {
		bad = append(bad, "docs:1: no table is shown by tests")
	}
	return bad
}
