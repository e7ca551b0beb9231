package house

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// direction is a line of mayImport.
type direction struct {
	pkg  string
	ours []string
}

// mayImport says which packages of this module a package may import, tests aside; the first line that matches counts.
// "x/..." is everything below x. A package without a line is a problem too: its place has to be decided, here.
var mayImport = []direction{
	{"jobs", []string{"jobs/internal/..."}},
	{"jobs/internal/...", []string{"jobs/internal/..."}},
	{"ring", nil},
	{"idempotency", nil},
	{"membership", nil},
	{"internal/timetable", nil},
	{"internal/core", []string{"jobs", "ring", "idempotency", "internal/timetable"}},
	{"internal/completion", []string{"jobs", "idempotency"}},
	{"scheduler", []string{"jobs", "ring", "idempotency", "internal/completion", "internal/core"}},
	{"idempotency/...", []string{"jobs", "ring", "idempotency", "idempotency/internal/...", "internal/completion"}},
	{"membership/...", []string{"membership"}},
	{"scheduler/...", []string{"jobs", "ring", "idempotency", "membership", "scheduler"}},
	{"internal/oracle", nil}, // what judges the product shares no code with it
	{"internal/...", []string{"jobs", "ring", "idempotency", "idempotency/...", "membership", "scheduler", "internal/..."}},
	{"cmd/...", []string{"jobs", "ring", "idempotency", "idempotency/...", "membership", "membership/...", "scheduler", "scheduler/...", "internal/...", "cmd/..."}},
	{"examples/...", []string{"jobs", "ring", "idempotency", "idempotency/...", "membership", "membership/...", "scheduler", "scheduler/...", "examples/..."}},
	{"tools/...", nil}, // a module of its own
	{".", nil},
}

// onlyIn says where a dependency may be imported, tests included: its types and its faults stop there.
var onlyIn = []struct {
	dep string // an import path, or the start of one
	in  []string
}{
	{"github.com/hashicorp/memberlist", []string{"membership", "internal/simnet"}}, // simnet is its transport
	{"github.com/hashicorp/go-msgpack", []string{"membership"}},                    // its tests write what hostile neighbours would
	{"github.com/buraksezer/consistent", []string{"ring"}},
	{"golang.org/x/time", []string{"internal/core"}},
	{"github.com/robfig/cron", []string{"jobs"}},
	{"modernc.org/sqlite", []string{"idempotency/sqlite", "cmd", "examples"}},
	{"github.com/jackc/pgx", []string{"idempotency/postgres", "internal/testservers", "internal/ordeal", "internal/rig", "cmd", "examples"}},        // testservers makes databases
	{"github.com/go-sql-driver/mysql", []string{"idempotency/mysql", "internal/testservers", "internal/ordeal", "internal/rig", "cmd", "examples"}}, // likewise
	{"github.com/cenkalti/backoff", []string{"idempotency/postgres", "idempotency/mysql", "membership/etcdelector", "scheduler"}},
	{"github.com/anishathalye/porcupine", []string{"internal/ordeal"}},
	{"go.yaml.in/yaml", []string{"examples"}},
	{"github.com/redis/go-redis", []string{"idempotency/redis", "cmd", "examples"}},
	{"go.etcd.io/etcd/server", []string{"internal/etcdservers", "examples"}}, // a consumer's binary has no server in it
	{"go.etcd.io/etcd", []string{"idempotency/etcd", "membership/etcdelector", "internal/etcdservers", "internal/etcdrig", "examples"}},
	// A test elsewhere would bring etcd into the go.sum of who imports the package that it tests.
	{module + "/internal/etcdservers", []string{"internal/etcdservers", "membership/etcdelector", "internal/etcdrig"}},
	{module + "/membership/etcdelector", []string{"membership/etcdelector", "internal/etcdrig", "examples"}},
	{"go.uber.org/zap", []string{"membership/etcdelector", "internal/etcdservers", "internal/etcdrig", "examples"}}, // silences etcd's log
	{"github.com/prometheus", []string{"scheduler/promhooks", "cmd/belfry/internal/bench", "examples"}},             // bench counts the series,
	{"github.com/hashicorp/go-metrics", []string{"cmd/belfry/internal/bench"}},                                      // memberlist tells the length of its queue there alone
	{"github.com/spf13/cobra", []string{"cmd"}},
	{"github.com/spf13/pflag", []string{"cmd"}},
}

// matches reports whether dir is what pattern names: itself, or for "x/..." anything below x.
func matches(pattern, dir string) bool {
	if below, ok := strings.CutSuffix(pattern, "/..."); ok {
		return strings.HasPrefix(dir, below+"/")
	}
	return pattern == dir
}

