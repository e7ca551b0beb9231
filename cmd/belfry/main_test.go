package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/belfry-go/belfry/internal/testservers"
)

// TestMain lets the test binary be the program: demo and bench start it again, with arguments that no test run has.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-test.") {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	goleak.VerifyTestMain(testservers.Main(m))
}

// result is what a command did.
type result struct {
	status   int
	out, err string
}

func (r result) String() string {
	return fmt.Sprintf("status %d, out %q, err %q", r.status, r.out, r.err)
}

func belfry(t *testing.T, in string, args ...string) result {
	t.Helper()
	var out, errOut bytes.Buffer
	status := run(t.Context(), args, strings.NewReader(in), &out, &errOut)
	return result{status, out.String(), errOut.String()}
}

const storeForms = "give sqlite:PATH, postgres://USER@HOST:PORT/DATABASE or mysql://USER@HOST:PORT/DATABASE\n"

func TestCommands(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, in string
		args     []string
		want     result
	}{
		{"slot", "", []string{"ring", "slot", "c-000001", "c-000002"}, result{0, "56975\tc-000001\n37314\tc-000002\n", ""}},
		{"slot of lines", "c-000001\nc-000002\n", []string{"ring", "slot"}, result{0, "56975\tc-000001\n37314\tc-000002\n", ""}},
		{"slot of nothing", "", []string{"ring", "slot"}, result{}},
		{"empty line", "a\n\n", []string{"ring", "slot"}, result{1, "", "belfry: ring: line 2: jobs: key is empty; a key has 1 to 255 bytes\n"}},
		{"no members", "", []string{"ring", "owner", "k"}, result{1, "", "belfry: ring: --members is empty; give the members' names, such as --members a,b,c\n"}},
		{"empty name", "", []string{"ring", "owner", "--members", "a,,b", "k"}, result{1, "", "belfry: ring: --members: name 2, \"\", is empty; take out a comma\n"}},
		{"space", "", []string{"ring", "owner", "--members", "a, b", "k"},
			result{1, "", "belfry: ring: --members: name 2, \" b\", has a space, a quote or what cannot be printed; write names alone, with commas between\n"}},
		{"quote", "", []string{"ring", "plan", "--from", `"a"`, "--to", "b"},
			result{1, "", "belfry: ring: --from: name 1, \"\\\"a\\\"\", has a space, a quote or what cannot be printed; write names alone, with commas between\n"}},
		{"lines", "", []string{"ring", "plan", "--from", "a", "--to", "b\nc"},
			result{1, "", "belfry: ring: --to: name 1, \"b\\nc\", has a space, a quote or what cannot be printed; write names alone, with commas between\n"}},
		{"twice", "", []string{"ring", "owner", "--members", "a,b", "--members", "a", "k"}, result{1, "", "belfry: ring: --members: name 3, \"a\", is listed twice; list each once\n"}},
		{"a hostile name is cut", "", []string{"ring", "owner", "--members", strings.Repeat("x", 1000) + " ", "k"},
			result{1, "", "belfry: ring: --members: name 1, \"" + strings.Repeat("x", 40) + "\"…, has a space, a quote or what cannot be printed; write names alone, with commas between\n"}},
		{"too many ranks", "", []string{"ring", "owner", "--members", "a", "--ranks", "17", "k"}, result{1, "", "belfry: ring: --ranks 17: give 1 to 16\n"}},
		{"endless line", strings.Repeat("x", 1<<17), []string{"ring", "slot"},
			result{1, "", "belfry: ring: standard input has a line of more than 65536 bytes; give one key a line, of 1 to 255 bytes\n"}},
		{"one member owns all", "", []string{"ring", "owner", "--members", "a", "--ranks", "3", "c-000001"}, result{0, "c-000001\t3727\ta\n", ""}},
		{"no ranks", "", []string{"ring", "owner", "--members", "a", "--ranks", "0", "k"}, result{1, "", "belfry: ring: --ranks 0: give 1 to 16\n"}},
		{"nothing moves", "", []string{"ring", "plan", "--from", "a,b", "--to", "b,a"}, result{0, "0 of 4096 partitions move (0.0 %)\n", ""}},
		{"all move", "", []string{"ring", "plan", "--from", "a", "--to", "b", "--partitions", "8"}, result{0, "a\tb\t8\n8 of 8 partitions move (100.0 %)\n", ""}},
		{"each moves", "", []string{"ring", "plan", "--each", "--from", "a", "--to", "b", "--partitions", "2"}, result{0, "0\ta\tb\n1\ta\tb\n", ""}},
		{"no to", "", []string{"ring", "plan", "--from", "a"}, result{1, "", "belfry: ring: --to is empty; give the members' names, such as --to a,b,c\n"}},
		{"unknown command", "", []string{"rign"}, result{2, "", "belfry: unknown command \"rign\" for \"belfry\"\n\nDid you mean this?\n\tring\n\n"}},
		{"unknown flag", "", []string{"demo", "--night", "3"}, result{2, "", "belfry: unknown flag: --night\n"}},
		{"unknown flag of none", "", []string{"--json", "jobs"}, result{2, "", "belfry: unknown flag: --json\n"}},
		{"unknown argument", "", []string{"version", "now"}, result{2, "", "belfry: unknown command \"now\" for \"belfry version\"\n"}},
		{"too many nights", "", []string{"demo", "--nights", "1000"}, result{1, "", "belfry: demo: --nights 1000: give 1 to 100\n"}},
		{"password in the flag", "", []string{"demo", "--store", "postgres://u:c4nary@h/db"}, result{1, "", "belfry: --store: it has a password, and all users of this host can read a program's arguments; " +
			"put the URL into BELFRY_STORE, or the password into ~/.pgpass (or the file that PGPASSFILE names) or PGPASSWORD\n"}},
		{"unknown store", "", []string{"migrate", "--store", "redis://h"}, result{1, "", "belfry: --store: unknown scheme \"redis\"; " + storeForms}},
		{"no store", "", []string{"keys", "fill", "--table", "t"}, result{1, "", "belfry: no store is named; give --store or set BELFRY_STORE: " + storeForms}},
		{"no store to print", "", []string{"migrate", "--print"}, result{1, "", "belfry: no store is named; give --store or set BELFRY_STORE: " + storeForms}},
		{"half a repartition", "", []string{"migrate", "--store", "sqlite:x", "--partitions", "8"},
			result{1, "", "belfry: migrate: --namespace and --partitions belong together; give both or neither\n"}},
		{"print a repartition", "", []string{"migrate", "--store", "sqlite:x", "--print", "--namespace", "n", "--partitions", "8"},
			result{1, "", "belfry: migrate: --print prints the tables' SQL alone; leave out --namespace and --partitions\n"}},
		{"no file of keys", "", []string{"keys", "fill", "--store", "sqlite:/nowhere/x.db", "--table", "t", "--key", "k", "--slot", "s"},
			result{1, "", "belfry: keys: table \"t\": unable to open database file (14)\n"}},
		{"too short a bench", "", []string{"bench", "latency", "--seconds", "0", "--rounds", "0"},
			result{1, "", "belfry: bench: --seconds 0: give 1 to 3600\nbench: --rounds 0: give 1 to 100\n"}},
		{"too long a bench", "", []string{"bench", "idle", "--seconds", "1201"}, result{1, "", "belfry: bench: --seconds 1201: give 1 to 1200\n"}},
		{"no soak", "", []string{"bench", "soak", "--minutes", "0"}, result{1, "", "belfry: bench: --minutes 0: give 1 to 1440\n"}},
		{"odd timers", "", []string{"bench", "timers", "--entries", "999", "--seconds", "0"},
			result{1, "", "belfry: bench: --entries 999: give 1000 to 10000000\nbench: --seconds 0: give 1 to 600\n"}},
		{"odd gossip", "", []string{"bench", "gossip", "--members", "101", "--profile", "local", "--rounds", "0", "--idle", "1ms"}, result{1, "",
			"belfry: bench: --members 101: give 2 to 100\nbench: --profile \"local\": give fast, lan or wan\nbench: --rounds 0: give 1 to 100\nbench: --idle 1ms: give 1s to 1h0m0s\n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := belfry(t, c.in, c.args...)
			if strings.Contains(c.want.err, "line 2") {
				got.out = "" // what came before the bad line
			}
			if got != c.want {
				t.Errorf("got  %v\nwant %v", got, c.want)
			}
		})
	}
}

