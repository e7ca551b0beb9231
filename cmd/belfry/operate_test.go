package main

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/scheduler"
)

// What the caller wrote wrong is told before any store is looked for: status 2, in words, or as JSON to programs.
func TestOperationMisuse(t *testing.T) {
	t.Parallel()
	here := " --store sqlite:/nowhere/x.db --namespace billing"
	for _, c := range []struct{ args, want string }{
		{"jobs --store sqlite:x", "jobs: no namespace is named; give --namespace or set BELFRY_NAMESPACE to the one in the replicas' scheduler.Config"},
		{"jobs --namespace billing", "jobs: no store is named; give --store or set BELFRY_STORE: " + strings.TrimSpace(storeForms)},
		{"jobs --namespace a/b", `jobs: --namespace: namespace "a/b": not a name; use 1 to 64 of A-Z a-z 0-9 . _ -`},
		{"jobs --namespace n --store postgres://u:c4nary@h/db", "jobs: --store: it has a password, and all users of this host can read a program's arguments; " +
			"put the URL into BELFRY_STORE, or the password into ~/.pgpass (or the file that PGPASSFILE names) or PGPASSWORD"},
		{"pause r --namespace n --store mysql://u:c4nary@h/db", "pause: --store: it has a password, and all users of this host can read a program's arguments; " +
			"put the URL into BELFRY_STORE, or the password into MYSQL_PWD"},
		{"jobs --prefix x_" + here, "jobs: sqlite: tables have no other prefix than belfry_; leave --prefix out"},
		{"jobs --namespace n --store mysql://h/db --prefix x-", `jobs: mysql: prefix "x-": use a letter or _`},
		{"jobs --namespace n --store postgres://u@h/db?sslmode=bogus", "jobs: store postgres://u@h/db: cannot parse "},
		{"pause r --namespace n --store mysql://u@h/db?tls=perhaps", "pause: store mysql://u@h/db: parameter tls: give true"},
		{"jobs --timeout 0s" + here, "jobs: --timeout 0s: give a time above zero, such as 30s"},
		{"jobs renewals" + here, `jobs: argument "renewals": it takes flags alone; see its --help`},
		{"leader a" + here, `leader: argument "a": it takes flags alone; see its --help`},
		{"runs --bogus" + here, "runs: unknown flag: --bogus; see belfry runs --help"},
		{"runs --limit 0" + here, "runs: --limit 0: give 1 to 100000"},
		{"runs --state asleep" + here, `runs: --state "asleep": give one of waiting, running, ended`},
		{"runs --outcome wait" + here, `runs: --outcome "wait": give one of done, failed, skipped, missed`},
		{"runs --outcome done --state running" + here, "runs: only runs that have ended have an outcome; leave --state or --outcome out"},
		{"runs --from 2026-10-02T00:00:00Z --to 2026-10-01T00:00:00Z" + here, "runs: --from 2026-10-02T00:00:00Z is not before --to 2026-10-01T00:00:00Z; exchange them"},
		{"runs --job a/b" + here, `runs: --job: jobs: name "a/b": `},
		{"runs --key a --key-hex 61" + here, "runs: --key and --key-hex name the same; give one of them"},
		{"runs --key-hex 6" + here, `runs: --key-hex "6": give two hexadecimal digits for each byte, such as 63002d31`},
		{"runs --key=" + here, "runs: --key: jobs: key is empty; a key has 1 to 255 bytes"},
		{"commands --limit 100001" + here, "commands: --limit 100001: give 1 to 100000"},
		{"explain --due 2026-10-01T00:00:00Z" + here, "explain: 0 arguments: give the name of one job"},
		{"explain billing:renewals/c-3@2026-10-01T04:00:00Z" + here, `explain: "billing:renewals/c-3@2026-10-01T04:00:00Z" is the ID of a run; give the name of its job, and the rest by --key, --due and --namespace`},
		{"explain a b" + here, "explain: 2 arguments: give the name of one job"},
		{"explain r" + here, "explain: no due is named; give --due, such as --due 2026-10-01T04:00:00Z; belfry runs --job r lists them"},
		{"explain r --due 2026-10-01" + here, `explain: --due "2026-10-01": write the instant with its zone, as 2026-10-01T04:00:00Z or 2026-10-01T06:00:00+02:00`},
		{"explain r --due 2026-10-01T04:00:00" + here, `explain: --due "2026-10-01T04:00:00": write the instant with its zone`},
		{"explain r --due 2026-10-01T4:00:00Z" + here, `explain: --due "2026-10-01T4:00:00Z": write the instant with its zone`},
		{"explain r --due 2026-02-30T04:00:00Z" + here, `explain: --due "2026-02-30T04:00:00Z": write the instant with its zone`},
		{"explain r --due now" + here, `explain: --due "now": write the instant with its zone`},
		{"explain r --due 2026-10-01T04:00:00.5Z" + here, `explain: --due "2026-10-01T04:00:00.5Z": a due is a whole second`},
		{"cancel r --due 2026-10-01T04:00:00Z --request a/b" + here, `cancel: --request: jobs: request "a/b": `},
		{"retry r --due 2026-10-01T04:00:00Z --command a/b" + here, `retry: --command: jobs: request "a/b": `},
		{"pause r --request " + strings.Repeat("r", 37) + here, "pause: --request: jobs: "},
		{"pause r --reason \xff" + here, "pause: actor or reason is not valid UTF-8; replace the bytes that are not"},
		{"pause r --actor " + strings.Repeat("a", 256) + here, "pause: actor "},
		{"trigger r --payload {" + here, `trigger: --payload "{" is not JSON; put it in quotes for the shell, or give @FILE or - for what is not JSON`},
		{"trigger r --payload @/nowhere/x" + here, "trigger: --payload: open /nowhere/x: "},
		{"backfill r --from 2026-10-01T00:00:00Z" + here, "backfill: give both --from and --to, so that nobody has to guess which dues are meant"},
		{"gaps a b" + here, "gaps: 2 arguments: give the name of one job, or none for all"},
		{"gaps --from 3026-10-01T00:00:00Z" + here, "gaps: --from 3026-10-01T00:00:00Z is to come; gaps are looked for in what has passed"},
	} {
		args := strings.Fields(c.args)
		got := belfry(t, "", args...)
		if got.status != statusMisuse || got.out != "" || !strings.HasPrefix(got.err, "belfry: "+c.want) || strings.Contains(got.err, "c4nary") {
			t.Errorf("%s: got %v, want %s", c.args, got, c.want)
		}
		told := belfry(t, "", append(args, "--json")...)
		var v map[string]string
		if err := json.Unmarshal([]byte(told.out), &v); err != nil || told.status != statusMisuse || told.err != "" || len(v) != 1 || !strings.HasPrefix(v["error"], c.want) {
			t.Errorf("%s --json: got %v (%v)", c.args, told, err)
		}
	}
}

