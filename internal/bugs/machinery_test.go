package bugs

import (
	"errors"
	"strings"
	"testing"
)

const sample = `# It adds
# one too many.
origin: FAULTS 1.4: off by one
origin: another
test: some/pkg.TestSum/small -some.seeds 5
says: sum is \d+
quick:
--- some/pkg/sum.go
 	sum := 0
-	sum += n
+	sum += n + 1
@@
-	return sum
+	// too late
+	return sum
--- some/pkg/other.go
-var a = 1
+var a = 2
`

func TestParse(t *testing.T) {
	t.Parallel()
	b, err := parse("sample", sample)
	if err != nil {
		t.Fatal(err)
	}
	if b.mistake != "It adds one too many." || strings.Join(b.origins, "|") != "FAULTS 1.4: off by one|another" || !b.quick || b.says.String() != `sum is \d+` {
		t.Errorf("read as %+v", b)
	}
	if b.test.pkg != "some/pkg" || b.test.test != "TestSum/small" || b.test.function() != "TestSum" || b.test.String() != "some/pkg.TestSum/small -some.seeds 5" {
		t.Errorf("its test is %+v", b.test)
	}
	want := []change{
		{"some/pkg/sum.go", "\tsum := 0\n\tsum += n\n", "\tsum := 0\n\tsum += n + 1\n"},
		{"some/pkg/sum.go", "\treturn sum\n", "\t// too late\n\treturn sum\n"},
		{"some/pkg/other.go", "var a = 1\n", "var a = 2\n"},
	}
	if len(b.changes) != len(want) {
		t.Fatalf("changes are %q", b.changes)
	}
	for i, c := range b.changes {
		if c != want[i] {
			t.Errorf("change %d is %q, want %q", i, c, want[i])
		}
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ from, to, want string }{
		"no mistake":      {"# It adds\n# one too many.\n", "", "what the mistake is"},
		"no origin":       {"origin: FAULTS 1.4: off by one\norigin: another\n", "", "needs an origin"},
		"no pattern":      {"says: sum is \\d+\n", "", "needs an origin"},
		"bad pattern":     {`\d+`, `(`, "missing closing"},
		"any failure":     {`sum is \d+`, `--- FAIL: TestSum`, "choose the message"},
		"no test":         {"some/pkg.TestSum/small -some.seeds 5", "TestSum", "names no test"},
		"unknown header":  {"quick:", "quickly:", `header "quickly:" is unknown`},
		"no line of diff": {"-\treturn sum", "\treturn sum", "begins with none of"},
		"nothing goes":    {"-var a = 1\n", "", "nothing to replace"},
		"nothing changes": {"+var a = 2", "+var a = 1", "nothing to replace"},
		"no changes":      {sample[strings.Index(sample, "--- "):], "", "it changes nothing"},
	} {
		_, err := parse("sample", strings.Replace(sample, c.from, c.to, 1))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestApplyChanges(t *testing.T) {
	t.Parallel()
	const sum = "package p\n\nfunc f(n int) int {\n\tsum := 0\n\tsum += n\n\treturn sum\n}\n"
	for name, c := range map[string]struct{ change, tree, want string }{
		"fits":           {sample, sum, ""},
		"not there":      {sample, strings.Replace(sum, "sum += n", "sum += 2 * n", 1), "these lines 0 times"},
		"there twice":    {sample, strings.Replace(sum, "\treturn sum\n", "\tif n > 0 {\n\treturn sum\n\t}\n\treturn sum\n", 1), "these lines 2 times"},
		"part of line":   {sample, strings.Replace(sum, "return sum", "return sum + 0", 1), "these lines 0 times"},
		"does not parse": {strings.Replace(sample, "sum += n + 1", "sum += (n", 1), sum, "does not parse"},
		"a test":         {strings.ReplaceAll(sample, "sum.go", "sum_test.go"), sum, "no code of the product"},
		"no such file":   {strings.Replace(sample, "other.go", "gone.go", 1), sum, "no such file"},
	} {
		b, err := parse(name, c.change)
		if err != nil {
			t.Fatal(err)
		}
		files, err := b.apply(func(path string) (string, error) {
			switch path {
			case "some/pkg/other.go":
				return "package p\n\nvar a = 1\n", nil
			case "some/pkg/gone.go":
				return "", errors.New("no such file")
			}
			return c.tree, nil
		})
		switch {
		case c.want != "":
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", name, err, c.want)
			}
		case err != nil || len(files) != 2 || files["some/pkg/sum.go"] != "package p\n\nfunc f(n int) int {\n\tsum := 0\n\tsum += n + 1\n\t// too late\n\treturn sum\n}\n" ||
			files["some/pkg/other.go"] != "package p\n\nvar a = 2\n":
			t.Errorf("%s: %q, %v", name, files, err)
		}
	}
}

// A bug is caught where its own test fails, and says what it is to say.
func TestJudge(t *testing.T) {
	t.Parallel()
	b, err := parse("sample", sample)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		output string
		passed bool
		want   verdict
		why    string
	}{
		"caught":         {"=== RUN   TestSum\n    sum_test.go:7: sum is 12\n--- FAIL: TestSum (0.00s)\nFAIL\n", false, caught, "sum_test.go:7: sum is 12"},
		"panics":         {"=== RUN   TestSum\npanic: sum is 12\n\ngoroutine 7\nFAIL\n", false, caught, "panic: sum is 12"},
		"passes":         {"=== RUN   TestSum\nsum is 12\n--- PASS: TestSum (0.00s)\nok\n", true, missed, "its test passes"},
		"another reason": {"=== RUN   TestSum\n    sum_test.go:9: no memory\n--- FAIL: TestSum (0.00s)\nFAIL\n", false, missed, "does not say"},
		"another test":   {"sum is 12\n--- FAIL: TestOther (0.00s)\nFAIL\n", false, missed, "something else failed"},
		"does not end":   {"=== RUN   TestSum\n    sum_test.go:7: sum is 12\npanic: test timed out after 10m0s\nFAIL\n", false, missed, "does not end"},
		"compiles not":   {"sum.go:5: sum is 12\nFAIL\tsome/pkg [build failed]\n", false, missed, "does not compile"},
		"no such test":   {"testing: warning: no tests to run\nok  \tsome/pkg [no tests to run]\n", true, missed, "no such test"},
		"skipped":        {"=== RUN   TestSum\n--- SKIP: TestSum (0.00s)\nok\n", true, notRun, "skipped"},
	} {
		if v, why := b.judge(c.output, c.passed); v != c.want || !strings.Contains(why, c.why) {
			t.Errorf("%s: %v, %q; want %v, %q", name, v, why, c.want, c.why)
		}
	}
}
