package scheduler

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Each reason that the core or a store can record is said in words: their sources are read for what they write.
func TestReasonsAreComplete(t *testing.T) {
	t.Parallel()
	written := map[string]string{}
	for _, dir := range []string{"../internal/core", "../idempotency"} {
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "storetest") {
				return err
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err == nil {
				ast.Inspect(f, func(n ast.Node) bool {
					for _, s := range reasonsIn(n) {
						written[s] = path
					}
					return true
				})
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if written["exhausted"] == "" || written["overlap"] == "" {
		t.Fatalf("the reasons are written some other way by now; found are %v", written)
	}
	for s, path := range written {
		if w, known := reasons[s]; !known || w == (why{}) {
			t.Errorf("%s writes the reason %q, which has no words in reasons.go", path, s)
		}
	}
	for s, w := range reasons {
		for _, words := range []string{w.ended, w.waits} {
			if words != "" && (!strings.HasSuffix(words, ".") || strings.ToUpper(words[:1]) != words[:1]) {
				t.Errorf("%q is said as %q, which is no sentence", s, words)
			}
		}
	}
	if s := reasonFor("moonlight", true); !strings.Contains(s, `"moonlight"`) {
		t.Errorf("an unknown reason is said as %q", s)
	}
}

// reasonsIn are the values of constants that are named reason…, or byHand, and what is written to a field Reason.
func reasonsIn(n ast.Node) (list []string) {
	value := func(e ast.Expr) {
		if l, ok := e.(*ast.BasicLit); ok && l.Kind == token.STRING {
			if s, err := strconv.Unquote(l.Value); err == nil && s != "" {
				list = append(list, s)
			}
		}
	}
	switch n := n.(type) {
	case *ast.ValueSpec:
		for i, name := range n.Names {
			if i < len(n.Values) && (strings.HasPrefix(name.Name, "reason") || name.Name == "byHand") {
				value(n.Values[i])
			}
		}
	case *ast.KeyValueExpr:
		if k, ok := n.Key.(*ast.Ident); ok && k.Name == "Reason" {
			value(n.Value)
		}
	}
	return list
}

func TestFirstLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", " one \r\n": "one", "one\ntwo": "one …", "\n\n one\n": "one",
		strings.Repeat("é", 200): strings.Repeat("é", 150) + " …", "x" + strings.Repeat("é", 200): "x" + strings.Repeat("é", 149) + " …",
	} {
		if got := firstLine(text); got != want {
			t.Errorf("of %q the first line is %q, want %q", text, got, want)
		}
	}
}