func TestOwnerAgreesWithPlan(t *testing.T) {
	t.Parallel()
	before := belfry(t, "", "ring", "owner", "--members", "c,a,b", "--ranks", "2", "c-000007")
	fields := strings.Split(strings.TrimSpace(before.out), "\t")
	if len(fields) != 4 {
		t.Fatalf("owner printed %q", before.out)
	}
	rest := strings.Join(strings.FieldsFunc("a,b,c", func(r rune) bool { return r == ',' || string(r) == fields[2] }), ",")
	moved := belfry(t, "", "ring", "plan", "--each", "--from", "a,b,c", "--to", rest)
	if line := fields[1] + "\t" + fields[2] + "\t"; !strings.Contains("\n"+moved.out, "\n"+line) {
		t.Errorf("%s leaves, and no line of the plan begins with %q", fields[2], line)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	if r := belfry(t, "", "version"); r.status != 0 || !strings.HasPrefix(r.out, "belfry ") || strings.Count(r.out, "\n") != 1 {
		t.Errorf("got %v", r)
	}
	info := &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}, Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "true"},
	}}
	if got, want := version(info), "belfry v1.2.3, commit 0123456789ab with changes, "; !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want it to begin with %q", got, want)
	}
	if got := version(nil); !strings.HasPrefix(got, "belfry (unknown), ") {
		t.Errorf("without build information: %q", got)
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"ring"}, {"bench"}, {"keys"}, {"migrate", "--help"}, {"demo", "--help"}, {"next", "--help"}, {"help", "next"}, {"runs", "--help"}, {"help", "cancel"}, {"backfill", "--help", "--json"}} {
		r := belfry(t, "", args...)
		if r.status != 0 || !strings.Contains(r.out, "Usage:") || strings.Contains(r.out, " NAME") {
			t.Errorf("%q: got %v", args, r)
		}
	}
}
