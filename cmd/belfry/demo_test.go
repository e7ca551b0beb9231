package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// small is a demo of a few seconds. Nothing in it is timed: it ends when all is done.
var small = []string{"demo", "--json", "--nights", "2", "--every", "3s", "--customers", "90", "--kills", "1"}

// TestDemo runs the whole demo: real replicas, a real provider, SIGKILL in the second night.
func TestDemo(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "kept")
	r := belfry(t, "", append(small, "--dir", dir)...)
	if r.status != 0 {
		t.Fatalf("status %d\n%s%s", r.status, r.err, logs(dir))
	}
	if strings.Count(r.out, "\n") != 1 {
		t.Fatalf("standard output is not one line: %q", r.out)
	}
	var got map[string]int64
	if err := json.Unmarshal([]byte(r.out), &got); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int64{
		"replicas": 3, "customers": 90, "nights": 2, "due": 180, "done": 180, "charges": 180, "double_charges": 0, "missed": 0, "kills": 1,
	} {
		if got[name] != want {
			t.Errorf("%s is %d, want %d", name, got[name], want)
		}
	}
	if got["provider_calls"] < got["charges"] {
		t.Errorf("%d calls made %d charges", got["provider_calls"], got["charges"])
	}
	for _, word := range []string{"all agree", "kill -9", "started again", "2 nights, 90 customers: 180 renewals due, 180 charged once, 0 twice, 0 missed."} {
		if !strings.Contains(r.err, word) {
			t.Errorf("the progress does not say %q:\n%s", word, r.err)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "ledger.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if lines := int64(strings.Count(string(text), "\n")); lines != got["provider_calls"] {
		t.Errorf("the ledger has %d lines, the result says %d calls", lines, got["provider_calls"])
	}
	again := belfry(t, "", append(small, "--dir", dir)...)
	if again.status != 1 || !strings.Contains(again.err, "of an earlier demo") {
		t.Errorf("into the same folder again: %v", again)
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
