package house

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
)

// Limits, in lines. A reader holds a function of one screen and a half in the head, and a file with one purpose.
const (
	maxFunc     = 70
	maxFile     = 500
	maxTestFile = 700
	maxReadme   = 180
)

// checkLength: functions and files end in time. Functions of tests, mostly tables and stories, are bound by their file only.
func checkLength(t *tree) (bad []string) {
	for _, f := range t.files {
		limit := maxFile
		if f.test() {
			limit = maxTestFile
		}
		if n := strings.Count(f.text, "\n"); n > limit {
			bad = append(bad, fmt.Sprintf("%s:%d: file of %d lines; at most %d", f.path, limit+1, n, limit))
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || f.test() {
				continue
			}
			if n := t.set.Position(fn.End()).Line - t.set.Position(fn.Pos()).Line + 1; n > maxFunc {
				bad = append(bad, fmt.Sprintf("%s: function %s of %d lines; at most %d", t.at(fn.Pos()), fn.Name.Name, n, maxFunc))
			}
		}
	}
	return bad
}

// checkSleep: a test waits for what it waits for, never for a time to pass. The fake time of a synctest bubble costs
// nothing: a file that imports testing/synctest or schedulertest may, and what is given to a function of the package that opens a bubble.
func checkSleep(t *tree) (bad []string) {
	openers := make(map[string][]string) // folder: the functions that open a bubble
	for _, f := range t.files {
		f.calls("testing/synctest", func(name string, at token.Pos) {
			if fn := f.function(at); name == "Test" && fn != nil {
				openers[f.dir] = append(openers[f.dir], fn.Name.Name)
			}
		})
	}
	for _, f := range t.files {
		if !f.test() || f.local("testing/synctest") != "" || f.local(module+"/scheduler/schedulertest") != "" {
			continue
		}
		f.calls("time", func(name string, at token.Pos) {
			if name == "Sleep" && !f.inCall(at, openers[f.dir]) {
				bad = append(bad, t.at(at)+": time.Sleep in a test; wait for a signal, or use testing/synctest")
			}
		})
	}
	return bad
}

// inCall reports whether a place lies within a call of one of the named functions.
func (f *file) inCall(at token.Pos, names []string) (found bool) {
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if n == nil || n.Pos() > at || n.End() <= at {
			return false
		}
		if c, ok := n.(*ast.CallExpr); ok {
			if fn, ok := c.Fun.(*ast.Ident); ok && slices.Contains(names, fn.Name) {
				found = true
			}
		}
		return !found
	})
	return found
}

// logUse are the names of package log that do not write by themselves: what an old interface may still ask for.
var logUse = []string{"Logger", "New", "LstdFlags", "Lmsgprefix", "Lshortfile"}

// checkPrint: a library writes to nobody's terminal. Programs may, and Example functions have to.
func checkPrint(t *tree) (bad []string) {
	for _, f := range t.files {
		if f.under("cmd") || f.under("examples") {
			continue
		}
		report := func(pkg, name string, at token.Pos) {
			fn := f.function(at)
			if example := fn != nil && strings.HasPrefix(fn.Name.Name, "Example"); !f.test() || !example {
				bad = append(bad, fmt.Sprintf("%s: %s.%s outside cmd and examples; return an error, or log with slog", t.at(at), pkg, name))
			}
		}
		f.calls("fmt", func(name string, at token.Pos) {
			if strings.HasPrefix(name, "Print") {
				report("fmt", name, at)
			}
		})
		f.calls("log", func(name string, at token.Pos) {
			if !slices.Contains(logUse, name) {
				report("log", name, at)
			}
		})
	}
	return bad
}

// function returns the function that a place lies in, nil if in none.
func (f *file) function(at token.Pos) *ast.FuncDecl {
	for _, d := range f.ast.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Pos() <= at && at < fn.End() {
			return fn
		}
	}
	return nil
}

// checkLeak: each package with tests verifies in its TestMain that none of them leaves a goroutine behind, and each that
// starts goroutines has tests; but for suites, which other packages' tests run.
func checkLeak(t *tree) (bad []string) {
	tested, starts := make(map[string]string), make(map[string]string)
	verified, suite := make(map[string]bool), make(map[string]bool)
	for _, f := range t.files {
		if !f.test() {
			suite[f.dir] = suite[f.dir] || f.local("testing") != ""
			if at := f.starts(); at.IsValid() && starts[f.dir] == "" {
				starts[f.dir] = t.at(at)
			}
			continue
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil {
				continue
			}
			if fn.Name.Name == "TestMain" {
				verified[f.dir] = verified[f.dir] || f.verifies(fn)
			} else if strings.HasPrefix(fn.Name.Name, "Test") && tested[f.dir] == "" {
				tested[f.dir] = t.at(fn.Pos())
			}
		}
	}
	for dir, at := range starts {
		if tested[dir] == "" && !suite[dir] {
			bad = append(bad, at+": package starts goroutines and has no test, which would verify that none is left")
		}
	}
	for dir, at := range tested {
		if !verified[dir] {
			bad = append(bad, at+": package has tests, but no TestMain that calls goleak.VerifyTestMain")
		}
	}
	return bad
}