// TestNothingIsMade: a wrong path or database is refused, and is not made a store of (S12 for the password).
func TestNothingIsMade(t *testing.T) {
	eachPlace(t, func(t *testing.T, p place) {
		for _, args := range [][]string{{"jobs"}, {"pause", "renewals"}} {
			r := belfry(t, "", append(args, "--store", p.url, "--namespace", "billing")...)
			if want := map[string]string{"sqlite": "there is no such file", "pgx": "it holds no store", "mysql": "it holds no store"}[p.driver]; r.status != statusFailed || !strings.Contains(r.err, want) {
				t.Errorf("got %v, want an error that says %s", r, want)
			}
		}
		path, isFile := strings.CutPrefix(p.url, "sqlite:")
		if isFile {
			if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) > 0 {
				t.Errorf("files were made: %v (%v)", left, err)
			}
			return
		}
		var tables int
		schema := map[string]string{"pgx": "current_schema()", "mysql": "database()"}[p.driver]
		if err := p.open(t).QueryRowContext(t.Context(), "select count(*) from information_schema.tables where table_schema = "+schema).Scan(&tables); err != nil || tables > 0 {
			t.Errorf("%d tables were made (%v)", tables, err)
		}
	})
}

// TestPayload: a text has to be JSON, a file and standard input may hold anything, up to a bound.
func TestPayload(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "payload")
	if err := os.WriteFile(file, []byte("\x00any"), 0o600); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 64<<10) // as idempotency.Command takes
	for _, c := range []struct{ flag, in, want, err string }{
		{`{"a": 1}`, "", `{"a": 1}`, ""},
		{"@" + file, "", "\x00any", ""},
		{"-", "line\n", "line\n", ""},
		{"-", long, long, ""},
		{"-", long + "x", "", "more than 64 KiB"},
		{"", "", "", "is not JSON"},
		{"@", "", "", "--payload: open"},
	} {
		got, err := readPayload(c.flag, strings.NewReader(c.in))
		if string(got) != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%.20q: got %.20q (%v), want %.20q (%s)", c.flag, got, err, c.want, c.err)
		}
	}
	if got, err := readPayload("-", strings.NewReader("")); got == nil || err != nil {
		t.Errorf("nothing at all is no payload of its own: %v (%v)", got, err)
	}
}

// TestNoAnswer: a server that says nothing is given up, and a control that may have been done says how to ask again.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for _, url := range []string{"postgres://u@" + silent.Addr().String() + "/db", "mysql://u@" + silent.Addr().String() + "/db"} {
		r := belfry(t, "", "jobs", "--namespace", "billing", "--store", url, "--timeout", "20ms", "--json")
		if r.status != statusFailed || !strings.Contains(r.out, "the store did not answer within 20ms; see whether it is up, or raise --timeout") {
			t.Errorf("got %v", r)
		}
	}
	o := control{by: scheduler.By{Request: "r-1"}, name: commandFlag}
	lost := errors.New("the connection broke")
	err = o.submit(t.Context(), nil, func(context.Context, *scheduler.Client) (idempotency.Command, error) {
		return idempotency.Command{}, lost
	}, nil)
	if want := "the connection broke; whether it was done is not known: ask again with --command r-1, which changes nothing if it was"; !errors.Is(err, lost) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestJobState(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 10, 1, 4, 0, 0, 0, time.UTC)
	ago := now.Add(-3 * time.Minute)
	on := []string{"a", "b c", "d", "e", "f"}
	for _, c := range []struct {
		job             scheduler.JobStatus
		state, replicas string
	}{
		{scheduler.JobStatus{Announced: on[:1]}, "active", "a"},
		{scheduler.JobStatus{Announced: on, Efficiency: true}, "efficiency", `a, "b c", d and 2 more`},
		{scheduler.JobStatus{}, "no replica has it", ""},
		{scheduler.JobStatus{PausedFrom: ago}, "paused 3 min ago", ""},
		{scheduler.JobStatus{PausedFrom: now, Retired: ago}, "retired 3 min ago", ""},
	} {
		if state, replicas := jobState(c.job, now), some(c.job.Announced); state != c.state || replicas != c.replicas {
			t.Errorf("got %s on %s, want %s on %s", state, replicas, c.state, c.replicas)
		}
	}
}

func TestWhoAsks(t *testing.T) {
	t.Setenv("USER", "ann")
	host, err := os.Hostname()
	if got := whoami(); err != nil || got != "ann@"+host {
		t.Errorf("got %s (%v)", got, err)
	}
}
