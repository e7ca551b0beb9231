package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql" // registers "mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // registers "pgx"

	"github.com/belfry-go/belfry/cmd/belfry/internal/demo"
	"github.com/belfry-go/belfry/cmd/belfry/internal/storeurl"
	"github.com/belfry-go/belfry/internal/testservers"
)

// small is a demo of a few seconds. Nothing in it is timed: it ends when all is done.
var small = []string{"demo", "--json", "--nights", "2", "--every", "3s", "--customers", "90", "--kills", "1"}

// TestDemo runs the whole demo: real replicas, a real provider, SIGKILL in the second night.
func TestDemo(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "kept")
	r := belfry(t, "", append(small, "--dir", dir)...)
	got := checkDemo(t, r, dir, "sqlite", 90)
	text, err := os.ReadFile(filepath.Join(dir, "ledger.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(text), "\n"); lines != got.ProviderCalls {
		t.Errorf("the ledger has %d lines, the result says %d calls", lines, got.ProviderCalls)
	}
	again := belfry(t, "", append(small, "--dir", dir)...)
	if again.status != 1 || !strings.Contains(again.err, "of an earlier demo") {
		t.Errorf("into the same folder again: %v", again)
	}
}

// checkDemo wants a demo of two nights and one kill to have gone well, and returns its result.
func checkDemo(t *testing.T, r result, dir, kind string, customers int) demo.Result {
	t.Helper()
	if r.status != 0 {
		t.Fatalf("status %d\n%s%s", r.status, r.err, logs(dir))
	}
	if strings.Count(r.out, "\n") != 1 {
		t.Fatalf("standard output is not one line: %q", r.out)
	}
	var got demo.Result
	in := json.NewDecoder(strings.NewReader(r.out))
	in.DisallowUnknownFields()
	if err := in.Decode(&got); err != nil {
		t.Fatal(err)
	}
	want := demo.Result{Store: kind, Replicas: 3, Customers: customers, Nights: 2, Due: 2 * customers, Done: 2 * customers, Charges: 2 * customers, Kills: 1,
		ProviderCalls: got.ProviderCalls, RefusedClaims: got.RefusedClaims, Takeups: got.Takeups, MaxLatenessMS: got.MaxLatenessMS, HandoverMS: got.HandoverMS}
	if got != want || got.ProviderCalls < got.Charges {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	summary := fmt.Sprintf("2 nights, %d customers: %d renewals due, %[2]d charged once, 0 twice, 0 missed.", customers, 2*customers)
	for _, word := range []string{"all agree", "kill -9", "started again", summary} {
		if !strings.Contains(r.err, word) {
			t.Errorf("the progress does not say %q:\n%s", word, r.err)
		}
	}
	return got
}

// TestDemoOnServer runs the demo on real servers, which have nothing of it in them afterwards. The password that the
// environment's URL has is in no argument and no log: on this Postgres it is one that nobody asks for (S12).
func TestDemoOnServer(t *testing.T) {
	skipRaced(t)
	args := append(slices.Clone(small), "--customers", "60")
	t.Run("postgres", func(t *testing.T) {
		db := testservers.Postgres(t).Database(t)
		t.Setenv(storeurl.Variable, strings.Replace(db.URL(), "@", ":c4nary@", 1))
		dir := t.TempDir()
		r := belfry(t, "", append(args, "--dir", dir)...)
		checkDemo(t, r, dir, "postgres", 60)
		if said := r.err + r.out + logs(dir); strings.Contains(said, "c4nary") {
			t.Errorf("the password was said:\n%s", said)
		}
		checkEmpty(t, "pgx", db.DSN(), "current_schema()")
	})
	t.Run("mysql", func(t *testing.T) {
		db := testservers.MariaDB(t).Database(t)
		checkDemo(t, belfry(t, "", append(args, "--store", db.URL())...), "", "mysql", 60)
		checkEmpty(t, "mysql", db.DSN(), "database()")
	})
}

// checkEmpty wants no table but the store's own.
func checkEmpty(t *testing.T, driver, dsn, schema string) {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var stores, others int
	query := "select coalesce(sum(case when table_name like 'belfry%' then 1 else 0 end), 0), coalesce(sum(case when table_name like 'belfry%' then 0 else 1 end), 0) from information_schema.tables where table_schema = "
	if err := db.QueryRowContext(context.Background(), query+schema).Scan(&stores, &others); err != nil || stores == 0 || others != 0 {
		t.Errorf("the database has %d tables of a store and %d others (%v)", stores, others, err)
	}
}

// logs are the last lines of every log in dir.
func logs(dir string) string {
	var b strings.Builder
	files, _ := filepath.Glob(filepath.Join(dir, "*.log"))
	for _, f := range files {
		text, _ := os.ReadFile(f)
		b.WriteString("\n" + f + ":\n" + string(text[max(0, len(text)-2000):]))
	}
	return b.String()
}

// TestDemoOfOne kills the only replica there is.
func TestDemoOfOne(t *testing.T) {
	t.Parallel()
	r := belfry(t, "", "demo", "--json", "--nights", "2", "--every", "3s", "--customers", "20", "--replicas", "1", "--kills", "2")
	if r.status != 0 || !strings.Contains(r.out, `"due":40,"done":40,`) || !strings.Contains(r.out, `"charges":40,"double_charges":0,"missed":0,"kills":2,`) {
		t.Errorf("got %v", r)
	}
}

func TestBenchLatency(t *testing.T) {
	skipRaced(t)
	t.Parallel()
	r := belfry(t, "", "bench", "latency", "--json", "--seconds", "2", "--rounds", "1")
	if r.status != 0 {
		t.Fatalf("got %v", r)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(r.out), &got); err != nil {
		t.Fatal(err)
	}
	for name, n := range map[string]float64{"lateness_ms": 2, "killed_ms": 1, "takeup_ms": 1, "stopped_ms": 1} {
		if s, _ := got[name].(map[string]any); s["n"] != n {
			t.Errorf("%s has %v, want %v samples", name, s, n)
		}
	}
}

// skipRaced skips what starts many processes: with the race detector TestDemo alone does.
func skipRaced(t *testing.T) {
	t.Helper()
	if raced {
		t.Skip("skipped with the race detector: TestDemo runs the same processes with it, and this one without it")
	}
}