// checkDirection: packages of this module import each other only in the directions of mayImport, and tests and
// examples never reach what a reader of the examples could not.
func checkDirection(t *tree) (bad []string) {
	for _, f := range t.files {
		i := slices.IndexFunc(mayImport, func(d direction) bool { return matches(d.pkg, f.dir) })
		if i < 0 {
			bad = append(bad, fmt.Sprintf("%s:1: package %s has no line in mayImport; decide what it may import", f.path, f.dir))
			continue
		}
		for imported, pos := range f.imports() {
			ours, ok := strings.CutPrefix(imported, module+"/")
			if !ok || f.test() && !f.under("examples") || slices.ContainsFunc(mayImport[i].ours, func(p string) bool { return matches(p, ours) }) {
				continue
			}
			bad = append(bad, fmt.Sprintf("%s: package %s may not import %s", t.at(pos), f.dir, ours))
		}
	}
	return bad
}

// checkDependency: a dependency is imported only where onlyIn says.
func checkDependency(t *tree) (bad []string) {
	for _, f := range t.files {
		for imported, pos := range f.imports() {
			for _, rule := range onlyIn {
				if !strings.HasPrefix(imported, rule.dep) || slices.ContainsFunc(rule.in, f.under) {
					continue
				}
				bad = append(bad, fmt.Sprintf("%s: only %s may import %s", t.at(pos), strings.Join(rule.in, ", "), rule.dep))
			}
		}
	}
	return bad
}

// A consumer is a service that embeds Belfry with SQLite, the plain case. What it compiles, each of its deploys carries.
var (
	consumer   = []string{"scheduler", "membership", "jobs", "idempotency/sqlite"}
	notForThem = []string{
		"github.com/jackc", "github.com/lib/pq", "github.com/go-sql-driver", "filippo.io/edwards25519", "github.com/redis",
		"github.com/anishathalye/porcupine", "go.yaml.in/yaml", "k8s.io",
		"go.etcd.io", "google.golang.org/grpc", "google.golang.org/protobuf",
		"github.com/prometheus", "go.opentelemetry.io",
		"github.com/charmbracelet", "golang.org/x/term", "github.com/mattn/go-isatty", "github.com/spf13",
		"github.com/stretchr", "go.uber.org/goleak", "pgregory.net/rapid", "testing",
	}
)

// onlyThrough says by which packages a dependency may be compiled, whatever they import on the way: who imports any other package of this
// module compiles none of it.
var onlyThrough = []struct{ deps, in []string }{
	{
		[]string{"go.etcd.io", "google.golang.org/grpc", "google.golang.org/genproto"},
		[]string{"idempotency/etcd", "membership/etcdelector", "internal/etcdservers", "internal/etcdrig", "examples/global-report"},
	},
}

// checkThrough: a dependency of onlyThrough is compiled by nobody else.
func checkThrough(all map[string]built) (bad []string) {
	for _, rule := range onlyThrough {
		via := make(map[string]string) // package: what it compiles of the rule's, "" for nothing
		var reaches func(p string) string
		reaches = func(p string) string {
			if dep, ok := via[p]; ok {
				return dep
			}
			via[p] = ""
			if slices.ContainsFunc(rule.deps, func(d string) bool { return strings.HasPrefix(p, d+"/") }) {
				via[p] = p
			}
			for _, q := range all[p].Imports {
				if via[p] == "" {
					via[p] = reaches(q)
				}
			}
			return via[p]
		}
		for _, p := range slices.Sorted(maps.Keys(all)) {
			ours, ok := strings.CutPrefix(p, module+"/")
			if !ok || reaches(p) == "" || slices.ContainsFunc(rule.in, func(in string) bool { return ours == in || strings.HasPrefix(ours, in+"/") }) {
				continue
			}
			bad = append(bad, fmt.Sprintf("package %s compiles %s; only %s may", ours, reaches(p), strings.Join(rule.in, ", ")))
		}
	}
	return bad
}

// checkCompiled: a consumer compiles none of what only other drivers, tools and tests need, and nothing needs C.
func checkCompiled(all map[string]built) (bad []string) {
	bad = checkThrough(all)
	from := make(map[string]string) // package: who imports it first
	var queue []string
	for _, c := range consumer {
		if _, ok := all[module+"/"+c]; !ok {
			bad = append(bad, fmt.Sprintf("package %s is gone; a consumer imports it", c))
		}
		from[module+"/"+c] = "the consumer"
		queue = append(queue, module+"/"+c)
	}
	for len(queue) > 0 {
		p := queue[0]
		queue = queue[1:]
		for _, dep := range all[p].Imports {
			if _, seen := from[dep]; !seen {
				from[dep] = p
				queue = append(queue, dep)
			}
		}
	}
	for _, p := range slices.Sorted(maps.Keys(from)) {
		if slices.ContainsFunc(notForThem, func(dep string) bool { return p == dep || strings.HasPrefix(p, dep+"/") }) {
			bad = append(bad, fmt.Sprintf("a consumer of SQLite compiles %s, imported by %s", p, from[p]))
		}
	}
	for _, p := range slices.Sorted(maps.Keys(all)) {
		if !all[p].Standard && len(all[p].CgoFiles) > 0 {
			bad = append(bad, fmt.Sprintf("%s needs C: %v; go test must work with Go alone", p, all[p].CgoFiles))
		}
	}
	return bad
}
