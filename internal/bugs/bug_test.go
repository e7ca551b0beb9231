package bugs

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// bug is one file of testdata.
type bug struct {
	name    string // of the file, without its ending
	mistake string
	origins []string
	test    named
	says    *regexp.Regexp // what the output of the test has to hold: it fails for the bug, and not for something else
	quick   bool           // one of those that CI tries
	changes []change
}

// named is a test by its package's folder and its name, with the flags that it is run with.
type named struct {
	pkg, test string
	flags     []string
}

func (n named) String() string {
	return strings.Join(append([]string{n.pkg + "." + n.test}, n.flags...), " ")
}

// function is the test's function: a name may go on with that of a subtest.
func (n named) function() string {
	name, _, _ := strings.Cut(n.test, "/")
	return name
}

// change replaces whole lines of a file, which it has once.
type change struct {
	file     string
	old, new string
}

// parse reads a bug. Above its first "--- FILE" there are comments, which say what the mistake is, and "word: value" lines; below it is what a diff
// has of each change but for the numbers: lines that begin with a space stay, with a minus go, with a plus come. An @@ begins another change of
// the same file.
func parse(name, text string) (*bug, error) {
	head, body, changes := strings.Cut("\n"+text, "\n--- ")
	b := &bug{name: name}
	var errs []error
	for line := range strings.Lines(head) {
		errs = append(errs, b.header(strings.TrimSpace(line)))
	}
	if !changes {
		return nil, fmt.Errorf("bug %s: it changes nothing", name)
	}
	for part := range strings.SplitSeq("\n"+body, "\n--- ") {
		file, hunks, _ := strings.Cut(strings.TrimPrefix(part, "\n"), "\n")
		for hunk := range strings.SplitSeq("\n"+hunks, "\n@@") {
			c, err := parseChange(file, hunk)
			b.changes, errs = append(b.changes, c), append(errs, err)
		}
	}
	b.mistake = strings.TrimSpace(b.mistake)
	switch {
	case b.mistake == "":
		errs = append(errs, errors.New("no comment says what the mistake is"))
	case len(b.origins) == 0 || b.says == nil || b.test.test == "":
		errs = append(errs, errors.New("it needs an origin, a test, and what that says"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("bug %s: %w", name, err)
	}
	return b, nil
}

func (b *bug) header(line string) (err error) {
	word, value, _ := strings.Cut(line, ":")
	value = strings.TrimSpace(value)
	switch {
	case line == "":
	case line[0] == '#':
		b.mistake += strings.TrimSpace(line[1:]) + " "
	case word == "origin":
		b.origins = append(b.origins, value)
	case word == "says":
		if b.says, err = regexp.Compile(value); strings.Contains(value, "--- FAIL") {
			err = fmt.Errorf("%q is said of any failure; choose the message", value)
		}
	case word == "quick":
		b.quick = true
	case word == "test":
		words := strings.Fields(value)
		dot := strings.LastIndexByte(words[0], '.')
		if dot < 0 {
			return fmt.Errorf("%q names no test; it is to be package.TestName", value)
		}
		b.test = named{words[0][:dot], words[0][dot+1:], words[1:]}
	default:
		err = fmt.Errorf("header %q is unknown", line)
	}
	return err
}

func parseChange(file, hunk string) (change, error) {
	c := change{file: file}
	for line := range strings.Lines(strings.Trim(hunk, "\n") + "\n") {
		switch rest := line[1:]; line[0] {
		case ' ':
			c.old, c.new = c.old+rest, c.new+rest
		case '-':
			c.old += rest
		case '+':
			c.new += rest
		default:
			return c, fmt.Errorf("%s: line %q begins with none of space, minus and plus", file, line)
		}
	}
	if file == "" || c.old == "" || c.old == c.new {
		return c, fmt.Errorf("file %q: a change has nothing to replace", file)
	}
	return c, nil
}

// apply returns the changed files of a bug, by their paths. Read reads one as it is.
func (b *bug) apply(read func(path string) (string, error)) (map[string]string, error) {
	files := make(map[string]string)
	for _, c := range b.changes {
		text, changed := files[c.file]
		if !changed {
			var err error
			if text, err = read(c.file); err != nil {
				return nil, fmt.Errorf("bug %s: %w", b.name, err)
			}
		}
		if n := strings.Count("\n"+text, "\n"+c.old); n != 1 {
			return nil, fmt.Errorf("bug %s: %s has these lines %d times, and is to have them once; choose others that make the same mistake:\n%s", b.name, c.file, n, c.old)
		}
		files[c.file] = strings.TrimPrefix(strings.Replace("\n"+text, "\n"+c.old, "\n"+c.new, 1), "\n")
	}
	for path, text := range files {
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil, fmt.Errorf("bug %s: %s is no code of the product", b.name, path)
		}
		if _, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution); err != nil {
			return nil, fmt.Errorf("bug %s: what it makes does not parse: %w", b.name, err)
		}
	}
	return files, nil
}

// verdict is what became of one bug.
type verdict int

const (
	caught verdict = iota
	missed
	notRun // the test was skipped: what it needs is not here
)

// judge reads the output of a test that ran with the bug. Where it is caught, why is the line that says so.
func (b *bug) judge(output string, passed bool) (v verdict, why string) {
	failed := strings.Contains(output, "--- FAIL: "+b.test.function()) || strings.Contains(output, "\npanic: ")
	lines := strings.Split(output, "\n")
	i := slices.IndexFunc(lines, b.says.MatchString)
	switch {
	case passed && strings.Contains(output, "--- SKIP: "+b.test.function()):
		return notRun, "its test was skipped"
	case passed && strings.Contains(output, "[no tests to run]"):
		return missed, "there is no such test"
	case passed:
		return missed, "its test passes"
	case strings.Contains(output, "[build failed]"):
		return missed, "it does not compile:\n" + output
	case strings.Contains(output, "panic: test timed out"):
		return missed, "its test does not end:\n" + tail(lines)
	case !failed:
		return missed, "something else failed:\n" + output
	case i < 0:
		return missed, fmt.Sprintf("its test fails, but does not say %q:\n%s", b.says, tail(lines))
	}
	return caught, strings.TrimSpace(lines[i])
}

func tail(lines []string) string { return strings.Join(lines[max(0, len(lines)-60):], "\n") }
