package house

import (
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// ciPath is what runs before each change: a test that it does not run shows nothing.
const ciPath = ".ci/run"

// otherSystems are what the go command takes from a file's name, and CI is not.
var otherSystems = []string{"aix", "android", "darwin", "dragonfly", "freebsd", "illumos", "ios", "js", "netbsd", "openbsd", "plan9", "solaris", "wasip1", "windows", "arm64", "386", "wasm"}

// skipped says, for tests that CI never runs, why, as far as the source tells: a build tag or system that CI has not; a skip
// that nothing can prevent; or one that only a flag or a variable prevents, which .ci/run does not set. What a test skips
// for want of a right or a program is not found: CI installs those, and prints what it skips.
func (t *tree) skipped() map[string]string {
	text, err := fs.ReadFile(t.root, ciPath)
	if err != nil {
		text = nil // then nothing is set
	}
	why := map[string]string{}
	for _, f := range t.files {
		if !f.test() {
			continue
		}
		built := f.built()
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || !testName.MatchString(fn.Name.Name) {
				continue
			}
			name := f.dir + "." + fn.Name.Name
			if !built {
				why[name] = "its file is not built there"
			} else if reason := t.skips(f, fn, string(text)); reason != "" {
				why[name] = reason
			}
		}
	}
	return why
}

// built reports whether CI compiles the file, in its plain run or with the race detector.
func (f *file) built() bool {
	words := strings.Split(strings.TrimSuffix(strings.TrimSuffix(path.Base(f.path), ".go"), "_test"), "_")
	if slices.Contains(otherSystems, words[len(words)-1]) && len(words) > 1 {
		return false
	}
	for line := range strings.Lines(f.text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "package ") {
			return true
		}
		if !constraint.IsGoBuild(line) {
			continue
		}
		x, err := constraint.Parse(line)
		if err != nil {
			return false
		}
		tags := []string{"linux", "unix", "amd64", "gc", "cgo"}
		has := func(more ...string) bool {
			return x.Eval(func(tag string) bool {
				return slices.Contains(append(tags, more...), tag) || strings.HasPrefix(tag, "go1.")
			})
		}
		return has() || has("race")
	}
	return true
}

// skips says why a test's own statements always skip it in CI, "" if they do not.
func (t *tree) skips(f *file, fn *ast.FuncDecl, ci string) string {
	for _, s := range fn.Body.List {
		switch s := s.(type) {
		case *ast.ExprStmt:
			if isSkip(s) {
				return "it skips itself"
			}
		case *ast.IfStmt:
			if !slices.ContainsFunc(s.Body.List, isSkip) {
				continue
			}
			if what := t.unset(f, fn, s.Cond, ci); what != "" {
				return "it skips itself without " + what
			}
		}
	}
	return ""
}

func isSkip(s ast.Stmt) bool {
	x, ok := s.(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := x.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	return ok && slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, sel.Sel.Name)
}

// unset is the flag or the variable of the environment whose absence alone makes a condition true, where CI does not give it.
func (t *tree) unset(f *file, fn *ast.FuncDecl, cond ast.Expr, ci string) string {
	switch x := cond.(type) {
	case *ast.ParenExpr:
		return t.unset(f, fn, x.X, ci)
	case *ast.UnaryExpr:
		if x.Op == token.NOT {
			return t.flagOf(f, x.X, ci)
		}
	case *ast.BinaryExpr:
		switch {
		case x.Op == token.LOR:
			if left := t.unset(f, fn, x.X, ci); left != "" {
				return left
			}
			return t.unset(f, fn, x.Y, ci)
		case x.Op == token.EQL && isZero(x.Y):
			if name := t.flagOf(f, x.X, ci); name != "" {
				return name
			}
			return t.variableOf(f, fn, x.X, ci)
		}
	}
	return ""
}

func isZero(x ast.Expr) bool {
	lit, ok := x.(*ast.BasicLit)
	return ok && (lit.Value == "0" || lit.Value == `""`)
}

// flagOf is the flag that an expression such as *seeds reads, if CI does not set it and it is off by default.
func (t *tree) flagOf(f *file, x ast.Expr, ci string) string {
	star, ok := x.(*ast.StarExpr)
	if !ok {
		return ""
	}
	id, ok := star.X.(*ast.Ident)
	if !ok {
		return ""
	}
	call := t.declaration(f.dir, id.Name)
	c, ok := call.(*ast.CallExpr)
	if !ok || len(c.Args) < 2 {
		return ""
	}
	off := isZero(c.Args[1])
	if b, ok := c.Args[1].(*ast.Ident); ok {
		off = b.Name == "false"
	}
	name := literal(c.Args[0])
	if !off || name == "" || strings.Contains(ci, "-"+name) {
		return ""
	}
	return "-" + name
}

// variableOf is the variable of the environment that an expression reads, or a name that was set from it just before.
func (t *tree) variableOf(f *file, fn *ast.FuncDecl, x ast.Expr, ci string) string {
	if id, ok := x.(*ast.Ident); ok {
		for _, s := range fn.Body.List {
			a, ok := s.(*ast.AssignStmt)
			if !ok || len(a.Lhs) != 1 {
				continue
			}
			if left, ok := a.Lhs[0].(*ast.Ident); ok && left.Name == id.Name {
				x = a.Rhs[0]
			}
		}
	}
	call, ok := x.(*ast.CallExpr)
	if !ok || len(call.Args) != 1 {
		return ""
	}
	if sel, ok := call.Fun.(*ast.SelectorExpr); !ok || sel.Sel.Name != "Getenv" {
		return ""
	}
	name := literal(call.Args[0])
	if id, ok := call.Args[0].(*ast.Ident); ok {
		name = literal(t.declaration(f.dir, id.Name))
	}
	if name == "" || strings.Contains(ci, name) {
		return ""
	}
	return name
}

func literal(x ast.Expr) string {
	if lit, ok := x.(*ast.BasicLit); ok && lit.Kind == token.STRING {
		s, _ := strconv.Unquote(lit.Value)
		return s
	}
	return ""
}

// declaration is what a name of a package is declared as, nil if that is not found.
func (t *tree) declaration(dir, name string) ast.Expr {
	for _, f := range t.files {
		if f.dir != dir {
			continue
		}
		for _, d := range f.ast.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range g.Specs {
				v, ok := s.(*ast.ValueSpec)
				if !ok {
					continue
				}
				for i, n := range v.Names {
					if n.Name == name && i < len(v.Values) {
						return v.Values[i]
					}
				}
			}
		}
	}
	return nil
}

// named checks the names of tests of a line: each exists, and CI runs it.
func named(names string, known map[string]bool, skipped map[string]string) (bad []string) {
	for _, name := range strings.Split(names, ", ") {
		if !known[name] {
			bad = append(bad, fmt.Sprintf("there is no test %s", name))
		} else if why := skipped[name]; why != "" {
			bad = append(bad, fmt.Sprintf("CI never runs %s: %s", name, why))
		}
	}
	return bad
}