// starts is where a file first starts a goroutine, itself or by a method Go.
func (f *file) starts() (at token.Pos) {
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			at = n.Pos()
		case *ast.CallExpr:
			if sel, ok := n.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Go" && len(n.Args) == 1 {
				at = n.Pos()
			}
		}
		return !at.IsValid()
	})
	return at
}

func (f *file) verifies(fn *ast.FuncDecl) (found bool) {
	f.calls("go.uber.org/goleak", func(name string, at token.Pos) {
		found = found || name == "VerifyTestMain" && fn.Pos() <= at && at < fn.End()
	})
	return found
}

// checkDoc: every exported name says what it is. Commands export nothing; fields answer to review.
func checkDoc(t *tree) (bad []string) {
	for _, f := range t.files {
		if f.test() || f.ast.Name.Name == "main" {
			continue
		}
		for _, d := range f.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) {
					bad = append(bad, fmt.Sprintf("%s: %s has no docstring", t.at(d.Pos()), d.Name.Name))
				}
			case *ast.GenDecl:
				for _, n := range bare(d) {
					bad = append(bad, fmt.Sprintf("%s: %s has no docstring", t.at(n.Pos()), n.Name))
				}
			}
		}
	}
	return bad
}

// exportedReceiver reports whether a function, or the type it is a method of, can be named from outside.
func exportedReceiver(fn *ast.FuncDecl) bool {
	if fn.Recv == nil {
		return true
	}
	x := fn.Recv.List[0].Type
	for {
		switch y := x.(type) {
		case *ast.StarExpr:
			x = y.X
		case *ast.IndexExpr:
			x = y.X
		case *ast.IndexListExpr:
			x = y.X
		case *ast.Ident:
			return y.IsExported()
		default:
			return false
		}
	}
}

// bare lists the exported names of a declaration that nothing describes: no comment above or behind them, none above
// their group. A group's comment does not speak for types and methods, each of which is a thing of its own.
func bare(d *ast.GenDecl) (names []*ast.Ident) {
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.ValueSpec:
			for _, n := range s.Names {
				if n.IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
					names = append(names, n)
				}
			}
		case *ast.TypeSpec:
			if !s.Name.IsExported() {
				continue
			}
			if s.Doc == nil && s.Comment == nil && (d.Doc == nil || d.Lparen.IsValid()) {
				names = append(names, s.Name)
			}
			if i, ok := s.Type.(*ast.InterfaceType); ok && len(i.Methods.List) > 1 { // a sole method is what the type's comment is about
				names = append(names, bareMethods(i)...)
			}
		}
	}
	return names
}

func bareMethods(i *ast.InterfaceType) (names []*ast.Ident) {
	for _, m := range i.Methods.List {
		for _, n := range m.Names { // none for an embedded interface
			if n.IsExported() && m.Doc == nil && m.Comment == nil {
				names = append(names, n)
			}
		}
	}
	return names
}

// checkPackage: every package says in one place what it is for.
func checkPackage(t *tree) (bad []string) {
	first, said := make(map[string]string), make(map[string]bool)
	for _, f := range t.files {
		if f.test() {
			continue
		}
		if first[f.dir] == "" {
			first[f.dir] = f.path
		}
		if f.ast.Doc != nil {
			if said[f.dir] {
				bad = append(bad, fmt.Sprintf("%s:1: a second package comment of %s; keep one", f.path, f.dir))
			}
			said[f.dir] = true
		}
		if slices.Contains([]string{"util", "utils", "helper", "helpers", "common", "misc", "manager"}, path.Base(f.dir)) {
			bad = append(bad, fmt.Sprintf("%s:1: package %s is named for what it is not; name it for its purpose", f.path, f.dir))
		}
	}
	for dir, p := range first {
		if !said[dir] {
			bad = append(bad, fmt.Sprintf("%s:1: package %s has no package comment", p, dir))
		}
	}
	return bad
}
