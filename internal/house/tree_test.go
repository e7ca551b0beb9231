package house

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os/exec"
	"path"
	"strconv"
	"strings"
)

const module = "github.com/belfry-go/belfry"

// tree is a checkout, or what a test says is one, read and parsed once.
type tree struct {
	root  fs.FS
	set   *token.FileSet
	files []*file
	pages []page
	mods  []page // go.mod files
}

// file is one Go file.
type file struct {
	path, dir string // slash-separated, from the root; dir is "." at the root
	text      string
	ast       *ast.File
}

// page is a file read as text.
type page struct{ path, text string }

func (f *file) test() bool { return strings.HasSuffix(f.path, "_test.go") }

// under reports whether the file lies in dir or below it.
func (f *file) under(dir string) bool { return f.dir == dir || strings.HasPrefix(f.dir, dir+"/") }

// imports returns the file's imported paths, each with the place that says so.
func (f *file) imports() map[string]token.Pos {
	m := make(map[string]token.Pos, len(f.ast.Imports))
	for _, spec := range f.ast.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil {
			m[p] = spec.Pos()
		}
	}
	return m
}

// local is the name by which the file calls the package of the given path, "" if it does not import it.
func (f *file) local(imported string) string {
	for _, spec := range f.ast.Imports {
		if spec.Path.Value != strconv.Quote(imported) {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path.Base(imported)
	}
	return ""
}

// calls visits each mention of pkg.Name in the file, for a package given by its import path.
func (f *file) calls(imported string, visit func(name string, at token.Pos)) {
	local := f.local(imported)
	if local == "" {
		return
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := s.X.(*ast.Ident); ok && x.Name == local {
			visit(s.Sel.Name, s.Pos())
		}
		return true
	})
}

// at writes a place as path:line.
func (t *tree) at(pos token.Pos) string {
	p := t.set.Position(pos)
	return fmt.Sprintf("%s:%d", p.Filename, p.Line)
}

// load reads every Go file, Markdown page and go.mod of root. Folders that start with a dot or an underscore, and
// testdata, are not part of the house, as the go command sees it too.
func load(root fs.FS) (*tree, error) {
	t := &tree{root: root, set: token.NewFileSet()}
	err := fs.WalkDir(root, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if p != "." && (name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")) {
				return fs.SkipDir
			}
			return nil
		}
		return t.add(p)
	})
	return t, err
}

func (t *tree) add(p string) error {
	switch {
	case path.Ext(p) == ".go", path.Ext(p) == ".md", path.Base(p) == "go.mod":
	default:
		return nil
	}
	b, err := fs.ReadFile(t.root, p)
	if err != nil {
		return err
	}
	switch path.Ext(p) {
	case ".mod":
		t.mods = append(t.mods, page{p, string(b)})
	case ".md":
		t.pages = append(t.pages, page{p, string(b)})
	case ".go":
		a, err := parser.ParseFile(t.set, p, b, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		t.files = append(t.files, &file{path: p, dir: path.Dir(p), text: string(b), ast: a})
	}
	return nil
}

// built is a package as `go list` describes it.
type built struct {
	ImportPath string
	Standard   bool
	CgoFiles   []string
	Imports    []string
}

// readList reads the output of `go list -json`, a stream of objects.
func readList(r io.Reader) (map[string]built, error) {
	all := make(map[string]built)
	for d := json.NewDecoder(r); ; {
		var b built
		if err := d.Decode(&b); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("house: go list: %w", err)
		}
		all[b.ImportPath] = b
	}
}

// listed asks the go command for every package that this module's packages compile, without their tests.
func listed(root string) (map[string]built, error) {
	c := exec.Command("go", "list", "-deps", "-json=ImportPath,Standard,CgoFiles,Imports", "./...")
	c.Dir = root
	c.Env = append(c.Environ(), "CGO_ENABLED=1") // else files that need C are hidden; listing needs no compiler
	out, err := c.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return nil, fmt.Errorf("house: go list: %w", err)
	}
	return readList(strings.NewReader(string(out)))
}
